//! Which rights a login asks for: what the entry says, or what the server wants, and never less than there is already.

/// Login servers that know this word give no token to renew with unless it is there.
const OFFLINE: &str = "offline_access";

/// `initial` is what the server wants for a start, `known` what its login server knows, `own` what the entry says, `held`
/// what the last login was given, `challenged` what the server wanted when it refused us for want of a right.
pub(super) fn choose(
    initial: Vec<String>,
    known: Option<&[String]>,
    own: &[String],
    held: &[String],
    challenged: &[String],
) -> Vec<String> {
    let mut scopes = if own.is_empty() { initial } else { own.to_vec() };
    // Who asks for more wants to keep what there is.
    if !challenged.is_empty() {
        scopes.extend(held.iter().chain(challenged).cloned());
    }
    if !scopes.is_empty() && known.into_iter().flatten().any(|scope| scope == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
    let mut chosen: Vec<String> = Vec::new();
    for scope in scopes {
        if !chosen.contains(&scope) {
            chosen.push(scope);
        }
    }
    chosen
}
