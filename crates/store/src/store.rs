//! The store as callers see it: each verb, with what it promises. It holds no state of sessions; every answer comes from
//! the database below it.

use std::path::Path;
use std::sync::Arc;

use crate::backend::{Backend, Done, Ending, Newer, Pruning, Replacing, Sharing};
use crate::backup::Backup;
use crate::chain::{Chain, Key};
use crate::changes::{Change, Mark};
use crate::counter::Counter;
use crate::error::Error;
use crate::export::{ExportedLog, export};
use crate::figures::{Figures, Measured};
use crate::import::{self, Adoption};
use crate::limits::{self, PRUNE_SESSIONS_MAX};
use crate::list::{Cursor, Filter, Page};
use crate::model::{
    Append, Counts, Created, Document, Event, EventPage, Log, Meta, NewSession, Order, Status,
    Usage, Version,
};
use crate::postgres::{Address, Postgres};
use crate::sqlite::Sqlite;
use crate::verify::Verified;

/// The logs of sessions in one database. Clones share it; when the last one goes, what is queued is still written.
/// Several stores on one database, in one process or many, are safe.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    measured: Arc<Measured>,
}

impl Store {
    /// Opens the file, or makes it and its folder, for the owner's eyes only. The key makes the chain of events
    /// proof against people who do not have it; a store is opened with the key that it was made with.
    pub fn open(path: &Path, key: Option<Key>) -> Result<Self, Error> {
        Ok(Self::on(Sqlite::open(path, Chain::new(key))?))
    }

    /// The same in a PostgreSQL, with at most so many connections. Asks nothing of it yet.
    pub fn connect(address: &Address, key: Option<Key>, connections: usize) -> Result<Self, Error> {
        let store = Self::looking(address, key, connections)?;
        store.backend.allow_making();
        Ok(store)
    }

    /// The same for who only looks: nothing is made where there is nothing. [`Store::is_made`] says whether there is.
    pub fn looking(address: &Address, key: Option<Key>, connections: usize) -> Result<Self, Error> {
        Ok(Self::on(Postgres::new(address, Chain::new(key), connections)?))
    }

    /// What is not there yet is made from now on, when it is needed.
    pub fn allow_making(&self) {
        self.backend.allow_making();
    }

    pub fn is_made(&self) -> Result<bool, Error> {
        self.backend.is_made()
    }

    fn on(backend: impl Backend + 'static) -> Self {
        Self { backend: Arc::new(backend), measured: Arc::default() }
    }

    /// Reads, and remembers how long that took.
    fn read<T>(&self, read: impl FnOnce(&dyn Backend) -> Result<T, Error>) -> Result<T, Error> {
        self.measured.read.time(|| read(&*self.backend))
    }

    /// The same for what happens seldom.
    fn other<T>(&self, run: impl FnOnce(&dyn Backend) -> Result<T, Error>) -> Result<T, Error> {
        self.measured.other.time(|| run(&*self.backend))
    }

    /// Begins a session. Waits only for a place in the queue.
    pub fn create(&self, session: NewSession, done: Done<Created>) {
        let done = self.measured.create(done);
        match limits::new_session(&session) {
            Ok(()) => self.backend.create(Box::new(session), done),
            Err(error) => done(Err(error)),
        }
    }

    /// Adds an event. Waits only for a place in the queue.
    pub fn append(&self, append: Append, done: Done<Version>) {
        let done = self.measured.append(done);
        match limits::append(&append) {
            Ok(()) => self.backend.append(Box::new(append), done),
            Err(error) => done(Err(error)),
        }
    }

    /// Begins a session and waits until that is durable.
    pub fn create_now(&self, session: NewSession) -> Result<Created, Error> {
        limits::new_session(&session)?;
        self.measured.created_by(|| self.backend.create_now(Box::new(session)))
    }

    /// Adds an event and waits until that is durable.
    pub fn append_now(&self, append: Append) -> Result<Version, Error> {
        limits::append(&append)?;
        self.measured.appended_by(|| self.backend.append_now(Box::new(append)))
    }

    pub fn meta(&self, session: &str) -> Result<Option<Meta>, Error> {
        self.read(|backend| backend.meta(session))
    }

