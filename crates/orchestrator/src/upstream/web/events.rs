//! A stream of events: each message in it is heard by us first, and the library gets what it must see.

use std::sync::Arc;

use futures::StreamExt as _;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use super::parser::{Parser, TooLarge};
use super::{Shared, Stream};
use crate::upstream::failure::Failure;
use crate::upstream::lines::MESSAGE_BYTES_MAX;
use crate::upstream::message;
use crate::upstream::ticket::Ticket;

/// Reads the body of a response. `ticket` is of the request that it answers, if it answers one.
pub(super) fn read(
    shared: Arc<Shared>,
    response: reqwest::Response,
    ticket: Option<Ticket>,
) -> Stream {
    let mut parser = Parser::default();
    let stop = shared.stop.clone();
    let events = response.bytes_stream().flat_map(move |chunk| {
        futures::stream::iter(match chunk.map(|chunk| parser.read(&chunk)) {
            Ok(Ok(events)) => events.into_iter().flat_map(|event| heard(&shared, event)).collect(),
            Ok(Err(TooLarge)) => {
                if let Some(ticket) = &ticket {
                    ticket.settle(Err(Failure::TooLarge { limit: MESSAGE_BYTES_MAX }));
                }
                vec![broken("an event is too large")]
            }
            Err(error) => vec![broken(error.without_url())],
        })
    });
    events.take_until(stop.cancelled_owned()).boxed()
}

fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Result<Sse, SseError> {
    Err(SseError::Body(why.into()))
}

fn heard(shared: &Shared, mut event: Sse) -> Vec<Result<Sse, SseError>> {
    if !matches!(event.event.as_deref(), None | Some("" | "message")) {
        return vec![Ok(event)];
    }
    // Without data it may still say from where to go on.
    let Some(data) = event.data.take().filter(|data| !data.trim().is_empty()) else {
        return vec![Ok(event)];
    };
    shared.tap.received(data.as_bytes());
    let messages = message::read(&data);
    let is_single = messages.len() == 1;
    let mut events = Vec::new();
    for message in messages {
        let Some(seen) = shared.ledger.hear(message) else { continue };
        let is_answer =
            matches!(seen, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_));
        let data = match (is_answer, is_single) {
            // As it came: the library reads it itself.
            (false, true) => Some(data.clone()),
            _ => serde_json::to_string(&seen).ok(),
        };
        events.push(Ok(Sse { data, ..Sse::default() }));
    }
    match events.last_mut() {
        Some(Ok(last)) => {
            last.id = event.id;
            last.retry = event.retry;
        }
        _ => events.push(Ok(event)),
    }
    events
}
