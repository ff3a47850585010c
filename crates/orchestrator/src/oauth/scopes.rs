//! Which rights a login asks for: what the entry says, or what the server wants, and never less than there is already.

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata};

/// Login servers that know this word give no token to renew with unless it is there.
const OFFLINE: &str = "offline_access";

/// `own` is what the entry says, `held` what the last login was given, `challenged` what the server wanted when it refused
/// us for want of a right.
pub(super) async fn choose(
    manager: &AuthorizationManager,
    metadata: &AuthorizationMetadata,
    own: &[String],
    held: &[String],
    challenged: &[String],
) -> Vec<String> {
    let mut scopes =
        if own.is_empty() { manager.select_initial_scopes(&[]).await } else { own.to_vec() };
    // Who asks for more wants to keep what there is.
    if !challenged.is_empty() {
        scopes.extend(held.iter().chain(challenged).cloned());
    }
    let known = metadata.scopes_supported.iter().flatten();
    if !scopes.is_empty() && known.into_iter().any(|scope| scope == OFFLINE) {
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
