//! Posts messages and handles the responses, as JSON, as server-sent events, or as HTTP errors.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{LOCATION, RETRY_AFTER};
use mcp::Revision;
use mcp::client::{
    ErrorObject, MESSAGE_BYTES_MAX, Message, Request, RequestId, Resumption, SseEventTooLarge,
    SseParser, read, version_header,
};

use super::{
    EVENTS, JSON, OutgoingRequest, SESSION, Session, Shared, challenge, error_page, has_type,
    is_refusal, sleep, timeout,
};
use crate::error::Credentials;
use crate::upstream::failure::{Failure, incident};
use crate::upstream::router::SentFlag;

/// How much of an error page is read for its explanation.
const EXPLANATION_BYTES: usize = 64 * 1024;
/// A longer `Retry-After` is ignored.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the rest of a stream is drained after the response, so that its connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
/// JSON-RPC's code for an invalid request.
const INVALID_REQUEST: i64 = -32600;

/// A request to post.
pub(in crate::upstream) struct PostedRequest<'p> {
    pub(in crate::upstream) id: RequestId,
    pub(in crate::upstream) request: &'p Request,
    /// None during a handshake.
    pub(in crate::upstream) revision: Option<Revision>,
    pub(in crate::upstream) text: Bytes,
    pub(in crate::upstream) sent: &'p SentFlag,
}

impl PostedRequest<'_> {
    /// Returns when the response has been routed.
    pub(super) async fn exchange(&self, shared: &Arc<Shared>) -> Result<(), Failure> {
        let is_handshake = self.request.is_handshake();
        let session = shared.session.lock().id.clone().filter(|_| !is_handshake);
        let headers = self.request.headers(self.revision);
        let outgoing = OutgoingRequest::post(self.text.clone(), session, &headers);
        shared.tap.sent(&self.text);
        self.sent.set(true);
        let (response, shown) = match shared.send(&outgoing).await {
            Ok(sent) => sent,
            Err(failure) => {
                if let Failure::Broken { sent: false, .. } = &failure {
                    self.sent.set(false);
                }
                return Err(failure);
            }
        };
        let status = response.status();
        if is_refusal(status) {
            return Err(shared.turned_away(response, shown).await);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            let why = format!("it takes a request without answering it (HTTP {status})");
            return Err(Failure::Protocol { why });
        }
        if status == StatusCode::NOT_FOUND && outgoing.session.is_some() {
            // Some servers answer with that status what they do not know.
            let body = body(response, EXPLANATION_BYTES).await.unwrap_or_default();
            if !body.is_empty() {
                shared.tap.received(&body);
            }
            let text = std::str::from_utf8(&body).unwrap_or_default();
            if shared.route(text, Some(self.id)) {
                return Ok(());
            }
            shared.forgotten.cancel();
            self.sent.set(false);
            return Err(Failure::Forgotten { status: status.to_string() });
        }
        if !status.is_success() {
            let is_probe = is_handshake
                && self.request.method() == "server/discover"
                && status.is_client_error();
            return Err(match shared.declined(response).await {
                // Legacy servers reject the unknown method with any status.
                failure if is_probe && !matches!(failure, Failure::Upstream { .. }) => {
                    let message = format!("HTTP {status}");
                    Failure::Upstream { code: INVALID_REQUEST, message, data: None }
                }
                failure => failure,
            });
        }
        if self.request.method() == "initialize" {
            let id = response.headers().get(SESSION);
            let id = id.and_then(|value| value.to_str().ok()).map(str::to_owned);
            *shared.session.lock() = Session { id, stream: None };
        }
        if has_type(&response, EVENTS) {
            let session = shared.session.lock().id.clone();
            let headers = version_header(self.revision);
            return follow(shared, Some(response), Some(self.id), session, &headers).await;
        }
        if !has_type(&response, JSON) {
            let why = "its answer is neither JSON nor a stream of events; see that `mcp.url` is the address of an MCP server";
            return Err(Failure::Protocol { why: why.to_owned() });
        }
        let body = match body(response, MESSAGE_BYTES_MAX).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => return Err(Failure::TooLarge { limit: MESSAGE_BYTES_MAX }),
            Err(Unread::Broken(error)) => return Err(shared.unreachable(error)),
        };
        shared.tap.received(&body);
        let text = std::str::from_utf8(&body).unwrap_or_default();
        match shared.route(text, Some(self.id)) {
            true => Ok(()),
            false => {
                let why = "its answer is none to what was asked".to_owned();
                Err(Failure::Protocol { why })
            }
        }
    }
}

