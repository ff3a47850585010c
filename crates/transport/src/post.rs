//! A message by POST: what it is, and the way to its answer. A plain answer is JSON; whatever else there is to say
//! before it makes it a stream.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use mcp::http::{Kind, Legacy};
use parking_lot::Mutex;

use crate::answer::{self, BAD_MESSAGE, Refused};
use crate::events::{Events, Reading};
use crate::exchange::{AtOnce, Client, Exchange, give_way};
use crate::handshake_token::Had;
use crate::host::{Host, Principal};
use crate::limits::{BODY_BYTES_SMALL, SILENCE};
use crate::peers::Keeping;
use crate::service::{SESSION, Service};
use crate::stream::{First, Stream};

pub(crate) async fn post<H: Host>(
    service: &Arc<Service<H>>,
    parts: &Parts,
    principal: Option<&Principal>,
    body: Body,
) -> Result<Response, Refused> {
    let headers = &parts.headers;
    if !is_json(headers) {
        return Err(Refused::UnsupportedMediaType);
    }
    if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
        return Err(Refused::NotAcceptable("`application/json` and `text/event-stream`"));
    }
    let entered = service.enter(principal);
    // What brings something to its end is taken all the same.
    let reply_place = match &entered {
        Ok(_) => None,
        Err(_) => Some(service.replies.enter(principal).ok_or(Refused::Busy)?),
    };
    let read = service.read(principal, parts, body).await?;
    let bytes = &read.bytes;
    service.host.heard(bytes);
    let may_begin = entered.is_ok();
    let taken = match bytes.len() > BODY_BYTES_SMALL {
        false => take(service, headers, principal, bytes, may_begin)?,
        true => take_on_thread(service, headers, principal, bytes, may_begin).await?,
    };
    let place = match (&taken, entered) {
        (Taken::Beyond, Err(refused)) => return Err(refused),
        (_, entered) => entered.ok(),
    };
    match taken {
        Taken::Answered(response) => Ok(response),
        // It was not let in, and has been told so.
        Taken::Beyond => Err(Refused::Busy),
        Taken::Modern(exchange) => {
            let bytes = exchange.connection().followed_bytes();
            let share = service.followed.enter_with(principal, bytes);
            let share = share.ok_or(Refused::Busy)?;
            let stream = service.new_stream(None);
            let abandoned = Abandoned(Some(Arc::clone(&stream)));
            tokio::spawn(exchange.run(Arc::clone(&stream), Client::Modern));
            let reading = Reading::Once;
            let response = respond(service, principal, &stream, reading, None, share).await?;
            abandoned.not_any_more();
            // From here on it is an answer, or a stream, which are counted on their own.
            drop((place, read));
            Ok(response)
        }
        Taken::Legacy { exchange, had, request, is_answered } => {
            let stream = service.new_stream(request.as_ref());
            let client = Client::Handshaken { client: had.id, request };
            let running = exchange.run(Arc::clone(&stream), client);
            let (own, saying) = (Arc::clone(service), Arc::clone(&stream));
            let kept = Arc::new(Mutex::new(place));
            let place = Arc::clone(&kept);
            tokio::spawn(async move {
                running.await;
                own.peers.answered(&saying);
                drop((place, reply_place, read));
            });
            if !is_answered {
                // What it says is taken, also if it is not acted upon yet. It is never a stream.
                let over = poll_fn(|context| stream.poll_first(context));
                let _ = tokio::time::timeout(SILENCE, over).await;
                return Ok(answer::empty(StatusCode::ACCEPTED));
            }
            let primes = had.handshake.revision.traits().sse_priming;
            let reading = if primes { Reading::Primed } else { Reading::Resumable };
            let response = respond(service, principal, &stream, reading, Some(&had), ()).await?;
            // What waits for a person is counted among the streams from now on, also while nobody reads it.
            if stream.has_reader()
                && let Some(place) = service.streams.enter(principal)
            {
                *kept.lock() = Some(place);
            }
            Ok(response)
        }
    }
}