    /// What a session's state is computed from: its snapshot and the events after it.
    pub fn load(&self, session: &str) -> Result<Option<Log>, Error> {
        let log = self.read(|backend| backend.load(session))?;
        self.measured.page_read(log.as_ref().map_or(&[], |log| &log.events));
        Ok(log)
    }

    /// What was written after a version, where that can be told for less than loading the session costs.
    pub(crate) fn newer(&self, session: &str, than: Version) -> Result<Newer, Error> {
        self.read(|backend| backend.newer(session, than))
    }

    /// Events from a version on: at most [`limits::PAGE_MAX`] of them, and of [`limits::PAGE_BYTES_MAX`] bytes of bodies
    /// or one event.
    pub fn events(&self, session: &str, from: Version, limit: usize) -> Result<Vec<Event>, Error> {
        let order = Order::OldestFirst;
        self.page(session, EventPage { from, order, limit, omit_bodies_of: None })
    }

    pub(crate) fn page(&self, session: &str, page: EventPage) -> Result<Vec<Event>, Error> {
        let events = self.read(|backend| backend.events(session, page))?;
        self.measured.page_read(&events);
        Ok(events)
    }

    /// The last event that was appended with this revision.
    pub fn event_at_revision(&self, session: &str, revision: u64) -> Result<Option<Event>, Error> {
        limits::number("revision", revision)?;
        self.read(|backend| backend.event_at_revision(session, revision))
    }

    pub fn definition(&self, hash: &str) -> Result<Option<String>, Error> {
        self.read(|backend| backend.definition(hash))
    }

    pub fn list(&self, filter: &Filter) -> Result<Page, Error> {
        self.read(|backend| backend.list(filter))
    }

    /// The sessions whose ids begin so, in the order of ids: for people, who do not type a whole one.
    pub fn beginning_with(&self, beginning: &str, limit: usize) -> Result<Vec<Meta>, Error> {
        self.read(|backend| backend.beginning_with(beginning, limit))
    }