/// Posts a notification or a response.
pub(super) async fn send(
    shared: &Arc<Shared>,
    text: Bytes,
    headers: &[(String, String)],
) -> Result<(), Failure> {
    shared.tap.sent(&text);
    let outgoing = OutgoingRequest::post(text, shared.session.lock().id.clone(), headers);
    let (response, shown) = shared.send(&outgoing).await?;
    let status = response.status();
    if is_refusal(status) {
        return Err(shared.turned_away(response, shown).await);
    }
    if status == StatusCode::NOT_FOUND && outgoing.session.is_some() {
        let why = format!("it does not know the session that it has just begun (HTTP {status})");
        return Err(Failure::Connect { why, incident: incident() });
    }
    match status.is_success() {
        true => Ok(()),
        false => Err(shared.declined(response).await),
    }
}

/// Opens the GET stream and routes its messages until it cannot be reopened.
pub(super) async fn stream(
    shared: &Arc<Shared>,
    session: String,
    headers: Vec<(String, String)>,
) -> Result<(), Failure> {
    let outgoing =
        OutgoingRequest { session: Some(session.clone()), ..OutgoingRequest::get(&headers) };
    let followed = match open_events(shared, &outgoing).await {
        Ok(response) => follow(shared, Some(response), None, Some(session), &headers).await,
        Err(StreamError::Temporary) => follow(shared, None, None, Some(session), &headers).await,
        Err(StreamError::Permanent(failure)) => Err(failure),
    };
    // Without the stream nothing would be heard any more. A new connection may have one.
    if let Err(Failure::Forgotten { .. } | Failure::TooLarge { .. }) = &followed {
        shared.forgotten.cancel();
    }
    followed
}

/// Routes the events of a response until the response to `origin` has arrived, or forever for the GET stream. Resumes a
/// stream that breaks if its events had ids.
async fn follow(
    shared: &Arc<Shared>,
    mut response: Option<reqwest::Response>,
    origin: Option<RequestId>,
    session: Option<String>,
    headers: &[(String, String)],
) -> Result<(), Failure> {
    let ended = || {
        let why = "it ended before it answered".to_owned();
        Failure::Broken { why, sent: true, incident: incident() }
    };
    let mut resumption = Resumption::default();
    loop {
        if let Some(response) = response.take()
            && route_events(shared, response, origin, &mut resumption).await?
        {
            return Ok(());
        }
        if origin.is_some() && resumption.last_event().is_none() {
            return Err(ended());
        }
        sleep(resumption.delay()).await;
        let last_event = resumption.last_event();
        let outgoing = OutgoingRequest {
            session: session.clone(),
            last_event,
            ..OutgoingRequest::get(headers)
        };
        match open_events(shared, &outgoing).await {
            Ok(resumed) => {
                resumption.record_success();
                response = Some(resumed);
            }
            Err(StreamError::Permanent(_)) if origin.is_some() => return Err(ended()),
            Err(StreamError::Permanent(failure)) => return Err(failure),
            Err(StreamError::Temporary) => resumption.record_failure(),
        }
    }
}

/// Routes the events of one response. Returns whether the response to `origin` has arrived.
async fn route_events(
    shared: &Arc<Shared>,
    mut response: reqwest::Response,
    origin: Option<RequestId>,
    resumption: &mut Resumption,
) -> Result<bool, Failure> {
    let mut parser = SseParser::default();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(false),
            Err(error) => {
                let error = error.without_url();
                tracing::debug!(server = shared.router.server(), "a stream breaks: {error}");
                return Ok(false);
            }
        };
        let too_large = |SseEventTooLarge| Failure::TooLarge { limit: MESSAGE_BYTES_MAX };
        let mut is_responded = false;
        for event in parser.feed(&chunk).map_err(too_large)? {
            resumption.observe(&event);
            if let Some(text) = event.message() {
                shared.tap.received(text.as_bytes());
                is_responded |= shared.route(text, origin);
            }
        }
        if is_responded {
            let rest = async move { while let Ok(Some(_)) = response.chunk().await {} };
            tokio::spawn(timeout(DRAIN_TIMEOUT, rest));
            return Ok(true);
        }
    }
}

/// Why a stream cannot be opened.
enum StreamError {
    Permanent(Failure),
    Temporary,
}

