//! Reads a body, within bounds of size and time. What has arrived is counted, so that many large bodies at once cost a
//! bounded amount of memory, and whoever only announces one keeps nobody out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;

use crate::admission::{Admission, Place};
use crate::answer::Refused;
use crate::connections::Owner;
use crate::limits::{BODY_BYTES_MAX, BODY_BYTES_SMALL, LARGE_BODIES_SHARE};

/// The memory that large bodies have together. No owner can take it all from the others.
#[derive(Debug)]
pub(crate) struct BodyBudget(Arc<Admission>);

/// A body, and the memory that is counted for it until this is dropped.
#[derive(Debug)]
pub(crate) struct BufferedBody {
    pub(crate) bytes: Bytes,
    _place: Place,
}

impl BodyBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Admission::shared(bytes, LARGE_BODIES_SHARE))
    }

    /// Reads a body of this owner. Refuses it as soon as it is too large.
    pub(crate) async fn read(
        &self,
        owner: Owner,
        headers: &HeaderMap,
        body: Body,
        time: Duration,
        on_bytes: impl Fn(usize),
    ) -> Result<BufferedBody, Refused> {
        if let Some(length) = headers.get(CONTENT_LENGTH) {
            let length = length.to_str().ok().and_then(|length| length.parse::<usize>().ok());
            if length.ok_or(Refused::Broken)? > BODY_BYTES_MAX {
                return Err(Refused::TooLarge);
            }
        }
        let reading = tokio::time::timeout(time, self.collect(owner, body, on_bytes));
        reading.await.map_err(|_| Refused::TooSlow)?
    }

    /// Nearly every body comes in one piece, and is taken as it is.
    async fn collect(
        &self,
        owner: Owner,
        mut body: Body,
        on_bytes: impl Fn(usize),
    ) -> Result<BufferedBody, Refused> {
        let mut first = Bytes::new();
        let mut all: Option<BytesMut> = None;
        let mut place = self.0.empty_place(owner);
        while let Some(frame) = body.frame().await {
            let Ok(piece) = frame.map_err(|_| Refused::Broken)?.into_data() else { continue };
            on_bytes(piece.len());
            let length = all.as_ref().map_or(first.len(), BytesMut::len) + piece.len();
            reserve(&mut place, length)?;
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
        Ok(BufferedBody { bytes: all.map_or(first, BytesMut::freeze), _place: place })
    }
}

/// Counts the bytes that a body has by now, unless it is small.
fn reserve(place: &mut Place, length: usize) -> Result<(), Refused> {
    if length > BODY_BYTES_MAX {
        return Err(Refused::TooLarge);
    }
    if length <= BODY_BYTES_SMALL.max(place.amount()) {
        return Ok(());
    }
    match place.resize(length.next_multiple_of(BODY_BYTES_SMALL)) {
        true => Ok(()),
        false => Err(Refused::Busy),
    }
}
