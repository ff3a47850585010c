//! One message of ours, and what the server answers to it. Whatever goes wrong, whoever waits hears of it in our words.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse};

use super::{
    Failed, Going, Shared, WebError, challenge, events, explanation, has_type, is_refusal,
};
use crate::error::Credentials;
use crate::upstream::failure::{Failure, incident};
use crate::upstream::ledger;
use crate::upstream::lines::MESSAGE_BYTES_MAX;
use crate::upstream::message::{self, ErrorObject, Message};
use crate::upstream::ticket::Ticket;

/// So much of a page that is no answer is read, in case that it says why.
const EXPLANATION_BYTES: usize = 64 * 1024;
/// Whoever wants to be left alone for longer says nothing that helps.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The message that is posted, as far as its answer is concerned.
struct Posted<'p> {
    shared: &'p Arc<Shared>,
    /// Nothing where it is no request.
    id: Option<RequestId>,
    is_discovery: bool,
    /// The library waits for it before there is a connection.
    is_handshake: bool,
    ticket: Option<Ticket>,
    has_session: bool,
}

pub(super) async fn post(
    shared: &Arc<Shared>,
    uri: Arc<str>,
    message: ClientJsonRpcMessage,
    session: Option<Arc<str>>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> Result<StreamableHttpPostResponse, Failed> {
    let ticket = shared.ledger.going(&message);
    let (id, is_discovery, is_handshake) = match &message {
        ClientJsonRpcMessage::Request(request) => {
            let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
            let is_ours = ticket.is_none();
            (Some(request.id.clone()), is_discovery && is_ours, is_ours)
        }
        ClientJsonRpcMessage::Notification(notification) => {
            let notification = &notification.notification;
            let is_last = matches!(notification, ClientNotification::InitializedNotification(_));
            (None, false, is_last)
        }
        _ => (None, false, false),
    };
    let has_session = session.is_some();
    let posted = Posted { shared, id, is_discovery, is_handshake, ticket, has_session };
    let body = serde_json::to_vec(&message)?;
    shared.tap.sent(&body);
    let going = Going {
        method: Method::POST,
        uri,
        session,
        headers,
        last_event: None,
        body: Some(body.into()),
    };
    if let Some(ticket) = &posted.ticket {
        ticket.mark_sent();
    }
    let sent = shared.send(&going).await;
    shared.ledger.gone(ledger::answers(&message).as_ref());
    match sent {
        Ok((response, shown)) => posted.answered(response, shown).await,
        Err(failure) => {
            if let (Some(ticket), Failure::Broken { sent: false, .. }) = (&posted.ticket, &failure)
            {
                ticket.mark_unsent();
            }
            Err(posted.failed(failure))
        }
    }
}

impl Posted<'_> {
    async fn answered(
        self,
        response: reqwest::Response,
        shown: Credentials,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        if is_refusal(status) {
            return Err(self.turned_away(response, shown).await);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            if self.id.is_none() {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            let why = format!("it takes a request without answering it (HTTP {status})");
            return Err(self.failed(Failure::Protocol { why }));
        }
        if status == StatusCode::NOT_FOUND && self.has_session {
            if self.is_handshake {
                let why =
                    format!("it does not know the session that it has just begun (HTTP {status})");
                self.failed(Failure::Connect { why, incident: incident() });
            }
            if self.ticket.as_ref().is_some_and(|ticket| !ticket.loses_session()) {
                let why =
                    format!("it forgets its sessions at once, also a new one (HTTP {status})");
                return Err(self.failed(Failure::Protocol { why }));
            }
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.declined(response).await;
        }
        let session = response.headers().get(HEADER_SESSION_ID);
        let session = session.and_then(|value| value.to_str().ok()).map(str::to_owned);
        if has_type(&response, EVENT_STREAM_MIME_TYPE) {
            let stream = events::read(self.shared.clone(), response, self.ticket.clone());
            return Ok(StreamableHttpPostResponse::Sse(stream, session));
        }
        let Some(id) = self.id.clone() else { return Ok(StreamableHttpPostResponse::Accepted) };
        if !has_type(&response, JSON_MIME_TYPE) {
            let why = "its answer is neither JSON nor a stream of events; see that `mcp.url` is the address of an MCP server";
            return Err(self.failed(Failure::Protocol { why: why.to_owned() }));
        }
        let body = match body(response, MESSAGE_BYTES_MAX).await {
            Ok(body) => body,
            Err(Unread::TooLarge) => {
                return Err(self.failed(Failure::TooLarge { limit: MESSAGE_BYTES_MAX }));
            }
            Err(Unread::Broken(error)) => return Err(self.failed(self.shared.unreachable(error))),
        };
        self.shared.tap.received(&body);
        match self.heard(&body, &id) {
            Some(seen) => Ok(StreamableHttpPostResponse::Json(seen, session)),
            None => {
                let why = "its answer is none to what was asked".to_owned();
                Err(self.failed(Failure::Protocol { why }))
            }
        }
    }

    /// What the library must see of the answer.
    fn heard(&self, body: &[u8], id: &RequestId) -> Option<ServerJsonRpcMessage> {
        let mut answer = None;
        for message in message::read(std::str::from_utf8(body).ok()?) {
            let seen = self.shared.ledger.hear(message);
            answer = answer.or(seen.filter(|seen| match seen {
                ServerJsonRpcMessage::Response(response) => response.id == *id,
                ServerJsonRpcMessage::Error(error) => error.id.as_ref() == Some(id),
                _ => false,
            }));
        }
        answer
    }

    /// It does not let us in. What it says to that is often the only reason that there is.
    async fn turned_away(self, response: reqwest::Response, sent: Credentials) -> Failed {
        let status = response.status().as_u16();
        let challenge = challenge(&response);
        let body = body(response, EXPLANATION_BYTES).await.unwrap_or_default();
        if !body.is_empty() {
            self.shared.tap.received(&body);
        }
        let said = match error_in(&body) {
            Some(error) => explanation::of(error.message.as_bytes()),
            None => explanation::of(&body),
        };
        let said: Vec<String> = challenge.into_iter().chain(said).collect();
        let said = (!said.is_empty()).then(|| self.shared.hide(&said.join("; ")));
        self.failed(Failure::Unauthorized { status, sent, said })
    }

    /// A status that is an error. It may come with one of JSON-RPC, which says more.
    async fn declined(
        self,
        response: reqwest::Response,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let to = response
            .headers()
            .get(LOCATION)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let retry_after = retry_after(&response);
        let body = body(response, EXPLANATION_BYTES).await.unwrap_or_default();
        if !body.is_empty() {
            self.shared.tap.received(&body);
        }
        let error = error_in(&body);
        if let (Some(id), true) = (&self.id, self.is_discovery && status.is_client_error()) {
            // It is one of the old ones, which know no such request and answer with whatever they have.
            let error = error.map_or_else(
                || ErrorData::new(ErrorCode::INVALID_REQUEST, format!("HTTP {status}"), None),
                |error| {
                    let code = i32::try_from(error.code).unwrap_or(ErrorCode::INVALID_REQUEST.0);
                    ErrorData::new(ErrorCode(code), error.message, error.data)
                },
            );
            self.shared.ledger.forget(id);
            let message = ServerJsonRpcMessage::error(error, Some(id.clone()));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        let failure = match (error, to) {
            (Some(error), _) => {
                Failure::Upstream { code: error.code, message: error.message, data: error.data }
            }
            (None, Some(to)) if status.is_redirection() => {
                let why =
                    format!("it has moved to `{}`; put that into `mcp.url`", self.shared.hide(&to));
                Failure::Unusable { why }
            }
            (None, _) => {
                let said = explanation::of(&body).map(|text| format!(": {text}"));
                let mut why =
                    self.shared.hide(&format!("HTTP {status}{}", said.unwrap_or_default()));
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
        };
        Err(self.failed(failure))
    }

    /// Tells whoever waits, and then the library.
    fn failed(&self, failure: Failure) -> Failed {
        let text = failure.clone().into_error(self.shared.ledger.server()).to_string();
        match &self.ticket {
            Some(ticket) => {
                match (&self.id, &failure) {
                    (Some(id), Failure::Broken { sent: true, .. }) => {
                        self.shared.ledger.give_up(id);
                    }
                    (Some(id), _) => self.shared.ledger.forget(id),
                    (None, _) => {}
                }
                ticket.settle(Err(failure));
            }
            None if self.is_handshake => {
                // A handshake that breaks is one that can be tried again.
                self.shared.ledger.handshake().fail(match failure {
                    Failure::Broken { why, incident, .. } => Failure::Connect { why, incident },
                    Failure::Refused { why, .. } => Failure::Connect { why, incident: incident() },
                    Failure::Upstream { code, message, .. } => {
                        let why = format!("it refuses the handshake: {code} {message}");
                        Failure::Connect { why, incident: incident() }
                    }
                    other => other,
                });
            }
            None => {}
        }
        StreamableHttpError::Client(WebError(text))
    }
}

/// The error of JSON-RPC that a page has, if any.
fn error_in(body: &[u8]) -> Option<ErrorObject> {
    let messages = std::str::from_utf8(body).map(message::read).unwrap_or_default();
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
