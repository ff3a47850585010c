//! What a list of sessions is asked for, and a page of it.

#[cfg(doc)]
use crate::limits::PAGE_MAX;
use crate::model::{Meta, Status};

/// What to list; an absent or empty field takes all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub owner: Option<String>,
    /// Any of these.
    pub statuses: Vec<Status>,
    pub workflow: Option<String>,
    /// Where the last page ended.
    pub before: Option<Cursor>,
    /// How many, at most [`PAGE_MAX`].
    pub limit: usize,
}

/// A place in the order in which sessions were begun here. It holds whatever is appended or removed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor(pub(crate) i64);

impl Cursor {
    /// For a caller that hands it to somebody else and gets it back.
    pub fn to_number(self) -> i64 {
        self.0
    }

    pub fn from_number(number: i64) -> Self {
        Self(number)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub sessions: Vec<Meta>,
    /// Absent where nothing follows.
    pub next: Option<Cursor>,
}
