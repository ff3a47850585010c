//! Messages of ours, and what the server answers to them. Whatever goes wrong, whoever waits hears of it in our words.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::{LOCATION, RETRY_AFTER};
use mcp::client::{
    ErrorObject, EventParser, EventTooLarge, MESSAGE_BYTES_MAX, Message, Request, RequestId,
    Resumption, read,
};

use super::{
    EVENTS, Going, JSON, SESSION, Shared, challenge, explanation, has_type, is_refusal, lock,
    sleep, timeout,
};
use crate::error::Credentials;
use crate::upstream::failure::{Failure, incident};
use crate::upstream::in_flight::Sent;

/// How much of a page that is no answer is read, in case that it says why.
const EXPLANATION_BYTES: usize = 64 * 1024;
/// Whoever wants to be left alone for longer says nothing that helps.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the end of a stream is waited for after its answer, so that its connection can be used again.
const REST: Duration = Duration::from_millis(50);
/// JSON-RPC's code for what is no request.
const INVALID_REQUEST: i64 = -32600;

/// A request that is posted.
pub(in crate::upstream) struct Posted<'p> {
    pub(in crate::upstream) id: RequestId,
    pub(in crate::upstream) request: &'p Request,
    pub(in crate::upstream) headers: Vec<(String, String)>,
    pub(in crate::upstream) text: String,
    pub(in crate::upstream) sent: &'p Sent,
}

/// What came of a request.
pub(in crate::upstream) enum Exchanged {
    /// Whoever waits has the answer.
    Answered,
    /// The server does not know the session of this number.
    SessionLost { number: u64, status: StatusCode },
}