/// What came of a message at once.
enum Taken<H: Host> {
    Answered(Response),
    /// It begins something, and may not.
    Beyond,
    /// It goes on.
    Modern(Exchange<H>),
    Legacy {
        exchange: Exchange<H>,
        had: Had,
        request: Option<mcp::Id>,
        is_answered: bool,
    },
}

/// The same for a large body, which would hold up those who share the thread: in its principal's turn, on another one.
async fn take_on_thread<H: Host>(
    service: &Arc<Service<H>>,
    headers: &HeaderMap,
    principal: Option<&Principal>,
    bytes: &Bytes,
    may_begin: bool,
) -> Result<Taken<H>, Refused> {
    let name = principal.map(|principal| Arc::clone(&principal.name));
    let permit = service.thread(name).await.ok_or(Refused::Busy)?;
    let (service, bytes) = (Arc::clone(service), bytes.clone());
    let (headers, principal) = (headers.clone(), principal.cloned());
    let taking = move || {
        // Also if nobody waits for it any more.
        let _permit = permit;
        give_way();
        take(&service, &headers, principal.as_ref(), &bytes, may_begin)
    };
    let taken = tokio::task::spawn_blocking(taking).await;
    taken.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        // The runtime ends.
        Err(_) => Err(Refused::Draining),
    })
}

/// Reads a message and takes it, as far as that can be done at once.
fn take<H: Host>(
    service: &Arc<Service<H>>,
    headers: &HeaderMap,
    principal: Option<&Principal>,
    bytes: &Bytes,
    may_begin: bool,
) -> Result<Taken<H>, Refused> {
    let read = || {
        let body = mcp::Body::read(strip_mark(bytes));
        let kind = mcp::http::classify(&body, &Named(headers), &service.host.server());
        (body, kind)
    };
    let (body, kind) = match principal.filter(|_| bytes.len() > BODY_BYTES_SMALL) {
        Some(principal) => service.budgets.measure(Some(&principal.name), read),
        None => read(),
    };
    let kind = match kind {
        Ok(kind) => kind,
        Err(reply) => {
            service.metrics.refused(BAD_MESSAGE);
            service.host.said(&reply.text);
            return Ok(Taken::Answered(answer::json(reply)));
        }
    };
    let is_reply = matches!(
        kind,
        Kind::Legacy(Legacy::Answer(_) | Legacy::Cancelled(_) | Legacy::Notification)
    );
    if !may_begin && !is_reply {
        return Ok(Taken::Beyond);
    }
    let accepted = || Taken::Answered(answer::empty(StatusCode::ACCEPTED));
    match kind {
        Kind::Ignored => Ok(accepted()),
        Kind::Modern => {
            let mut exchange = Exchange::new(Arc::clone(service), service.peer(principal, None));
            Ok(match exchange.take(body) {
                AtOnce::Answer(reply) => Taken::Answered(answer::json(reply)),
                AtOnce::Nothing => accepted(),
                AtOnce::GoesOn => Taken::Modern(exchange),
            })
        }
        Kind::Initialize => {
            let mut exchange = Exchange::new(Arc::clone(service), service.peer(principal, None));
            let AtOnce::Answer(reply) = exchange.take(body) else { return Ok(accepted()) };
            let mut response = answer::json(reply);
            if let Some(token) = service.new_handshake(exchange.connection(), principal) {
                response.headers_mut().insert(HeaderName::from_static(SESSION), token);
            }
            Ok(Taken::Answered(response))
        }
        Kind::Legacy(kind) => {
            let had = service.handshake(headers, principal)?;
            let is_answered = matches!(kind, Legacy::Request(_) | Legacy::Batch);
            let is_answer = matches!(kind, Legacy::Answer(_));
            let keep =
                |body, keeping| keep(service, principal, &had, body, keeping).map(Taken::Answered);
            let request = match kind {
                Legacy::Answer(id) if service.routes.answer(had.id, &id, bytes.clone()) => {
                    return Ok(accepted());
                }
                Legacy::Cancelled(id) => {
                    service.routes.cancel(&(had.id, id), bytes.clone());
                    return Ok(accepted());
                }
                Legacy::Subscribes(_) => return keep(body, Keeping::More),
                Legacy::Keeps(_) => return keep(body, Keeping::NoMore),
                Legacy::Request(id) => Some(id),
                Legacy::Answer(_) | Legacy::Batch | Legacy::Notification => None,
            };
            let peer = service.peer(principal, Some(&had));
            let mut exchange = Exchange::new(Arc::clone(service), peer);
            match exchange.take(body) {
                AtOnce::Answer(reply) => Ok(Taken::Answered(answer::json(reply))),
                AtOnce::Nothing if is_answer && !exchange.has_settled() => {
                    Err(Refused::NobodyAsked)
                }
                AtOnce::Nothing => Ok(accepted()),
                AtOnce::GoesOn => Ok(Taken::Legacy { exchange, had, request, is_answered }),
            }
        }
    }
}

