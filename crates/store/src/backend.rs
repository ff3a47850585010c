//! The border that a database is put under: what [`crate::Store`] needs of one. What comes in was checked before.

use std::fmt;
use std::path::Path;
use std::sync::mpsc::sync_channel;

use crate::backup::Backup;
use crate::changes::{Change, Mark};
use crate::counter::Counter;
use crate::error::Error;
use crate::figures::PoolFigures;
use crate::import::Incoming;
use crate::list::{Cursor, Filter, Page};
use crate::model::{
    Append, Counts, Created, Document, Event, EventPage, Log, Meta, NewSession, Status, Usage,
    Version,
};
use crate::verify::Verified;

/// Told once how a write ended: on the store's thread, or at once on the caller's where the arguments are
/// refused. It must be quick, and must not wait for the same store: it would wait for itself.
pub type Done<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

pub(crate) trait Backend: fmt::Debug + Send + Sync {
    fn create(&self, session: Box<NewSession>, done: Done<Created>);
    fn append(&self, append: Box<Append>, done: Done<Version>);

    fn create_now(&self, session: Box<NewSession>) -> Result<Created, Error> {
        wait(|done| self.create(session, done))
    }

    fn append_now(&self, append: Box<Append>) -> Result<Version, Error> {
        wait(|done| self.append(append, done))
    }

    fn import(&self, log: Box<Incoming>) -> Result<(), Error>;
    fn share(&self, sharing: Sharing) -> Result<(), Error>;
    fn prune(&self, pruning: Pruning) -> Result<usize, Error>;
    fn prunable(&self, older_than: u64) -> Result<usize, Error>;

    fn meta(&self, session: &str) -> Result<Option<Meta>, Error>;
    fn load(&self, session: &str) -> Result<Option<Log>, Error>;
    /// What was written after a version. A backend may not know, and then the session is loaded.
    fn newer(&self, _session: &str, _than: Version) -> Result<Newer, Error> {
        Ok(Newer::Unknown)
    }
    fn events(&self, session: &str, page: EventPage) -> Result<Vec<Event>, Error>;
    fn event_at_revision(&self, session: &str, revision: u64) -> Result<Option<Event>, Error>;
    fn definition(&self, hash: &str) -> Result<Option<String>, Error>;
    fn list(&self, filter: &Filter) -> Result<Page, Error>;
    fn beginning_with(&self, beginning: &str, limit: usize) -> Result<Vec<Meta>, Error>;
    fn search(&self, query: &str, owner: Option<&str>, limit: usize) -> Result<Vec<Meta>, Error>;
    fn is_shared(&self, session: &str, principal: &str) -> Result<bool, Error>;
    fn shares(&self, session: &str) -> Result<Vec<String>, Error>;
    fn shared_with(
        &self,
        principal: &str,
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<Meta>, Error>;
    fn mark(&self) -> Result<Mark, Error>;
    fn changes(&self, since: &Mark) -> Result<(Mark, Vec<Change>), Error>;

    fn verify(&self, session: &str) -> Result<Verified, Error>;
    fn ids(&self, after: Option<Cursor>, limit: usize) -> Result<Vec<(Cursor, Vec<u8>)>, Error>;
    fn is_there(&self, at: Cursor) -> Result<bool, Error>;
    fn file_flaws(&self) -> Result<Vec<String>, Error>;

    /// How far the store has come; none where nothing was counted yet.
    fn counter(&self) -> Result<Option<Counter>, Error>;
    /// What is wrong with the counter, each in a sentence.
    fn counter_flaws(&self) -> Result<Vec<String>, Error>;
    /// Counts what was written, where that is not done with every write.
    fn checkpoint(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Copies the database into a new file; none where its own server does that.
    fn backup(&self, _target: &Path) -> Result<Option<Backup>, Error> {
        Ok(None)
    }

    fn counts(&self) -> Result<Counts, Error>;
    fn usage(&self, owner: &str) -> Result<Usage, Error>;

    fn document(&self, name: &str) -> Result<Option<Document>, Error>;
    /// Replaces the document of that version. Says whether it was still that one.
    fn replace_document(&self, replacing: Replacing) -> Result<bool, Error>;

    /// The connections that are lent, where some are.
    fn pool(&self) -> Option<PoolFigures> {
        None
    }

    /// What is not there yet is made from now on, when it is needed.
    fn allow_making(&self) {}

    /// Whether there is something to look at.
    fn is_made(&self) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether a call has to wait for a network.
    fn is_remote(&self) -> bool {
        false
    }

    /// Looks after the database from now on, for a process that serves others.
    fn keep_watch(&self) {}

    /// Whether the last look has shown that it is.
    fn is_away(&self) -> bool {
        false
    }

    fn end_handshake(&self, ending: Ending) -> Result<(), Error>;
    fn has_ended(&self, id: &[u8; 16]) -> Result<bool, Error>;
}

/// What was written after a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Newer {
    /// All of it, in order.
    Events(Vec<Event>),
    Unknown,
}

/// A text in the place of the one of its version.
#[derive(Debug, Clone)]
pub(crate) struct Replacing {
    pub(crate) name: String,
    pub(crate) document: Document,
}

/// A handshake that came to its end, and until when it would have been good.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) id: [u8; 16],
    pub(crate) until: u64,
    pub(crate) now: u64,
}

/// A session that is shared with somebody from now on, or is not any more.
#[derive(Debug, Clone)]
pub(crate) struct Sharing {
    pub(crate) session: String,
    pub(crate) principal: String,
    pub(crate) is_on: bool,
}

/// Complete sessions to remove, the oldest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pruning {
    pub(crate) older_than: u64,
    pub(crate) limit: usize,
}

/// Sends with a callback that hands the answer to us.
pub(crate) fn wait<T: Send + 'static>(send: impl FnOnce(Done<T>)) -> Result<T, Error> {
    let (sender, receiver) = sync_channel(1);
    send(Box::new(move |result| {
        let _ = sender.send(result);
    }));
    receiver.recv().unwrap_or_else(|_| Err(Error::Unavailable("the store is closed".to_owned())))
}
