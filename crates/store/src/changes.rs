//! What was written since somebody looked last, by whatever process.

use std::time::Instant;

use crate::model::Status;

/// How far somebody has looked. What it holds is the backend's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(pub(crate) Seen);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Everything up to this event: where there is one writer, events are numbered in the order of their commits.
    Upto(i64),
    /// The same where there are many writers: these numbers below it were taken and not seen yet.
    Except { upto: i64, missing: Vec<Missing> },
}

/// An event that may still come, and since when it is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) event: i64,
    pub(crate) since: Instant,
}

impl Mark {
    /// Before everything that was ever written.
    pub const BEGINNING: Self = Self(Seen::Upto(0));

    pub(crate) fn upto(&self) -> i64 {
        match self.0 {
            Seen::Upto(upto) | Seen::Except { upto, .. } => upto,
        }
    }
}

/// An event that was written since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub session: String,
    pub owner: String,
    pub kind: String,
    /// As the session stands now.
    pub status: Status,
    /// Whom it is shared with now, where that was no more to ask; otherwise [`crate::Store::shares`] knows.
    pub shared_with: Option<Vec<String>>,
}
