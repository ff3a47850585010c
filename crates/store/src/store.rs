//! The store as callers see it: each verb, and which thread does it. It holds no state of sessions; every answer comes
//! from the file.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use crate::chain::{Chain, Key};
use crate::changes::{self, Change, Mark};
use crate::ended::{self, Ending};
use crate::error::Error;
use crate::export::{ExportedLog, export};
use crate::import;
use crate::index::has_waiting;
use crate::limits::{self, PRUNE_SESSIONS_MAX};
use crate::list::{Cursor, Filter, Page, beginning_with, ids, is_there, list};
use crate::model::{Append, Created, Event, Log, Meta, NewSession, Version};
use crate::prune::{self, Pruning};
use crate::read;
use crate::readers::Readers;
use crate::schema;
use crate::search::search;
use crate::verify::{Verified, file_flaws, verify};
use crate::writer::{Done, Write, Writer};

/// The logs of sessions in one file. Clones share it; when the last one goes, what is queued is still written.
/// Several stores on one file, in one process or many, are safe.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    chain: Chain,
    // Goes first, and with it the queue.
    writer: Writer,
    readers: Readers,
}

impl Store {
    /// Opens the file, or makes it and its folder, for the owner's eyes only. The key makes the chain of events
    /// proof against people who do not have it; a store is opened with the key that it was made with.
    pub fn open(path: &Path, key: Option<Key>) -> Result<Self, Error> {
        let chain = Chain::new(key);
        let connection = schema::prepare(path, &chain)?;
        let writer = Writer::start(path.to_path_buf(), chain.clone(), connection)?;
        let readers = Readers::new(path.to_path_buf());
        Ok(Self(Arc::new(Inner { chain, writer, readers })))
    }

    /// Begins a session. Waits only for a place in the queue.
    pub fn create(&self, session: NewSession, done: Done<Created>) {
        match limits::new_session(&session) {
            Ok(()) => self.0.writer.send(Write::Create(Box::new(session), done)),
            Err(error) => done(Err(error)),
        }
    }

    /// Adds an event. Waits only for a place in the queue.
    pub fn append(&self, append: Append, done: Done<Version>) {
        match limits::append(&append) {
            Ok(()) => self.0.writer.send(Write::Append(Box::new(append), done)),
            Err(error) => done(Err(error)),
        }
    }

    /// Begins a session and waits until that is durable.
    pub fn create_now(&self, session: NewSession) -> Result<Created, Error> {
        limits::new_session(&session)?;
        wait(|done| self.0.writer.write_or_send(Write::Create(Box::new(session), done)))
    }

    /// Adds an event and waits until that is durable.
    pub fn append_now(&self, append: Append) -> Result<Version, Error> {
        limits::append(&append)?;
        wait(|done| self.0.writer.write_or_send(Write::Append(Box::new(append), done)))
    }

    pub fn meta(&self, session: &str) -> Result<Option<Meta>, Error> {
        let found = self.0.readers.read(|connection| read::meta(connection, session))?;
        Ok(found.map(|(_, meta)| meta))
    }

    /// What a session's state is computed from: its snapshot and the events after it.
    pub fn load(&self, session: &str) -> Result<Option<Log>, Error> {
        self.0.readers.read(|connection| read::load(connection, &self.0.chain, session))
    }

    /// Events from a version on, at most [`limits::PAGE_MAX`] of them.
    pub fn events(&self, session: &str, from: Version, limit: usize) -> Result<Vec<Event>, Error> {
        self.0.readers.read(|connection| read::page(connection, session, from, limit))
    }

    /// The last event that was appended with this revision.
    pub fn event_at_revision(&self, session: &str, revision: u64) -> Result<Option<Event>, Error> {
        limits::number("revision", revision)?;
        self.0.readers.read(|connection| read::event_at_revision(connection, session, revision))
    }

    pub fn definition(&self, hash: &str) -> Result<Option<String>, Error> {
        self.0.readers.read(|connection| read::definition(connection, hash))
    }

    pub fn list(&self, filter: &Filter) -> Result<Page, Error> {
        self.0.readers.read(|connection| list(connection, filter))
    }

    /// The sessions whose ids begin so, in the order of ids: for people, who do not type a whole one.
    pub fn beginning_with(&self, beginning: &str, limit: usize) -> Result<Vec<Meta>, Error> {
        self.0.readers.read(|connection| beginning_with(connection, beginning, limit))
    }

