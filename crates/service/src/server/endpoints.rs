//! What is asked over HTTP beside MCP: deciding what waits in a session, for people and for other systems, and managing
//! tokens. Each answers with a status and JSON; what is refused is `{"error": {"code", "message", "data"}}`.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use transport::{EndpointAnswer, EndpointRequest};

use crate::access::Who;
use crate::app::App;
use crate::auth::TokenList;
use crate::error::Refusal;
use crate::sessions::Denied;

mod decide;
mod tokens;

/// What a path leads to.
enum Endpoint<'a> {
    Decide { session: &'a str, is_approved: bool },
    Tokens,
    Token { name: String },
}

pub(super) fn is_there(path: &str) -> bool {
    Endpoint::at(path).is_some()
}

/// Answers, and may wait for the disk. Without a file there are no tokens to manage.
pub(super) fn answer(
    app: &App,
    request: &EndpointRequest,
    who: &Who,
    tokens: Option<TokenList>,
) -> EndpointAnswer {
    let EndpointRequest { method, path, body, .. } = request;
    let audit = app.sessions().audit();
    let wanted = format!("{method} {path}");
    let answered = match (Endpoint::at(path), *method) {
        (Some(Endpoint::Decide { session, is_approved }), "POST") => {
            decide::decide(app, who, session, is_approved, body, &wanted)
        }
        (Some(Endpoint::Tokens), "GET") => tokens::list(who, tokens, &wanted, audit),
        (Some(Endpoint::Tokens), "POST") => tokens::make(who, tokens, body, &wanted, audit),
        (Some(Endpoint::Token { name }), "DELETE") => {
            tokens::revoke(who, tokens, &name, &wanted, audit)
        }
        (Some(endpoint), _) => {
            let details = format!("`{path}` does not know `{method}`");
            let error =
                json!({"code": -32600, "message": "Invalid request", "data": {"details": details}});
            let refused = with_status(405, Some(json!({"error": error})));
            return EndpointAnswer { allow: Some(endpoint.methods()), ..refused };
        }
        (None, _) => return with_status(404, None),
    };
    match answered {
        Ok(answer) => answer,
        Err(refusal) => {
            let status = status(&refusal);
            with_status(status, Some(json!({"error": refusal.to_object()})))
        }
    }
}

impl<'a> Endpoint<'a> {
    fn at(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let found = match (parts.next()?, parts.next(), parts.next()) {
            ("tokens", None, None) => Self::Tokens,
            ("tokens", Some(name), None) => Self::Token { name: plain(name)? },
            ("sessions", Some(session), Some("approve")) => {
                Self::Decide { session, is_approved: true }
            }
            ("sessions", Some(session), Some("reject")) => {
                Self::Decide { session, is_approved: false }
            }
            _ => return None,
        };
        parts.next().is_none().then_some(found)
    }

    /// As the header `Allow` names them.
    fn methods(&self) -> &'static str {
        match self {
            Self::Decide { .. } => "POST",
            Self::Tokens => "GET, POST",
            Self::Token { .. } => "DELETE",
        }
    }
}

/// A name as it was before somebody wrote it into an address.
fn plain(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        rest = behind;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn with_status(status: u16, body: Option<Value>) -> EndpointAnswer {
    EndpointAnswer { status, body: body.map(|body| body.to_string()), allow: None }
}

/// A body, where there is one.
fn read<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Refusal> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| Refusal::InvalidParams {
        details: format!("the body cannot be used: {error}"),
        hint: None,
    })
}

fn status(refusal: &Refusal) -> u16 {
    match refusal {
        Refusal::OverQuota { .. } => 429,
        Refusal::Right { .. }
        | Refusal::Security { .. }
        | Refusal::Session { why: Denied::Engine(engine::Refusal::StrictGate), .. } => 403,
        Refusal::SessionNotFound { .. } | Refusal::TokenNotFound { .. } => 404,
        Refusal::Session {
            why:
                Denied::Engine(
                    engine::Refusal::TooLarge { .. }
                    | engine::Refusal::Reserved { .. }
                    | engine::Refusal::BadVariables { .. },
                ),
            ..
        }
        | Refusal::InvalidParams { .. }
        | Refusal::MalformedId { .. } => 400,
        Refusal::Session { .. } | Refusal::TokenExists { .. } => 409,
        Refusal::Store { .. } | Refusal::Storage { .. } => 503,
        Refusal::WorkflowNotFound { .. }
        | Refusal::InvalidWorkflow { .. }
        | Refusal::Engine { .. } => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_somewhere_or_nowhere() {
        for path in ["/tokens", "/tokens/ci", "/tokens/a%40b", "/sessions/a/approve"] {
            assert!(is_there(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/sessions",
            "/sessions/a",
            "/sessions/a/approve/b",
            "/sessions/a/remove",
            "/tokens/a/b",
            "/tokens/%4",
            "/tokens/%zz",
            "/tokens/%ff",
            "tokens",
        ] {
            assert!(!is_there(path), "{path}");
        }
        assert_eq!(plain("anna%40example.com").as_deref(), Some("anna@example.com"));
    }
}
