//! The one writer of a store, and the thread that feeds it. Everything that waits goes into one transaction, and so
//! costs one flush of the disk; each member has a savepoint, so that a refused one does not hurt the others.
//! Callbacks run after the commit is durable, never before, and one that panics ends nobody else's write. Before a
//! transaction, and between its commit and the callbacks, the files must be those that are open.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::backend::{Done, Ending, Pruning, Replacing, Sharing};
use crate::chain::Chain;
use crate::error::Error;
use crate::import::Incoming;
use crate::limits::QUEUE_MAX;
use crate::model::{Append, Created, NewSession, Version};
use crate::sqlite::append::append;
use crate::sqlite::counter::{self, CounterRow, Delta};
use crate::sqlite::create::create;
use crate::sqlite::documents::replace;
use crate::sqlite::ended::end;
use crate::sqlite::files::{FileContent, OpenFiles, OpenStore};
use crate::sqlite::import::import;
use crate::sqlite::index::index;
use crate::sqlite::prune::prune;
use crate::sqlite::shares::share;

pub(crate) enum Write {
    Create(Box<NewSession>, Done<Created>),
    Append(Box<Append>, Done<Version>),
    Import(Box<Incoming>, Done<()>),
    Prune(Pruning, Done<usize>),
    Index(Done<()>),
    End(Ending, Done<()>),
    Replace(Replacing, Done<bool>),
    Share(Sharing, Done<()>),
}

/// A write that was tried, waiting for the commit.
struct Tried {
    error: Option<Error>,
    /// What it adds to the counter, unless it was refused.
    delta: Delta,
    /// Tells the caller; a fault of the transaction goes before what the member made of it, also for those that
    /// were refused: what they were refused for may never have been written.
    tell: Box<dyn FnOnce(Option<Error>)>,
}

#[derive(Debug)]
pub(crate) struct Writer {
    /// Absent once we are going.
    queue: Option<SyncSender<Write>>,
    /// How many are in the queue or on their way there.
    queued: Arc<AtomicUsize>,
    writing: Arc<Mutex<Writing>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(chain: Chain, opened: OpenStore) -> Result<Self, Error> {
        let (queue, inbox) = sync_channel(QUEUE_MAX);
        let files = opened.files().clone();
        let writing = Arc::new(Mutex::new(Writing {
            files,
            chain,
            opened: Some(opened),
            content: FileContent::default(),
            counter: None,
        }));
        let queued = Arc::new(AtomicUsize::new(0));
        let (its_writing, its_queued) = (Arc::clone(&writing), Arc::clone(&queued));
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || run(&its_writing, &inbox, &its_queued))?;
        Ok(Self { queue: Some(queue), queued, writing, thread: Some(thread) })
    }

    /// For a caller that waits anyway: where nobody else writes, it does so itself, which saves waking two
    /// threads. Nobody is overtaken: with others in the queue it goes there too.
    pub(crate) fn write_or_send(&self, write: Write) {
        if self.queued.load(Ordering::Acquire) == 0
            && let Some(mut writing) = self.writing.try_lock()
        {
            writing.write(vec![write]);
        } else {
            self.send(write);
        }
    }

    /// Waits for a place in the queue.
    pub(crate) fn send(&self, write: Write) {
        let gone = Error::Unavailable("the store is closed".to_owned());
        match &self.queue {
            None => write.refuse(gone),
            Some(queue) => {
                self.queued.fetch_add(1, Ordering::AcqRel);
                if let Err(error) = queue.send(write) {
                    error.0.refuse(gone);
                }
            }
        }
    }
}

impl Drop for Writer {
    /// What is queued is still written.
    fn drop(&mut self) {
        self.queue = None;
        let thread = self.thread.take();
        // The last handle may go inside a callback: then the thread ends by itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Write {
    fn refuse(self, error: Error) {
        match self {
            Self::Create(_, done) => done(Err(error)),
            Self::Append(_, done) => done(Err(error)),
            Self::Import(_, done) => done(Err(error)),
            Self::Prune(_, done) => done(Err(error)),
            Self::Index(done) | Self::End(_, done) | Self::Share(_, done) => done(Err(error)),
            Self::Replace(_, done) => done(Err(error)),
        }
    }

    fn attempt(self, connection: &Connection, chain: &Chain) -> Tried {
        let mut delta = Delta::default();
        match self {
            Self::Create(session, done) => {
                Tried::new(create(connection, chain, &session, &mut delta), delta, done)
            }
            Self::Append(event, done) => {
                Tried::new(append(connection, chain, &event, &mut delta), delta, done)
            }
            Self::Import(log, done) => {
                Tried::new(import(connection, chain, &log, &mut delta), delta, done)
            }
            Self::Prune(pruning, done) => {
                Tried::new(prune(connection, &pruning, &mut delta), delta, done)
            }
            // It changes nothing that anybody could miss.
            Self::Index(done) => Tried::new(index(connection), delta, done),
            Self::End(ending, done) => {
                delta.wrote();
                Tried::new(end(connection, &ending), delta, done)
            }
            Self::Replace(replacing, done) => {
                delta.wrote();
                Tried::new(replace(connection, &replacing), delta, done)
            }
            Self::Share(sharing, done) => {
                delta.wrote();
                Tried::new(share(connection, &sharing), delta, done)
            }
        }
    }
}

impl Tried {
    fn new<T: 'static>(result: Result<T, Error>, delta: Delta, done: Done<T>) -> Self {
        let error = result.as_ref().err().cloned();
        let tell = move |fault: Option<Error>| done(fault.map_or(result, Err));
        Self { error, delta, tell: Box::new(tell) }
    }
}

