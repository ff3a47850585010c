//! What goes in and what comes out: sessions, their heads and their events. Nothing here says how or where it
//! is stored.

use serde::{Deserialize, Serialize};

use crate::limits::PAGE_BYTES_MAX;

/// How many events a session has, and the number of the last of them. The first is 1.
pub type Version = u64;

/// A session to begin. Times are milliseconds since 1970.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: String,
    /// Who repeats a start with the same key gets the session that it began. Keys of different owners
    /// do not meet.
    pub key: Option<String>,
    pub owner: String,
    /// Who may have to do with it besides, from its beginning on.
    pub shared_with: Vec<String>,
    pub workflow: String,
    pub goal: String,
    pub definition: Definition,
    pub event: NewEvent,
    pub head: Head,
    pub time: u64,
}

/// What a session follows, pinned by a hash of the caller's; stored once per hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    pub hash: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    New,
    /// The key was used before, for this session.
    Existing(String),
}

/// An event to add, if the session is still at the expected version.
#[derive(Debug, Clone)]
pub struct Append {
    pub session: String,
    pub expected: Version,
    pub event: NewEvent,
    pub head: Head,
    /// The state after this event, in the caller's form, so that the next load is short. Only a cache.
    pub snapshot: Option<String>,
    /// The session was complete before this event, and is not any more: with whom it is shared counts again.
    pub is_reopened: bool,
    pub time: u64,
}

#[derive(Debug, Clone, Default)]
pub struct NewEvent {
    pub kind: String,
    /// JSON, kept to the byte.
    pub body: String,
    /// The revision that this event answers, to find it again by.
    pub revision: Option<u64>,
    /// A digest of the call that led to it, to tell a repeated call from another.
    pub digest: Option<[u8; 32]>,
    /// What a search finds the session by. It is indexed and not kept.
    pub search: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub version: Version,
    pub time: u64,
    pub kind: String,
    pub revision: Option<u64>,
    pub digest: Option<[u8; 32]>,
    pub body: String,
}

/// Where a session stands: what a list shows without reading events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub status: Status,
    pub step: Option<String>,
    pub revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    Waiting,
    Complete,
}

impl Status {
    pub(crate) const ALL: [Self; 3] = [Self::Running, Self::Waiting, Self::Complete];

    /// As it is stored. Never use a number again for something else.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Running => 0,
            Self::Waiting => 1,
            Self::Complete => 2,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Complete => "complete",
        }
    }

    pub(crate) fn of(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }
}

/// A small text that processes share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// How often it was written; 0 where it never was.
    pub version: Version,
    pub text: String,
}

/// How many sessions stand how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub running: u64,
    pub waiting: u64,
    pub complete: u64,
}

/// What one owner has in the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Sessions that are not complete.
    pub open_sessions: u64,
    /// Bytes of events, of all sessions.
    pub stored_bytes: u64,
}

/// A session without its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub id: String,
    pub key: Option<String>,
    pub owner: String,
    pub workflow: String,
    pub goal: String,
    /// The definition's hash.
    pub definition: String,
    /// When it began, and when it was last appended to.
    pub created: u64,
    pub touched: u64,
    pub version: Version,
    pub head: Head,
    /// A part of its log was read from a file.
    pub is_imported: bool,
}

/// A session as it is loaded: the newest snapshot, if there is one, and the events after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub meta: Meta,
    pub snapshot: Option<Snapshot>,
    pub events: Vec<Event>,
    /// More events follow than one page holds. All of them were verified; [`crate::Store::events`] reads them.
    pub is_cut: bool,
}

/// A page of a log, bounded by [`crate::limits::PAGE_MAX`] and [`crate::limits::PAGE_BYTES_MAX`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventPage {
    /// The first event of the page.
    pub(crate) from: Version,
    pub(crate) order: Order,
    pub(crate) limit: usize,
    /// Events of this kind come with an empty body, which costs neither reading nor memory.
    pub(crate) omit_bodies_of: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    OldestFirst,
    NewestFirst,
}

/// Counts the bytes of a page while it is filled.
#[derive(Debug, Default)]
pub(crate) struct PageBudget {
    bytes: usize,
}

impl PageBudget {
    /// Whether the next event still belongs to the page. The first always does.
    pub(crate) fn admits(&mut self, event: &Event) -> bool {
        let is_first = self.bytes == 0;
        self.bytes = self.bytes.saturating_add(event.body.len());
        is_first || self.bytes <= PAGE_BYTES_MAX
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub version: Version,
    pub text: String,
}