/// A message that changes what is kept for its client here.
fn keep<H: Host>(
    service: &Arc<Service<H>>,
    principal: Option<&Principal>,
    had: &Had,
    body: mcp::Body<'_>,
    keeping: Keeping,
) -> Result<Response, Refused> {
    let make = || service.new_peer(principal, had);
    service.host.followed();
    let scope = principal.map(|principal| &*principal.scope);
    let follow = |connection: &mcp::Connection| service.host.follow(connection);
    let reply = service.peers.take(had, scope, body, keeping, make, follow);
    let reply = reply.ok_or(Refused::Busy)?;
    service.host.said(&reply.text);
    Ok(answer::json(reply))
}

/// The answer as JSON if it comes alone and soon, and as a stream otherwise.
async fn respond<H: Host>(
    service: &Arc<Service<H>>,
    principal: Option<&Principal>,
    stream: &Arc<Stream>,
    reading: Reading,
    had: Option<&Had>,
    held: impl Send + 'static,
) -> Result<Response, Refused> {
    let first = poll_fn(|context| stream.poll_first(context));
    match tokio::time::timeout(SILENCE, first).await {
        Ok(First::Answer(reply)) => Ok(answer::json(reply)),
        Ok(First::Nothing) => Ok(answer::empty(StatusCode::ACCEPTED)),
        Ok(First::Events) | Err(_) => {
            let place = service.streams.enter(principal).ok_or(Refused::Busy)?;
            if let Some(had) = had {
                service.peers.keep(had.id, stream);
            }
            let is_good = service.is_good(principal);
            let stream = Arc::clone(stream);
            Ok(Events::after(stream, 0, reading, principal, is_good, (place, held)))
        }
    }
}

/// A client of the modern era that goes away before it has an answer takes its request back.
struct Abandoned(Option<Arc<Stream>>);

impl Abandoned {
    fn not_any_more(mut self) {
        self.0 = None;
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            stream.abandon();
        }
    }
}

/// The headers of a request, by their names.
struct Named<'a>(&'a HeaderMap);

impl mcp::http::Headers for Named<'_> {
    fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(|value| value.as_bytes())
    }
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// Whether a client takes this; one that does not say takes anything.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let family = kind.split('/').next().unwrap_or_default();
    values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|range| {
        let range = range.split(';').next().unwrap_or_default().trim();
        range.eq_ignore_ascii_case(kind)
            || range == "*/*"
            || range.strip_suffix("/*").is_some_and(|wanted| wanted.eq_ignore_ascii_case(family))
    })
}

/// Some editors put a mark in front of a text.
fn strip_mark(bytes: &Bytes) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    bytes.trim_ascii()
}