    /// Sessions that have all words of the query (beginnings count, from three letters on) in their workflow and
    /// goal, or in one event. The last that matched comes first.
    pub fn search(
        &self,
        query: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Meta>, Error> {
        if self.0.readers.read(|connection| has_waiting(connection))? {
            // On a full disk what is indexed already can still be found.
            let _ = wait(|done| self.0.writer.write_or_send(Write::Index(done)));
        }
        self.0.readers.read(|connection| search(connection, query, owner, limit))
    }

    /// Where we are: what is written from now on comes after it.
    pub fn mark(&self) -> Result<Mark, Error> {
        self.0.readers.read(|connection| changes::mark(connection))
    }

    /// What was written since, at most [`limits::PAGE_MAX`] events, and how far that goes.
    pub fn changes(&self, since: Mark) -> Result<(Mark, Vec<Change>), Error> {
        self.0.readers.read(|connection| changes::changes(connection, since))
    }

    /// Computes the chain of a session anew.
    pub fn verify(&self, session: &str) -> Result<Verified, Error> {
        self.0.readers.read(|connection| verify(connection, &self.0.chain, session))
    }

    /// The sessions as the table has them, the oldest first: for who doubts the file. Ids are bytes, since what was
    /// changed need not be text any more.
    pub fn ids(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Vec<(Cursor, Vec<u8>)>, Error> {
        self.0.readers.read(|connection| ids(connection, after, limit))
    }

    /// Whether there is a session at this place, whatever its id.
    pub fn is_there(&self, at: Cursor) -> Result<bool, Error> {
        self.0.readers.read(|connection| is_there(connection, at))
    }

    /// What SQLite itself finds wrong with the file, at most [`limits::FILE_FLAWS_MAX`] sentences. It reads all of it.
    pub fn file_flaws(&self) -> Result<Vec<String>, Error> {
        self.0.readers.read(|connection| file_flaws(connection))
    }

    /// Removes at most `limit` complete sessions that were last appended to before this time, the oldest first,
    /// with everything that is theirs. Says how many.
    pub fn prune(&self, older_than: u64, limit: usize) -> Result<usize, Error> {
        limits::number("time", older_than)?;
        let mut removed = 0;
        while removed < limit {
            let pruning = Pruning { older_than, limit: PRUNE_SESSIONS_MAX.min(limit - removed) };
            let now = wait(|done| self.0.writer.send(Write::Prune(pruning, done)))?;
            removed += now;
            if now < pruning.limit {
                break;
            }
        }
        Ok(removed)
    }

    /// How many sessions [`Store::prune`] would remove without a limit.
    pub fn prunable(&self, older_than: u64) -> Result<usize, Error> {
        limits::number("time", older_than)?;
        self.0.readers.read(|connection| prune::count(connection, older_than))
    }

    /// Remembers that a handshake was ended, until it would have ended anyway, and waits until that is durable.
    pub fn end_handshake(&self, id: [u8; 16], until: u64, now: u64) -> Result<(), Error> {
        limits::number("time", until.max(now))?;
        let ending = Ending { id, until, now };
        wait(|done| self.0.writer.write_or_send(Write::End(ending, done)))
    }

    /// Whether some process was told so.
    pub fn has_ended(&self, id: &[u8; 16]) -> Result<bool, Error> {
        self.0.readers.read(|connection| ended::has_ended(connection, id))
    }

    pub fn export(&self, session: &str) -> Result<ExportedLog, Error> {
        self.0.readers.read(|connection| export(connection, &self.0.chain, session))
    }

    /// Takes in an exported log. `search` says what an event is to be found by.
    pub fn import(
        &self,
        log: &ExportedLog,
        search: &dyn Fn(&Event) -> Option<String>,
    ) -> Result<(), Error> {
        let incoming = Box::new(import::check(log, search)?);
        wait(|done| self.0.writer.send(Write::Import(incoming, done)))
    }
}

/// Sends with a callback that hands the answer to us.
fn wait<T: Send + 'static>(send: impl FnOnce(Done<T>)) -> Result<T, Error> {
    let (sender, receiver) = sync_channel(1);
    send(Box::new(move |result| {
        let _ = sender.send(result);
    }));
    receiver.recv().unwrap_or_else(|_| Err(Error::Unavailable("the store is closed".to_owned())))
}