impl Posted<'_> {
    pub(super) async fn exchange(&self, shared: &Arc<Shared>) -> Result<Exchanged, Failure> {
        let is_handshake = self.request.is_handshake();
        let (session, number) = {
            let session = lock(&shared.session);
            (session.id.clone().filter(|_| !is_handshake), session.number)
        };
        let going = Going::post(&self.text, session, &self.headers);
        shared.tap.sent(self.text.as_bytes());
        self.sent.set(true);
        let (response, shown) = match shared.send(&going).await {
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
        if status == StatusCode::NOT_FOUND && going.session.is_some() {
            return Ok(Exchanged::SessionLost { number, status });
        }
        if !status.is_success() {
            let is_probe = is_handshake
                && self.request.method() == "server/discover"
                && status.is_client_error();
            return Err(match shared.declined(response).await {
                // It is one of the old ones, which know no such request and answer with whatever they have.
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
            let mut session = lock(&shared.session);
            (session.id, session.number, session.stream) = (id, number + 1, None);
        }
        if has_type(&response, EVENTS) {
            let session = lock(&shared.session).id.clone();
            let headers = &self.headers;
            return follow(shared, response, Some(self.id), session, headers).await;
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
        match shared.hear(text, Some(self.id)) {
            true => Ok(Exchanged::Answered),
            false => {
                let why = "its answer is none to what was asked".to_owned();
                Err(Failure::Protocol { why })
            }
        }
    }
}

/// Posts what is no request.
pub(super) async fn send(
    shared: &Arc<Shared>,
    text: String,
    headers: &[(String, String)],
) -> Result<(), Failure> {
    shared.tap.sent(text.as_bytes());
    let going = Going::post(&text, lock(&shared.session).id.clone(), headers);
    let (response, shown) = shared.send(&going).await?;
    let status = response.status();
    if is_refusal(status) {
        return Err(shared.turned_away(response, shown).await);
    }
    if status == StatusCode::NOT_FOUND && going.session.is_some() {
        let why = format!("it does not know the session that it has just begun (HTTP {status})");
        return Err(Failure::Connect { why, incident: incident() });
    }
    match status.is_success() {
        true => Ok(()),
        false => Err(shared.declined(response).await),
    }
}

/// Asks for the stream that belongs to no request, and hears what comes, for ever.
pub(super) async fn listen(
    shared: &Arc<Shared>,
    session: String,
    headers: Vec<(String, String)>,
) -> Result<Exchanged, Failure> {
    let going = Going { session: Some(session.clone()), ..Going::get(&headers) };
    match events(shared, &going).await {
        Ok(response) => follow(shared, response, None, Some(session), &headers).await,
        Err(Unopened::Never(failure) | Unopened::Now(failure)) => Err(failure),
    }
}

/// Hears the events of a response until the request of `origin` is answered; what belongs to no request, for ever. A stream
/// that breaks is read on where the server has said from where.
async fn follow(
    shared: &Arc<Shared>,
    response: reqwest::Response,
    origin: Option<RequestId>,
    session: Option<String>,
    headers: &[(String, String)],
) -> Result<Exchanged, Failure> {
    let ended = || {
        let why = "it ended before it answered".to_owned();
        Failure::Broken { why, sent: true, incident: incident() }
    };
    let mut resumption = Resumption::default();
    let mut response = Some(response);
    loop {
        if let Some(response) = response.take()
            && hear_events(shared, response, origin, &mut resumption).await?
        {
            return Ok(Exchanged::Answered);
        }
        if origin.is_some() && resumption.last_event().is_none() {
            return Err(ended());
        }
        sleep(resumption.pause()).await;
        let last_event = resumption.last_event();
        let going = Going { session: session.clone(), last_event, ..Going::get(headers) };
        match events(shared, &going).await {
            Ok(resumed) => {
                resumption.connected();
                response = Some(resumed);
            }
            Err(Unopened::Never(_)) if origin.is_some() => return Err(ended()),
            Err(Unopened::Never(failure)) => return Err(failure),
            Err(Unopened::Now(_)) => resumption.failed(),
        }
    }
}

/// Hears the events of one response. Says whether the request of `origin` was answered.
async fn hear_events(
    shared: &Arc<Shared>,
    mut response: reqwest::Response,
    origin: Option<RequestId>,
    resumption: &mut Resumption,
) -> Result<bool, Failure> {
    let mut parser = EventParser::default();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(false),
            Err(error) => {
                let error = error.without_url();
                tracing::debug!(server = shared.in_flight.server(), "a stream breaks: {error}");
                return Ok(false);
            }
        };
        let too_large = |EventTooLarge| Failure::TooLarge { limit: MESSAGE_BYTES_MAX };
        let mut is_answered = false;
        for event in parser.read(&chunk).map_err(too_large)? {
            resumption.hear(&event);
            if let Some(text) = event.message() {
                shared.tap.received(text.as_bytes());
                is_answered |= shared.hear(text, origin);
            }
        }
        if is_answered {
            let rest = async move { while let Ok(Some(_)) = response.chunk().await {} };
            tokio::spawn(timeout(REST, rest));
            return Ok(true);
        }
    }
}

/// Why there is no stream.
enum Unopened {
    /// Asking again would change nothing.
    Never(Failure),
    Now(Failure),
}

async fn events(shared: &Arc<Shared>, going: &Going<'_>) -> Result<reqwest::Response, Unopened> {
    let (response, shown) = shared.send(going).await.map_err(Unopened::Now)?;
    let status = response.status();
    if is_refusal(status) {
        return Err(Unopened::Never(shared.turned_away(response, shown).await));
    }
    let is_forgotten = status == StatusCode::NOT_FOUND && going.session.is_some();
    let why = format!("HTTP {status}");
    if status == StatusCode::METHOD_NOT_ALLOWED || is_forgotten {
        return Err(Unopened::Never(Failure::Protocol { why }));
    }
    if !status.is_success() {
        return Err(Unopened::Now(Failure::Protocol { why }));
    }
    if !has_type(&response, EVENTS) {
        let why = "it is no stream of events".to_owned();
        return Err(Unopened::Never(Failure::Protocol { why }));
    }
    Ok(response)
}

impl Shared {
    /// Takes in the messages of a text. Says whether the request of `origin` was answered.
    fn hear(&self, text: &str, origin: Option<RequestId>) -> bool {
        let mut is_answered = false;
        for message in read(text) {
            let answered = self.in_flight.hear(message, origin);
            is_answered |= answered.is_some() && answered == origin;
        }
        is_answered
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
            Some(error) => explanation::of(error.message.as_bytes()),
            None => explanation::of(&body),
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
                let said = explanation::of(&body).map(|text| format!(": {text}"));
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