    /// Sessions that have all words of the query (beginnings count, from three letters on) in their workflow and
    /// goal, or in one event. The last that matched comes first.
    pub fn search(
        &self,
        query: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Meta>, Error> {
        self.read(|backend| backend.search(query, owner, limit))
    }

    /// Shares a session with somebody, or ends that. What is so already stays so.
    pub fn share(&self, session: &str, principal: &str, is_on: bool) -> Result<(), Error> {
        limits::principal(principal)?;
        let (session, principal) = (session.to_owned(), principal.to_owned());
        self.other(|backend| backend.share(Sharing { session, principal, is_on }))
    }

    pub fn is_shared(&self, session: &str, principal: &str) -> Result<bool, Error> {
        self.read(|backend| backend.is_shared(session, principal))
    }

    /// Whom a session is shared with, in the order of their names.
    pub fn shares(&self, session: &str) -> Result<Vec<String>, Error> {
        self.read(|backend| backend.shares(session))
    }

    /// The sessions that are shared with somebody and have one of these states, the newest first, at most
    /// [`limits::PAGE_MAX`].
    pub fn shared_with(
        &self,
        principal: &str,
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<Meta>, Error> {
        self.read(|backend| backend.shared_with(principal, statuses, limit))
    }

    /// Where we are: what is written from now on comes after it.
    pub fn mark(&self) -> Result<Mark, Error> {
        self.read(|backend| backend.mark())
    }

    /// What was written since, at most [`limits::PAGE_MAX`] events, and how far that goes.
    pub fn changes(&self, since: &Mark) -> Result<(Mark, Vec<Change>), Error> {
        self.read(|backend| backend.changes(since))
    }

    /// Computes the chain of a session anew.
    pub fn verify(&self, session: &str) -> Result<Verified, Error> {
        self.other(|backend| backend.verify(session))
    }

    /// The sessions as the table has them, the oldest first: for who doubts the database. Ids are bytes, since what was
    /// changed need not be text any more.
    pub fn ids(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Vec<(Cursor, Vec<u8>)>, Error> {
        self.other(|backend| backend.ids(after, limit))
    }

    /// Whether there is a session at this place, whatever its id.
    pub fn is_there(&self, at: Cursor) -> Result<bool, Error> {
        self.other(|backend| backend.is_there(at))
    }

    /// What the database itself finds wrong with its files, at most [`limits::FILE_FLAWS_MAX`] sentences. It may read all
    /// of them.
    pub fn file_flaws(&self) -> Result<Vec<String>, Error> {
        self.other(|backend| backend.file_flaws())
    }

    /// How far the store has come; none where it was not counted yet. Fails where the counter was forged.
    pub fn counter(&self) -> Result<Option<Counter>, Error> {
        self.other(|backend| backend.counter())
    }

    /// What is wrong with the counter, each in a sentence. It may look at all sessions.
    pub fn counter_flaws(&self) -> Result<Vec<String>, Error> {
        self.other(|backend| backend.counter_flaws())
    }

    /// Has what was written until now counted, where that is not done with every write.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.other(|backend| backend.checkpoint())
    }

    /// Copies the store into a new file while others write, as it was at one moment, and verifies the copy. None: the
    /// database is a server that has tools of its own for that.
    pub fn backup(&self, target: &Path) -> Result<Option<Backup>, Error> {
        self.other(|backend| backend.backup(target))
    }

    /// Removes at most `limit` complete sessions that were last appended to before this time, the oldest first,
    /// with everything that is theirs. Says how many.
    pub fn prune(&self, older_than: u64, limit: usize) -> Result<usize, Error> {
        limits::number("time", older_than)?;
        let mut removed = 0;
        while removed < limit {
            let pruning = Pruning { older_than, limit: PRUNE_SESSIONS_MAX.min(limit - removed) };
            let now = self.other(|backend| backend.prune(pruning))?;
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
        self.read(|backend| backend.prunable(older_than))
    }

    /// Remembers that a handshake was ended, until it would have ended anyway, and waits until that is durable.
    pub fn end_handshake(&self, id: [u8; 16], until: u64, now: u64) -> Result<(), Error> {
        limits::number("time", until.max(now))?;
        self.other(|backend| backend.end_handshake(Ending { id, until, now }))
    }

    /// Whether some process was told so.
    pub fn has_ended(&self, id: &[u8; 16]) -> Result<bool, Error> {
        self.backend.has_ended(id)
    }

    /// Whether a call has to wait for a network, and must not be made by a thread that others wait for.
    pub fn is_remote(&self) -> bool {
        self.backend.is_remote()
    }

    /// Looks after the database from now on, for a process that serves others: [`Store::is_away`] tells what was seen, and
    /// [`Store::has_ended`] does not wait any more.
    pub fn keep_watch(&self) {
        self.backend.keep_watch();
    }

    pub fn is_away(&self) -> bool {
        self.backend.is_away()
    }

    pub fn export(&self, session: &str) -> Result<ExportedLog, Error> {
        self.other(|backend| export(backend, session))
    }

    /// Takes in an exported log, whose it becomes by `adoption`. `search` says what an event is to be found by.
    pub fn import(
        &self,
        log: &ExportedLog,
        adoption: &Adoption,
        search: &dyn Fn(&Event) -> Option<String>,
    ) -> Result<(), Error> {
        let log = Box::new(import::check(log, adoption, search)?);
        self.other(|backend| backend.import(log))
    }

    /// A text under a name that processes share; none where nobody has written one.
    pub fn document(&self, name: &str) -> Result<Option<Document>, Error> {
        self.other(|backend| backend.document(name))
    }

    /// Writes a text in the place of the one of that version. Says whether it was still that one: otherwise nothing was
    /// written.
    pub fn replace_document(&self, name: &str, document: Document) -> Result<bool, Error> {
        limits::document(&document)?;
        let replacing = Replacing { name: name.to_owned(), document };
        self.other(|backend| backend.replace_document(replacing))
    }

    /// How it fares. Asks nobody, and waits for nothing.
    pub fn figures(&self) -> Figures {
        self.measured.figures(self.backend.pool())
    }

    /// How many sessions there are, by how they stand. Of the complete ones a server knows about how many.
    pub fn counts(&self) -> Result<Counts, Error> {
        self.other(|backend| backend.counts())
    }

    /// What one owner has here. Goes through all of the owner's events, without their texts, so it is not for every
    /// call.
    pub fn usage(&self, owner: &str) -> Result<Usage, Error> {
        self.other(|backend| backend.usage(owner))
    }
}
