//! A stream by GET, for clients with a handshake: what they are told without having asked, or a stream that they come
//! back to.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::response::Response;

use crate::answer::Refused;
use crate::events::{Events, Reading};
use crate::handshake_token::Id;
use crate::host::{Host, Principal};
use crate::metrics::Metrics;
use crate::post::accepts;
use crate::service::{LAST_EVENT, Service, check_version};
use crate::stream::LastEvent;

pub(crate) fn get<H: Host>(
    service: &Arc<Service<H>>,
    parts: &Parts,
    principal: Option<&Principal>,
) -> Result<Response, Refused> {
    if !accepts(&parts.headers, "text/event-stream") {
        return Err(Refused::NotAcceptable("`text/event-stream`"));
    }
    check_version(&parts.headers)?;
    let had = service.handshake(&parts.headers, principal)?;
    if service.is_draining() {
        return Err(Refused::Draining);
    }
    service.budgets.check(principal).map_err(Refused::OverBudget)?;
    let place = service.streams.enter(principal).ok_or(Refused::Busy)?;
    let is_good = service.is_good(principal);
    let primes = had.handshake.revision.traits().sse_priming;
    let reading = if primes { Reading::Primed } else { Reading::Resumable };
    let last = match parts.headers.get(LAST_EVENT) {
        None => None,
        Some(last) => {
            let last = last.to_str().ok().and_then(LastEvent::read);
            Some(last.ok_or(Refused::BadLastEvent)?)
        }
    };
    if let Some(LastEvent { stream: number, number: seen, request: Some(request) }) = &last {
        Metrics::add(&service.metrics.resumed);
        let stream = service.peers.answering(&had.id, *number).unwrap_or_else(|| {
            // Another process had it, or it is too long ago: its client must not wait for ever.
            let stream = service.new_stream(Some(request));
            stream.push(mcp::http::lost(request));
            stream.end();
            stream
        });
        let seen = if stream.number() == *number { *seen } else { 0 };
        return Ok(Events::after(stream, seen, Reading::Resumable, principal, is_good, place));
    }
    // It hears of lists without having asked.
    service.host.followed();
    let make = || service.new_peer(principal, &had);
    let scope = principal.map(|principal| &*principal.scope);
    let stream = service.peers.enter(had.id, had.until, scope, make).ok_or(Refused::Busy)?;
    let left = Left { service: Arc::clone(service), id: had.id };
    match last {
        Some(last) if last.stream == stream.number() => {
            Metrics::add(&service.metrics.resumed);
            let reading = Reading::Resumable;
            Ok(Events::after(stream, last.number, reading, principal, is_good, (place, left)))
        }
        _ => {
            let newest = stream.newest();
            Ok(Events::after(stream, newest, reading, principal, is_good, (place, left)))
        }
    }
}

/// Somebody has stopped reading.
struct Left<H: Host> {
    service: Arc<Service<H>>,
    id: Id,
}

impl<H: Host> Drop for Left<H> {
    fn drop(&mut self) {
        self.service.peers.leave(&self.id);
    }
}
