//! Reads a body, within bounds of size and time. What has arrived is counted, so that many large bodies at once cost a
//! bounded amount of memory, and whoever only announces one keeps nobody out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::Refused;
use crate::limits::{BODIES_BYTES_MAX, BODY_BYTES_MAX, BODY_BYTES_SMALL};

/// What large bodies have together.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BODIES_BYTES_MAX)))
    }
}

/// A body, and the room that it takes as long as it is needed.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        time: Duration,
        on_bytes: impl Fn(usize),
    ) -> Result<Read, Refused> {
        if let Some(length) = headers.get(CONTENT_LENGTH) {
            let length = length.to_str().ok().and_then(|length| length.parse::<usize>().ok());
            if length.ok_or(Refused::Broken)? > BODY_BYTES_MAX {
                return Err(Refused::TooLarge);
            }
        }
        let reading = tokio::time::timeout(time, self.collect(body, on_bytes));
        reading.await.map_err(|_| Refused::TooSlow)?
    }

    /// Nearly every body comes in one piece, and is taken as it is.
    async fn collect(&self, mut body: Body, on_bytes: impl Fn(usize)) -> Result<Read, Refused> {
        let mut first = Bytes::new();
        let mut all: Option<BytesMut> = None;
        let mut taken = None;
        while let Some(frame) = body.frame().await {
            let Ok(piece) = frame.map_err(|_| Refused::Broken)?.into_data() else { continue };
            on_bytes(piece.len());
            let length = all.as_ref().map_or(first.len(), BytesMut::len) + piece.len();
            self.make(length, &mut taken)?;
            match &mut all {
                None if first.is_empty() => first = piece,
                None => {
                    let mut both = BytesMut::with_capacity(length);
                    both.extend_from_slice(&first);
                    both.extend_from_slice(&piece);
                    all = Some(both);
                }
                Some(all) => all.extend_from_slice(&piece),
            }
        }
        Ok(Read { bytes: all.map_or(first, BytesMut::freeze), _room: taken })
    }

    /// Makes room for a body that has so many bytes by now.
    fn make(&self, length: usize, taken: &mut Option<OwnedSemaphorePermit>) -> Result<(), Refused> {
        if length > BODY_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let had = taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if length <= BODY_BYTES_SMALL.max(had) {
            return Ok(());
        }
        let more = (length - had).next_multiple_of(BODY_BYTES_SMALL);
        let more = u32::try_from(more).map_err(|_| Refused::TooLarge)?;
        let more = Arc::clone(&self.0).try_acquire_many_owned(more).map_err(|_| Refused::Busy)?;
        match taken {
            Some(taken) => taken.merge(more),
            None => *taken = Some(more),
        }
        Ok(())
    }
}
