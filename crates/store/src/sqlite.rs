//! The store in one SQLite file: one thread that writes, and a few connections that read beside it.

use std::path::Path;

use crate::backend::{Backend, Done, Ending, Pruning, Replacing, Sharing, wait};
use crate::chain::Chain;
use crate::changes::{Change, Mark};
use crate::error::Error;
use crate::import::Incoming;
use crate::list::{Cursor, Filter, Page};
use crate::model::{
    Append, Counts, Created, Document, Event, Log, Meta, NewSession, Status, Version,
};
use crate::verify::Verified;

mod append;
mod changes;
mod create;
mod documents;
mod ended;
mod import;
mod index;
mod list;
#[cfg(test)]
mod plans;
mod prune;
mod read;
mod readers;
mod schema;
mod search;
mod shares;
mod verify;
mod writer;

use readers::Readers;
use writer::{Write, Writer};

#[derive(Debug)]
pub(crate) struct Sqlite {
    chain: Chain,
    // Goes first, and with it the queue.
    writer: Writer,
    readers: Readers,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, chain: Chain) -> Result<Self, Error> {
        let connection = schema::prepare(path, &chain)?;
        let writer = Writer::start(path.to_path_buf(), chain.clone(), connection)?;
        let readers = Readers::new(path.to_path_buf());
        Ok(Self { chain, writer, readers })
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
        wait(|done| self.writer.send(Write::Prune(pruning, done)))
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

    fn events(&self, session: &str, from: Version, limit: usize) -> Result<Vec<Event>, Error> {
        self.readers.read(|connection| read::page(connection, session, from, limit))
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

    fn counts(&self) -> Result<Counts, Error> {
        self.readers.read(|connection| list::counts(connection))
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
