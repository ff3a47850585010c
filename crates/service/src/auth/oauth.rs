//! Tokens of an issuer: JWTs (RFC 9068) that it has signed for us. What is signed is checked here, the keys come from
//! `keys`. No token decides how it is checked: algorithms are those that were allowed, keys those of the issuer.

use std::sync::Arc;

use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;

use super::Principal;
use super::denied::{Denied, Why};
use crate::access::Right;
use crate::error::Refusal;

mod address;
mod fetch;
mod key_set;
mod keys;

use address::Address;
use fetch::Source;
use key_set::KeySet;
use keys::{Keys, Times};

/// What clocks may differ by.
const LEEWAY_SECONDS: u64 = 30;
/// What OpenID Connect allows a subject.
const SUBJECT_CHARS_MAX: usize = 255;
/// What issuers sign with, and is sound. Others have to be asked for.
pub const ALGORITHMS_BY_DEFAULT: [Algorithm; 3] =
    [Algorithm::ES256, Algorithm::RS256, Algorithm::EdDSA];

/// Whose tokens are let in.
#[derive(Debug, Clone)]
pub struct OAuth {
    /// Exactly as its tokens write it.
    pub issuer: String,
    /// What its tokens must be made out to: us.
    pub audience: String,
    /// Where its keys are, an address or a file; otherwise it is asked.
    pub jwks: Option<String>,
    pub algorithms: Vec<Algorithm>,
    /// What a token must be good for, all of it.
    pub scopes: Vec<String>,
}

/// An algorithm by its name, for an option of the command line. HMAC is none: its key would be a secret that whoever
/// checks tokens can make them with.
pub fn algorithm(name: &str) -> Result<Algorithm, String> {
    let algorithm = name.parse().ok().filter(|algorithm| !is_hmac(*algorithm));
    algorithm
        .ok_or_else(|| "ES256, ES384, RS256, RS384, RS512, PS256, PS384, PS512 or EdDSA".to_owned())
}

fn is_hmac(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512)
}

/// Checks the tokens of one issuer.
#[derive(Debug)]
pub(super) struct ResourceServer {
    oauth: OAuth,
    /// The scopes as they are written in a challenge.
    scope: Arc<str>,
    keys: Keys,
}

/// What a token says. Whether it is right has been checked by the time that somebody looks at this.
#[derive(Debug, Deserialize)]
struct Claims {
    /// One text: `jsonwebtoken` would also be content with a list that has the right one in it.
    #[serde(rename = "iss")]
    _issuer: Option<String>,
    sub: Option<String>,
    exp: Option<f64>,
    scope: Option<Value>,
    scp: Option<Value>,
}

enum Verified {
    Good(Claims),
    /// No key of these has made it, but a newer one may have.
    NotByThese,
    Bad(Denied),
}

impl ResourceServer {
    pub(super) fn new(oauth: OAuth) -> Result<Self, Refusal> {
        Self::with_times(oauth, Times::default())
    }

    fn with_times(oauth: OAuth, times: Times) -> Result<Self, Refusal> {
        let refused = |details: String, hint: &str| Refusal::InvalidParams {
            details,
            hint: Some(hint.to_owned()),
        };
        let issuer = Address::read(&oauth.issuer).map_err(|why| {
            let hint =
                "write it exactly as the issuer's tokens do, such as `https://login.example`";
            refused(format!("`{}` cannot be an issuer: {why}", oauth.issuer), hint)
        })?;
        let source = match oauth.jwks.as_deref() {
            None => Source::Discovered(issuer),
            Some(url) if url.contains("://") => Source::Url(Address::read(url).map_err(|why| {
                let hint = "name an address with https, or a file";
                refused(format!("`{url}` cannot be where keys are: {why}"), hint)
            })?),
            Some(path) => Source::File(path.into()),
        };
        if oauth.audience.is_empty() {
            let hint =
                "name what the issuer makes tokens out to, mostly the address of this server";
            return Err(refused("the audience is empty".to_owned(), hint));
        }
        if oauth.algorithms.is_empty() || oauth.algorithms.iter().any(|one| is_hmac(*one)) {
            let hint = "allow ES256, RS256 or EdDSA";
            return Err(refused(
                "the algorithms that were allowed cannot be used".to_owned(),
                hint,
            ));
        }
        if let Some(scope) = oauth.scopes.iter().find(|scope| !is_scope(scope)) {
            let hint = "a scope is one word of visible ASCII, without quotation marks";
            return Err(refused(format!("`{scope}` cannot be a scope"), hint));
        }
        let scope = oauth.scopes.join(" ").into();
        Ok(Self { oauth, scope, keys: Keys::new(source, times) })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.oauth.issuer
    }

    pub(super) fn scopes(&self) -> &[String] {
        &self.oauth.scopes
    }

    pub(super) fn scope(&self) -> &Arc<str> {
        &self.scope
    }

    pub(super) fn warm(&self) {
        self.keys.warm();
    }

