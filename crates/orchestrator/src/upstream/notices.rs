//! What an upstream tells without being asked, as far as others want to hear of it. Lives as long as the upstream does,
//! whatever becomes of its connections.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;

use crate::pool::{Event, Kind};

pub(crate) struct Notices {
    server: String,
    events: broadcast::Sender<Event>,
    /// How often each list was said to have changed. What was fetched under an earlier count is outdated.
    changes: [AtomicU64; Kind::ALL.len()],
}

impl Notices {
    pub(crate) fn new(server: &str, events: broadcast::Sender<Event>) -> Self {
        Self { server: server.to_owned(), events, changes: Default::default() }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// The state of a list: as long as it stays the same, so does the list.
    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.changes[kind as usize].load(Ordering::Acquire)
    }

    /// The upstream says so.
    pub(crate) fn changed(&self, kind: Kind) {
        self.changes[kind as usize].fetch_add(1, Ordering::AcqRel);
        self.tell(Event::Changed { server: self.server.clone(), list: kind });
    }

    /// Another process or session of the same server may have other lists.
    pub(crate) fn connected(&self) {
        for count in &self.changes {
            count.fetch_add(1, Ordering::AcqRel);
        }
        self.tell(Event::Connected { server: self.server.clone() });
    }

    pub(crate) fn gone(&self) {
        self.tell(Event::Gone { server: self.server.clone() });
    }

    pub(crate) fn updated(&self, uri: String) {
        self.tell(Event::Updated { server: self.server.clone(), uri });
    }

    fn tell(&self, event: Event) {
        // Nobody has to listen.
        let _ = self.events.send(event);
    }
}
