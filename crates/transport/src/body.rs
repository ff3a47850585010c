//! Reads a body, within bounds of size and time. What is read is counted, so that many large bodies at once cost a
//! bounded amount of memory.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::Refused;
use crate::limits::{BODIES_BYTES_MAX, BODY_BYTES_MAX, BODY_BYTES_SMALL, BODY_TIME};

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
    pub(crate) async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Read, Refused> {
        // Who does not say how much it is may send as much as anybody.
        let stated = match headers.get(CONTENT_LENGTH) {
            None if body.is_end_stream() => 0,
            None => BODY_BYTES_MAX,
            Some(length) => {
                let length = length.to_str().ok().and_then(|length| length.parse().ok());
                length.ok_or(Refused::Broken)?
            }
        };
        if stated > BODY_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let is_small = stated <= BODY_BYTES_SMALL;
        let room = match u32::try_from(stated) {
            Ok(stated) if !is_small => {
                let room = Arc::clone(&self.0).try_acquire_many_owned(stated);
                Some(room.map_err(|_| Refused::Busy)?)
            }
            _ => None,
        };
        let reading = tokio::time::timeout(BODY_TIME, collect(body));
        let bytes = reading.await.map_err(|_| Refused::TooSlow)??;
        Ok(Read { bytes, _room: room })
    }
}

/// Nearly every body comes in one piece, and is taken as it is.
async fn collect(mut body: Body) -> Result<Bytes, Refused> {
    let mut first = Bytes::new();
    let mut all: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| Refused::Broken)?.into_data() else { continue };
        match &mut all {
            None if first.is_empty() => first = piece,
            None => {
                let mut both = BytesMut::with_capacity(first.len() + piece.len());
                both.extend_from_slice(&first);
                both.extend_from_slice(&piece);
                all = Some(both);
            }
            Some(all) => all.extend_from_slice(&piece),
        }
        if all.as_ref().map_or(first.len(), BytesMut::len) > BODY_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
    }
    Ok(all.map_or(first, BytesMut::freeze))
}