#[derive(Debug)]
struct Writing {
    files: OpenFiles,
    chain: Chain,
    /// Absent after a fault that it did not get over.
    opened: Option<OpenStore>,
    content: FileContent,
    /// The counter as our last commit has left it.
    counter: Option<CounterRow>,
}

/// What the thread does.
fn run(writing: &Mutex<Writing>, inbox: &Receiver<Write>, queued: &AtomicUsize) {
    while let Ok(first) = inbox.recv() {
        // Taken before the queue is looked at, so that what comes while we wait for it is in the group.
        let mut writing = writing.lock();
        let group: Vec<Write> =
            std::iter::once(first).chain(inbox.try_iter().take(QUEUE_MAX - 1)).collect();
        queued.fetch_sub(group.len(), Ordering::AcqRel);
        shielded(|| writing.write(group));
    }
}

impl Writing {
    fn write(&mut self, group: Vec<Write>) {
        let mut tried = Vec::with_capacity(group.len());
        let mut left = group.into_iter();
        let fault = match self.attempt_all(&mut left, &mut tried) {
            Err(fault) => {
                self.roll_back();
                Some(fault)
            }
            Ok(()) => self.commit(&tried).err().inspect(|_| {
                self.roll_back();
                self.write_over();
            }),
        };
        let fault = fault.or_else(|| self.check_files().err());
        for member in tried {
            shielded(|| (member.tell)(fault.clone()));
        }
        let fault = fault.unwrap_or(Error::Unavailable("the write was not tried".to_owned()));
        for member in left {
            shielded(|| member.refuse(fault.clone()));
        }
    }

    /// Begins a transaction and tries each member in it. One alone needs no savepoint: the transaction is its own.
    fn attempt_all(
        &mut self,
        left: &mut std::vec::IntoIter<Write>,
        tried: &mut Vec<Tried>,
    ) -> Result<(), Error> {
        let opened = match &self.opened {
            Some(opened) => opened,
            None => self.opened.insert(OpenStore::reconnect(&self.files)?),
        };
        // All of them are looked at after the commit. This one keeps most of what is lost anyway from being written.
        let (files, stamp) = (opened.files(), opened.files().check_database()?);
        self.content.check(files.path(), stamp, &self.chain)?;
        let connection = &opened.connection;
        execute(connection, "BEGIN IMMEDIATE")?;
        let is_lone = left.len() == 1;
        while left.len() > 0 {
            if !is_lone {
                execute(connection, "SAVEPOINT member")?;
            }
            tried.extend(left.next().map(|write| write.attempt(connection, &self.chain)));
            let error = tried.last().and_then(|member| member.error.as_ref());
            if let Some(fault) = error.filter(|error| error.is_fault()) {
                return Err(fault.clone());
            }
            if !is_lone {
                if error.is_some() {
                    execute(connection, "ROLLBACK TO member")?;
                }
                execute(connection, "RELEASE member")?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, tried: &[Tried]) -> Result<(), Error> {
        let Some(OpenStore { connection, .. }) = &self.opened else { return Ok(()) };
        if tried.iter().all(|member| member.error.is_some()) {
            return execute(connection, "ROLLBACK");
        }
        let mut delta = Delta::default();
        tried.iter().filter(|it| it.error.is_none()).for_each(|it| delta.join(&it.delta));
        let known = self.counter.as_ref();
        let counter = match delta.is_empty() {
            true => None,
            false => counter::advance(connection, &self.chain, &delta, known)?,
        };
        // Somebody has written an older copy into the file.
        if let (Some(known), Some(counter)) = (known, &counter)
            && counter.writes() <= known.writes()
        {
            let why = format!("it went back from write {} while it was open", known.writes());
            return Err(Error::Moved(why));
        }
        execute(connection, "COMMIT")?;
        self.counter = counter.or(self.counter.take());
        Ok(())
    }

    /// After a fault nothing of the transaction may remain. SQLite has forgotten it already, or does so now.
    fn roll_back(&mut self) {
        self.opened = self.opened.take().filter(|OpenStore { connection, .. }| {
            connection.is_autocommit() || execute(connection, "ROLLBACK").is_ok()
        });
    }

    /// What was committed to files that nobody finds any more must not be acknowledged.
    fn check_files(&mut self) -> Result<(), Error> {
        let Some(opened) = &self.opened else { return Ok(()) };
        let stamp = opened.files().check()?;
        self.content.check(opened.files().path(), stamp, &self.chain)
    }

    /// Where the flush of a commit failed, its pages stand whole at the end of the write-ahead log, and a process
    /// that starts after a crash would take them for good. So another write, which means nothing, goes over
    /// them. Whether that one is flushed does not matter.
    fn write_over(&mut self) {
        if let Some(OpenStore { connection, .. }) = &self.opened {
            let _ =
                execute(connection, "UPDATE settings SET value = value + 1 WHERE name = 'over'");
        }
        self.roll_back();
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Error> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// A panic is told by the panic hook, and goes no further.
fn shielded(run: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(run));
}
