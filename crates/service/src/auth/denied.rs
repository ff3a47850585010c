//! Why a request is not let in, and how that is said: a status, a challenge that clients can follow (RFC 6750, RFC
//! 9728), and a sentence for the body and the log. A sentence never has anything of the token in it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What is protected, for a person who is asked for a token.
const REALM: &str = "workflowlookup";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    why: Why,
    reason: Cow<'static, str>,
    /// The scopes that a client should ask its issuer for. None where there is no issuer.
    scope: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// No token was presented.
    Missing,
    /// It cannot be said which token was presented.
    Malformed,
    /// The token is not good, or not any more.
    Invalid,
    /// The token is good, but not for this.
    Scope,
    /// The token may be good, but that cannot be found out now.
    Unavailable,
}

impl Denied {
    /// How long to wait where the answer may be another one soon.
    const RETRY_AFTER: Duration = Duration::from_secs(10);

    pub(super) fn new(why: Why, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { why, reason: reason.into(), scope: None }
    }

    /// There is an issuer, and this is what to ask it for.
    pub(super) fn with_scope(self, scope: &Arc<str>) -> Self {
        Self { scope: Some(Arc::clone(scope)), ..self }
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> u16 {
        match self.why {
            Why::Missing | Why::Invalid => 401,
            Why::Malformed => 400,
            Why::Scope => 403,
            Why::Unavailable => 503,
        }
    }

    /// For the body and the log: lower case, no final stop.
    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// What `Retry-After` should say, where it should say something.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        (self.why == Why::Unavailable).then_some(Self::RETRY_AFTER)
    }

    /// The value of `WWW-Authenticate`, always visible ASCII. None where other credentials would change nothing. The
    /// address of our metadata is only told where there is an issuer to be found there.
    pub(crate) fn challenge(&self, metadata_url: &str) -> Option<String> {
        let error = match self.why {
            // RFC 6750: who presents nothing is told nothing about an error.
            Why::Missing => None,
            Why::Malformed => Some("invalid_request"),
            Why::Invalid => Some("invalid_token"),
            Why::Scope => Some("insufficient_scope"),
            Why::Unavailable => return None,
        };
        let mut challenge = format!("Bearer realm={}", quoted(REALM));
        let mut add = |name: &str, value: &str| {
            challenge.push_str(&format!(", {name}={}", quoted(value)));
        };
        if let Some(error) = error {
            add("error", error);
            // The RFC allows no quotation marks here, not even escaped ones.
            add("error_description", &self.reason.replace(['"', '\\'], "'"));
        }
        if let Some(scope) = &self.scope {
            if !scope.is_empty() {
                add("scope", scope);
            }
            add("resource_metadata", metadata_url);
        }
        Some(challenge)
    }
}

/// A `quoted-string` of HTTP. What has no place in a header becomes a question mark.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ' '..='~' => quoted.push(letter),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";

    #[test]
    fn a_challenge_says_what_a_client_can_follow() {
        let all = [Why::Missing, Why::Malformed, Why::Invalid, Why::Scope, Why::Unavailable];
        let shown = |scope: Option<&str>| {
            let lines = all.map(|why| {
                let denied = Denied::new(why, "the \"token\" is näh");
                let denied = match scope {
                    Some(scope) => denied.with_scope(&scope.into()),
                    None => denied,
                };
                let challenge = denied.challenge(URL).unwrap_or_default();
                let retry = denied.retry_after().map_or(0, |after| after.as_secs());
                format!("{} {retry} {challenge}", denied.status())
            });
            lines.join("\n")
        };
        insta::assert_snapshot!(shown(None), @r#"
        401 0 Bearer realm="workflowlookup"
        400 0 Bearer realm="workflowlookup", error="invalid_request", error_description="the 'token' is n?h"
        401 0 Bearer realm="workflowlookup", error="invalid_token", error_description="the 'token' is n?h"
        403 0 Bearer realm="workflowlookup", error="insufficient_scope", error_description="the 'token' is n?h"
        503 10
        "#);
        insta::assert_snapshot!(shown(Some("")), @r#"
        401 0 Bearer realm="workflowlookup", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        400 0 Bearer realm="workflowlookup", error="invalid_request", error_description="the 'token' is n?h", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        401 0 Bearer realm="workflowlookup", error="invalid_token", error_description="the 'token' is n?h", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        403 0 Bearer realm="workflowlookup", error="insufficient_scope", error_description="the 'token' is n?h", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        503 10
        "#);
        insta::assert_snapshot!(shown(Some("use \"a\\b\"")), @r#"
        401 0 Bearer realm="workflowlookup", scope="use \"a\\b\"", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        400 0 Bearer realm="workflowlookup", error="invalid_request", error_description="the 'token' is n?h", scope="use \"a\\b\"", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        401 0 Bearer realm="workflowlookup", error="invalid_token", error_description="the 'token' is n?h", scope="use \"a\\b\"", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        403 0 Bearer realm="workflowlookup", error="insufficient_scope", error_description="the 'token' is n?h", scope="use \"a\\b\"", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"
        503 10
        "#);
    }
}
