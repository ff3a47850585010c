//! Responses: an answer as JSON, and refusals that say what happened and what to try.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use mcp::Reply;
use serde_json::json;

use crate::budget::{OverBudget, Resource};
use crate::guard::Foreign;
use crate::host::Denied;
use crate::limits;

pub(crate) fn json(reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_text(status, "application/json", reply.text)
}

pub(crate) fn with_text(status: StatusCode, kind: &'static str, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Taken, and there is nothing to say.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Why a request was not served.
#[derive(Debug)]
pub(crate) enum Refused {
    Foreign(Foreign),
    Denied(Denied),
    NotAcceptable(&'static str),
    UnsupportedMediaType,
    MethodNotAllowed,
    TooLarge,
    TooSlow,
    Broken,
    Busy,
    OverBudget(OverBudget),
    Draining,
    NoSession,
    UnknownSession,
    /// A good one, of somebody else's. They hear what they would of one that is not.
    ForeignSession,
    BadLastEvent,
    HeadersTooLarge,
    /// A header that must not stand twice.
    Twice(&'static str),
    UnsupportedVersion,
    NobodyAsked,
}

/// The kinds of reasons by which refusals are counted.
pub(crate) const REFUSED_KINDS: [&str; 14] = [
    "bad_request",
    "foreign",
    "not_authenticated",
    "not_allowed",
    "not_checked",
    "too_large",
    "too_slow",
    "busy",
    "over_cpu_time",
    "over_bytes",
    "draining",
    "unknown_session",
    "nobody_asked",
    BAD_MESSAGE,
];

/// A body that is no message, or is at odds with its headers. It has an answer of its own.
pub(crate) const BAD_MESSAGE: &str = "bad_message";

impl Refused {
    /// One of [`REFUSED_KINDS`].
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Foreign(Foreign::Malformed)
            | Self::NotAcceptable(_)
            | Self::UnsupportedMediaType
            | Self::MethodNotAllowed
            | Self::Broken
            | Self::NoSession
            | Self::BadLastEvent
            | Self::Twice(_)
            | Self::UnsupportedVersion => "bad_request",
            Self::Foreign(Foreign::Host | Foreign::Origin) => "foreign",
            Self::Denied(Denied { status: 401, .. }) => "not_authenticated",
            Self::Denied(Denied { status: 403, .. }) => "not_allowed",
            Self::Denied(_) => "not_checked",
            Self::TooLarge | Self::HeadersTooLarge => "too_large",
            Self::TooSlow => "too_slow",
            Self::Busy => "busy",
            Self::OverBudget(over) => match over.resource {
                Resource::CpuTime => "over_cpu_time",
                Resource::Bytes => "over_bytes",
            },
            Self::Draining => "draining",
            Self::UnknownSession | Self::ForeignSession => "unknown_session",
            Self::NobodyAsked => "nobody_asked",
        }
    }

    pub(crate) fn response(self) -> Response {
        let (status, details) = self.words();
        let code = match self {
            // What the modern era calls headers that cannot be trusted.
            Self::Twice(_) => -32020,
            _ => -32000,
        };
        let retry_after = self.retry_after().map(|time| u64::try_from(time.as_millis()));
        let retry_after = retry_after.and_then(Result::ok);
        let mut data = json!({"details": details});
        if let Some(millis) = retry_after {
            data["retryAfterMs"] = millis.into();
        }
        let error = json!({"code": code, "message": reason(status), "data": data});
        let text = json!({"jsonrpc": "2.0", "error": error}).to_string();
        let mut response = with_text(status, "application/json", text);
        let headers = response.headers_mut();
        if let Some(millis) = retry_after {
            // Whole seconds, and never too early.
            headers.insert(RETRY_AFTER, millis.div_ceil(1000).into());
        }
        match self {
            Self::Denied(Denied { challenge, .. }) => {
                let challenge = challenge.and_then(|text| HeaderValue::from_str(&text).ok());
                if let Some(challenge) = challenge {
                    headers.insert(WWW_AUTHENTICATE, challenge);
                }
            }
            Self::MethodNotAllowed => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
            }
            _ => {}
        }
        response
    }

    /// When to try again, if that helps.
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Denied(Denied { retry_after, .. }) => *retry_after,
            Self::Busy | Self::Draining => Some(limits::RETRY_AFTER),
            Self::OverBudget(over) => Some(over.retry_after),
            _ => None,
        }
    }

    /// For the log.
    pub(crate) fn details(&self) -> String {
        self.words().1
    }

    pub(crate) fn words(&self) -> (StatusCode, String) {
        let (status, details) = match self {
            Self::Foreign(Foreign::Malformed) => {
                (StatusCode::BAD_REQUEST, "a request has one `Host`, and one `Origin` at most")
            }
            Self::Foreign(Foreign::Host) => (
                StatusCode::FORBIDDEN,
                "this server does not answer to that `Host`; it can be told to with `--allow-host`",
            ),
            Self::Foreign(Foreign::Origin) => (
                StatusCode::FORBIDDEN,
                "pages of that `Origin` may not call this server; it can be told to with `--allow-origin`",
            ),
            Self::Denied(denied) => {
                let status =
                    StatusCode::from_u16(denied.status).unwrap_or(StatusCode::UNAUTHORIZED);
                return (status, denied.reason.clone());
            }
            Self::NotAcceptable(wanted) => {
                return (StatusCode::NOT_ACCEPTABLE, format!("`Accept` must name {wanted}"));
            }
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "a message is sent with `Content-Type: application/json`",
            ),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "messages are sent by POST"),
            Self::TooLarge => {
                let bytes = limits::BODY_BYTES_MAX;
                return (StatusCode::PAYLOAD_TOO_LARGE, format!("a body may have {bytes} bytes"));
            }
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"),
            Self::Broken => (StatusCode::BAD_REQUEST, "the body did not arrive"),
            Self::Busy => {
                (StatusCode::TOO_MANY_REQUESTS, "too much is under way already; try again later")
            }
            Self::OverBudget(OverBudget { resource: Resource::CpuTime, .. }) => (
                StatusCode::TOO_MANY_REQUESTS,
                "your calls have used their CPU time for this minute; try again later",
            ),
            Self::OverBudget(OverBudget { resource: Resource::Bytes, .. }) => (
                StatusCode::TOO_MANY_REQUESTS,
                "you have sent and received your bytes for this minute; try again later",
            ),
            Self::Draining => {
                (StatusCode::SERVICE_UNAVAILABLE, "this server is about to end; try again")
            }
            Self::NoSession => (
                StatusCode::BAD_REQUEST,
                "the header `Mcp-Session-Id` is missing; send `initialize` first, or the `_meta` and headers of a \
                 revision without handshake",
            ),
            Self::UnknownSession | Self::ForeignSession => (
                StatusCode::NOT_FOUND,
                "this `Mcp-Session-Id` is not good, or not any more; begin again with `initialize`",
            ),
            Self::HeadersTooLarge => {
                let bytes = limits::HEADERS_BYTES_MAX;
                let details = format!("all headers together may have {bytes} bytes");
                return (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, details);
            }
            Self::Twice(name) => {
                return (StatusCode::BAD_REQUEST, format!("the header `{name}` stands twice"));
            }
            Self::UnsupportedVersion => (
                StatusCode::BAD_REQUEST,
                "`MCP-Protocol-Version` is none of the revisions that begin with a handshake",
            ),
            Self::NobodyAsked => (
                StatusCode::BAD_REQUEST,
                "nobody has asked this, or not this client, or not any more; nothing was decided",
            ),
            Self::BadLastEvent => (StatusCode::BAD_REQUEST, "this `Last-Event-ID` is none of ours"),
        };
        (status, details.to_owned())
    }
}

/// The status in words, as a message.
fn reason(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Refused")
}