async fn open_events(
    shared: &Arc<Shared>,
    outgoing: &OutgoingRequest<'_>,
) -> Result<reqwest::Response, StreamError> {
    let (response, shown) = shared.send(outgoing).await.map_err(|_| StreamError::Temporary)?;
    let status = response.status();
    if is_refusal(status) {
        return Err(StreamError::Permanent(shared.turned_away(response, shown).await));
    }
    if status == StatusCode::NOT_FOUND && outgoing.session.is_some() {
        let status = status.to_string();
        return Err(StreamError::Permanent(Failure::Forgotten { status }));
    }
    let why = format!("HTTP {status}");
    if status == StatusCode::METHOD_NOT_ALLOWED {
        return Err(StreamError::Permanent(Failure::Protocol { why }));
    }
    if !status.is_success() {
        return Err(StreamError::Temporary);
    }
    if !has_type(&response, EVENTS) {
        let why = "it is no stream of events".to_owned();
        return Err(StreamError::Permanent(Failure::Protocol { why }));
    }
    Ok(response)
}

impl Shared {
    /// Routes the messages of a text. Returns whether the response to `origin` is among them.
    fn route(&self, text: &str, origin: Option<RequestId>) -> bool {
        let mut is_responded = false;
        for message in read(text) {
            let responded = self.router.route(message, origin);
            is_responded |= responded.is_some() && responded == origin;
        }
        is_responded
    }

    /// It does not let us in. What it says to that is often the only reason that there is.
    async fn turned_away(&self, response: reqwest::Response, sent: Credentials) -> Failure {
        let status = response.status().as_u16();
        let challenge = challenge(&response);
        let body = body(response, EXPLANATION_BYTES).await.unwrap_or_default();
        if !body.is_empty() {
            self.tap.received(&body);
        }
        let said = match error_in(&body) {
            Some(error) => error_page::describe(error.message.as_bytes()),
            None => error_page::describe(&body),
        };
        let said: Vec<String> = challenge.into_iter().chain(said).collect();
        let said = (!said.is_empty()).then(|| self.hide(&said.join("; ")));
        Failure::Unauthorized { status, sent, said }
    }

    /// A status that is an error. It may come with one of JSON-RPC, which says more.
    async fn declined(&self, response: reqwest::Response) -> Failure {
        let status = response.status();
        let to = response
            .headers()
            .get(LOCATION)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let retry_after = retry_after(&response);
        let body = body(response, EXPLANATION_BYTES).await.unwrap_or_default();
        if !body.is_empty() {
            self.tap.received(&body);
        }
        match (error_in(&body), to) {
            (Some(error), _) => {
                Failure::Upstream { code: error.code, message: error.message, data: error.data }
            }
            (None, Some(to)) if status.is_redirection() => {
                let why = format!("it has moved to `{}`; put that into `mcp.url`", self.hide(&to));
                Failure::Unusable { why }
            }
            (None, _) => {
                let said = error_page::describe(&body).map(|text| format!(": {text}"));
                let mut why = self.hide(&format!("HTTP {status}{}", said.unwrap_or_default()));
                if status == StatusCode::NOT_FOUND {
                    why.push_str("; see that its URL is right, path included");
                }
                // Who says when to come again has done nothing either.
                let is_for_now = matches!(
                    status,
                    StatusCode::REQUEST_TIMEOUT
                        | StatusCode::TOO_EARLY
                        | StatusCode::TOO_MANY_REQUESTS
                ) || (status == StatusCode::SERVICE_UNAVAILABLE
                    && retry_after.is_some());
                match is_for_now || status.is_client_error() {
                    true => Failure::Refused {
                        why,
                        is_for_now,
                        retry_after: retry_after.filter(|_| is_for_now),
                    },
                    false => Failure::Broken { why, sent: true, incident: incident() },
                }
            }
        }
    }
}

/// The error of JSON-RPC that a page has, if any.
fn error_in(body: &[u8]) -> Option<ErrorObject> {
    let messages = std::str::from_utf8(body).map(read).unwrap_or_default();
    messages.into_iter().find_map(|message| match message {
        Ok(Message::Error { error, .. }) => Some(error),
        _ => None,
    })
}

/// The seconds that it asks for. Dates are rare, and clocks differ.
fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let after = Duration::from_secs(value.trim().parse().ok()?);
    (after <= RETRY_AFTER_MAX).then_some(after)
}

enum Unread {
    TooLarge,
    Broken(reqwest::Error),
}

async fn body(mut response: reqwest::Response, limit: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broken)? {
        if body.len() + chunk.len() > limit {
            return Err(Unread::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