    pub(super) fn not_ready(&self) -> Option<String> {
        self.keys.not_ready()
    }

    pub(super) async fn check(&self, token: &str) -> Result<Principal, Denied> {
        let header = decode_header(token).map_err(|_| {
            invalid(
                "the token is neither one of ours nor a JWT with a signature that can be checked",
            )
        })?;
        self.check_header(&header)?;
        let keys = self.keys.current().await.map_err(|_| {
            let reason = "the issuer's keys cannot be had now; the server's log says why";
            Denied::new(Why::Unavailable, reason)
        })?;
        let mut verified = self.verify(token, &header, &keys);
        if let Verified::NotByThese = verified
            && let Some(newer) = self.keys.newer_than(&keys).await
        {
            verified = self.verify(token, &header, &newer);
        }
        match verified {
            Verified::Good(claims) => self.principal(&claims),
            Verified::NotByThese => {
                Err(invalid("the token was not made with a key of the issuer's"))
            }
            Verified::Bad(denied) => Err(denied),
        }
    }

    fn check_header(&self, header: &Header) -> Result<(), Denied> {
        if !self.oauth.algorithms.contains(&header.alg) {
            return Err(invalid("the token is signed in a way that is not allowed here"));
        }
        // RFC 7515: whoever does not know what is critical must not go on.
        if header.crit.is_some() {
            return Err(invalid("the token has critical extensions, and none is known here"));
        }
        let kinds = ["jwt", "at+jwt", "application/at+jwt"];
        match &header.typ {
            Some(kind) if !kinds.contains(&kind.to_ascii_lowercase().as_str()) => {
                Err(invalid("the JWT is something else than an access token"))
            }
            _ => Ok(()),
        }
    }

    fn verify(&self, token: &str, header: &Header, keys: &KeySet) -> Verified {
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.oauth.issuer]);
        validation.set_audience(&[&self.oauth.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        for key in keys.fitting(header.kid.as_deref(), header.alg) {
            match decode::<Claims>(token, key, &validation) {
                Ok(decoded) => return Verified::Good(decoded.claims),
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {}
                Err(error) => return Verified::Bad(invalid(reason(&error))),
            }
        }
        match header.kid.as_deref() {
            Some(id) if keys.has(id) => {
                Verified::Bad(invalid("the signature of the token does not fit"))
            }
            _ => Verified::NotByThese,
        }
    }

    fn principal(&self, claims: &Claims) -> Result<Principal, Denied> {
        let subject = claims.sub.as_deref().unwrap_or_default();
        let is_usable = |letter: char| !letter.is_control();
        // It goes into logs and records.
        if subject.is_empty()
            || subject.chars().count() > SUBJECT_CHARS_MAX
            || !subject.chars().all(is_usable)
        {
            return Err(invalid("the token has a subject that cannot be used"));
        }
        let granted: Vec<&str> =
            [&claims.scope, &claims.scp].into_iter().flatten().flat_map(words).collect();
        if !self.oauth.scopes.iter().all(|scope| granted.contains(&scope.as_str())) {
            let reason = "the token is not good for this: it lacks a scope";
            return Err(Denied::new(Why::Scope, reason));
        }
        let right = right(&granted)?;
        let name = format!("{}#{subject}", self.oauth.issuer).into();
        // A number that is too large becomes the largest one.
        let until = claims.exp.map(|seconds| (seconds * 1000.0) as u64);
        Ok(Principal { name, right, until })
    }
}

fn invalid(reason: &'static str) -> Denied {
    Denied::new(Why::Invalid, reason)
}

fn reason(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not good yet",
        ErrorKind::InvalidIssuer => "the token is another issuer's",
        ErrorKind::InvalidAudience => "the token is made out to somebody else",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks `exp`, `iss`, `aud` or `sub`",
        _ => "the token cannot be read",
    }
}

/// What the scopes of a token make it good for. Whoever works does not decide, and the other way round, so that a token
/// for both is good for neither.
fn right(granted: &[&str]) -> Result<Right, Denied> {
    let mut rights = Right::ALL.into_iter().filter(|right| granted.contains(&right.scope()));
    match (rights.next(), rights.next()) {
        (None, _) => Ok(Right::Use),
        (Some(right), None) => Ok(right),
        (Some(one), Some(other)) => {
            let (one, other) = (one.scope(), other.scope());
            let reason = format!(
                "the token has the scopes `{one}` and `{other}`, and may have one of them only"
            );
            Err(Denied::new(Why::Scope, reason))
        }
    }
}

/// Issuers write scopes as a text with spaces in it, or as a list.
fn words(scopes: &Value) -> Vec<&str> {
    match scopes {
        Value::String(scopes) => scopes.split(' ').collect(),
        Value::Array(scopes) => scopes.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// RFC 6749, `scope-token`.
fn is_scope(scope: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !scope.is_empty() && scope.bytes().all(is_inside)
}

#[cfg(test)]
mod tests;
