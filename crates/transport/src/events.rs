//! A stream as the body of a response: server-sent events, with a sign of life when there is nothing to say.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::host::Principal;
use crate::limits::{KEEP_ALIVE, RETRY_MS, STREAM_TIME};
use crate::service;
use crate::stream::{Number, Stream};

/// How a client reads a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Once: who stops has no interest any more.
    Once,
    /// Events have ids, by which a client comes back.
    Resumable,
    /// The same, and the first one only tells the id.
    Primed,
}

pub(crate) struct Events {
    stream: Arc<Stream>,
    reading: Reading,
    reader: u64,
    next: Number,
    is_primed: bool,
    /// When to say that we are still there.
    quiet_until: Pin<Box<Sleep>>,
    ends_at: Instant,
    /// Whether its client is still let in.
    is_good: Option<IsGood>,
    /// What is given back when nobody reads any more.
    _held: Box<dyn Send>,
}

/// Asked before anything is said.
pub(crate) type IsGood = Box<dyn Fn() -> bool + Send>;

impl Events {
    /// Goes on behind the event with this number, or behind the last one there is.
    pub(crate) fn after(
        stream: Arc<Stream>,
        last: Number,
        reading: Reading,
        principal: Option<&Principal>,
        is_good: Option<IsGood>,
        held: impl Send + 'static,
    ) -> Response {
        // A client may say that it has read what was never said.
        let last = last.min(stream.newest());
        let reader = stream.attach();
        let now = Instant::now();
        let until = principal.and_then(|principal| principal.until);
        let rest = until.map(|until| Duration::from_millis(until.saturating_sub(service::now())));
        let time = rest.map_or(STREAM_TIME, |rest| rest.min(STREAM_TIME));
        let events = Self {
            stream,
            reading,
            reader,
            next: last + 1,
            is_primed: reading != Reading::Primed,
            quiet_until: Box::pin(sleep_until(now + KEEP_ALIVE.min(time))),
            ends_at: now + time,
            is_good,
            _held: Box::new(held),
        };
        let mut response = Response::new(Body::new(events));
        *response.status_mut() = StatusCode::OK;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        // A proxy that collects events first would make them late.
        let buffering = HeaderName::from_static("x-accel-buffering");
        headers.insert(buffering, HeaderValue::from_static("no"));
        response
    }

    fn text(&self, number: Number, message: &str) -> String {
        match self.reading {
            Reading::Once => format!("event: message\ndata: {message}\n\n"),
            Reading::Resumable | Reading::Primed => {
                let id = self.stream.event_id(number);
                format!("event: message\nid: {id}\ndata: {message}\n\n")
            }
        }
    }

    fn poll_text(&mut self, context: &mut Context<'_>) -> Poll<Option<String>> {
        if !self.is_primed {
            self.is_primed = true;
            let id = self.stream.event_id(self.next - 1);
            return Poll::Ready(Some(format!("id: {id}\nretry: {RETRY_MS}\ndata: \n\n")));
        }
        if Instant::now() >= self.ends_at || self.is_good.as_ref().is_some_and(|is_good| !is_good())
        {
            return Poll::Ready(None);
        }
        match self.stream.poll_next(self.reader, self.next, context) {
            Poll::Ready(Some((number, message))) => {
                self.next = number + 1;
                let text = self.text(number, &message);
                if self.reading == Reading::Once {
                    self.stream.forget_through(number);
                }
                return Poll::Ready(Some(text));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        if self.quiet_until.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let now = Instant::now();
        if now >= self.ends_at {
            return Poll::Ready(None);
        }
        let quiet_until = (now + KEEP_ALIVE).min(self.ends_at);
        self.quiet_until.as_mut().reset(quiet_until);
        // Polled once, so that it wakes us.
        let _ = self.quiet_until.as_mut().poll(context);
        Poll::Ready(Some(":\n\n".to_owned()))
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_text(context).map(|text| text.map(|text| Ok(Frame::data(Bytes::from(text)))))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if !self.stream.detach(self.reader) {
            self.stream.abandon();
        }
    }
}
