//! The store in one SQLite file: one thread that writes, and a few connections that read beside it.

use std::path::Path;

use crate::backend::{Backend, Done, Ending, Pruning, Replacing, Sharing, wait};
use crate::backup::Backup;
use crate::chain::Chain;
use crate::changes::{Change, Mark};
use crate::counter::Counter;
use crate::error::Error;
use crate::import::Incoming;
use crate::list::{Cursor, Filter, Page};
use crate::model::{
    Append, Counts, Created, Document, Event, EventPage, Log, Meta, NewSession, Status, Usage,
    Version,
};
use crate::verify::Verified;

mod append;
mod backup;
mod changes;
mod counter;
mod create;
mod documents;
mod ended;
mod files;
mod import;
mod index;
mod list;
#[cfg(test)]
mod plans;
mod prune;
mod read;
mod readers;
mod reserve;
mod schema;
mod search;
mod shares;
mod verify;
mod writer;

use files::OpenStore;
use readers::Readers;
use reserve::Reserve;
use writer::{Write, Writer};

#[derive(Debug)]
pub(crate) struct Sqlite {
    chain: Chain,
    // Goes first, and with it the queue.
    writer: Writer,
    readers: Readers,
    reserve: Reserve,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, chain: Chain) -> Result<Self, Error> {
        let reserve = Reserve::beside(path);
        let opened = match Self::open_without_reserve(path, chain.clone()) {
            // A full disk has no room for the index of the log either, which says that reading and writing failed.
            Err(Error::Unavailable(_) | Error::DiskFull(_)) if reserve.release_for_opening() => {
                Self::open_without_reserve(path, chain)?
            }
            opened => {
                let opened = opened?;
                reserve.fill();
                opened
            }
        };
        Ok(opened)
    }

    /// For a file that is soon moved elsewhere.
    fn open_without_reserve(path: &Path, chain: Chain) -> Result<Self, Error> {
        let opened = OpenStore::new(path, schema::prepare(path, &chain)?)?;
        let files = opened.files().clone();
        let writer = Writer::start(chain.clone(), opened)?;
        let readers = Readers::new(files);
        Ok(Self { chain, writer, readers, reserve: Reserve::beside(path) })
    }

    fn prune_some(&self, pruning: Pruning) -> Result<usize, Error> {
        wait(|done| self.writer.send(Write::Prune(pruning, done)))
    }

    /// Removes sessions where there is no room for the log to grow: the reserve makes room for what is in the log
    /// already, and then each removal writes over what was carried over before it.
    fn prune_on_full_disk(&self, pruning: Pruning) -> Result<usize, Error> {
        self.reserve.release();
        let mut removed = 0;
        while removed < pruning.limit {
            self.carry_log_over()?;
            let now = self.prune_some(Pruning { limit: 1, ..pruning })?;
            removed += now;
            if now == 0 {
                break;
            }
        }
        self.carry_log_over()?;
        self.reserve.fill();
        Ok(removed)
    }

    /// Has the next write begin the log anew.
    fn carry_log_over(&self) -> Result<(), Error> {
        let opened = OpenStore::reconnect(self.readers.files())?;
        opened.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))?;
        Ok(())
    }
}

impl Backend for Sqlite {
    fn create(&self, session: Box<NewSession>, done: Done<Created>) {
        self.writer.send(Write::Create(session, done));
    }

    fn append(&self, append: Box<Append>, done: Done<Version>) {
        self.writer.send(Write::Append(append, done));
    }

    fn create_now(&self, session: Box<NewSession>) -> Result<Created, Error> {
        wait(|done| self.writer.write_or_send(Write::Create(session, done)))
    }

    fn append_now(&self, append: Box<Append>) -> Result<Version, Error> {
        wait(|done| self.writer.write_or_send(Write::Append(append, done)))
    }

    fn import(&self, log: Box<Incoming>) -> Result<(), Error> {
        wait(|done| self.writer.send(Write::Import(log, done)))
    }

    fn share(&self, sharing: Sharing) -> Result<(), Error> {
        wait(|done| self.writer.write_or_send(Write::Share(sharing, done)))
    }

    fn prune(&self, pruning: Pruning) -> Result<usize, Error> {
        match self.prune_some(pruning) {
            Err(Error::DiskFull(_)) => self.prune_on_full_disk(pruning),
            pruned => pruned,
        }
    }

    fn prunable(&self, older_than: u64) -> Result<usize, Error> {
        self.readers.read(|connection| prune::count(connection, older_than))
    }

    fn meta(&self, session: &str) -> Result<Option<Meta>, Error> {
        let found = self.readers.read(|connection| read::meta(connection, session))?;
        Ok(found.map(|(_, meta)| meta))
    }

    fn load(&self, session: &str) -> Result<Option<Log>, Error> {
        self.readers.read(|connection| read::load(connection, &self.chain, session))
    }

    fn events(&self, session: &str, page: EventPage) -> Result<Vec<Event>, Error> {
        self.readers.read(|connection| read::page(connection, session, &page))
    }

    fn event_at_revision(&self, session: &str, revision: u64) -> Result<Option<Event>, Error> {
        self.readers.read(|connection| read::event_at_revision(connection, session, revision))
    }

    fn definition(&self, hash: &str) -> Result<Option<String>, Error> {
        self.readers.read(|connection| read::definition(connection, hash))
    }

    fn list(&self, filter: &Filter) -> Result<Page, Error> {
        self.readers.read(|connection| list::list(connection, filter))
    }

    fn beginning_with(&self, beginning: &str, limit: usize) -> Result<Vec<Meta>, Error> {
        self.readers.read(|connection| list::beginning_with(connection, beginning, limit))
    }

    fn search(&self, query: &str, owner: Option<&str>, limit: usize) -> Result<Vec<Meta>, Error> {
        if self.readers.read(|connection| index::has_waiting(connection))? {
            // On a full disk what is indexed already can still be found.
            let _ = wait(|done| self.writer.write_or_send(Write::Index(done)));
        }
        self.readers.read(|connection| search::search(connection, query, owner, limit))
    }

    fn is_shared(&self, session: &str, principal: &str) -> Result<bool, Error> {
        self.readers.read(|connection| shares::is_shared(connection, session, principal))
    }

    fn shares(&self, session: &str) -> Result<Vec<String>, Error> {
        self.readers.read(|connection| shares::shares(connection, session))
    }

    fn shared_with(
        &self,
        principal: &str,
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<Meta>, Error> {
        self.readers.read(|connection| shares::shared_with(connection, principal, statuses, limit))
    }

    fn mark(&self) -> Result<Mark, Error> {
        self.readers.read(|connection| changes::mark(connection))
    }

    fn changes(&self, since: &Mark) -> Result<(Mark, Vec<Change>), Error> {
        self.readers.read(|connection| changes::changes(connection, since))
    }

    fn verify(&self, session: &str) -> Result<Verified, Error> {
        self.readers.read(|connection| verify::verify(connection, &self.chain, session))
    }

    fn ids(&self, after: Option<Cursor>, limit: usize) -> Result<Vec<(Cursor, Vec<u8>)>, Error> {
        self.readers.read(|connection| list::ids(connection, after, limit))
    }

    fn is_there(&self, at: Cursor) -> Result<bool, Error> {
        self.readers.read(|connection| list::is_there(connection, at))
    }

    fn file_flaws(&self) -> Result<Vec<String>, Error> {
        self.readers.read(|connection| verify::file_flaws(connection))
    }

    fn counter(&self) -> Result<Option<Counter>, Error> {
        self.readers.read(|connection| counter::read(connection, &self.chain)).map(Some)
    }

    fn counter_flaws(&self) -> Result<Vec<String>, Error> {
        self.readers.read(|connection| counter::flaws(connection, &self.chain))
    }

    fn backup(&self, target: &Path) -> Result<Option<Backup>, Error> {
        backup::backup(self.readers.files(), &self.chain, target).map(Some)
    }

    fn counts(&self) -> Result<Counts, Error> {
        self.readers.read(|connection| list::counts(connection))
    }

    fn usage(&self, owner: &str) -> Result<Usage, Error> {
        self.readers.read(|connection| list::usage(connection, owner))
    }

    fn document(&self, name: &str) -> Result<Option<Document>, Error> {
        self.readers.read(|connection| documents::read(connection, name))
    }

    fn replace_document(&self, replacing: Replacing) -> Result<bool, Error> {
        wait(|done| self.writer.write_or_send(Write::Replace(replacing, done)))
    }

    fn end_handshake(&self, ending: Ending) -> Result<(), Error> {
        wait(|done| self.writer.write_or_send(Write::End(ending, done)))
    }

    fn has_ended(&self, id: &[u8; 16]) -> Result<bool, Error> {
        self.readers.read(|connection| ended::has_ended(connection, id))
    }
}
