//! The store in a PostgreSQL, for processes on many machines. Inside it is asynchronous, on the threads of who made it or on
//! one of its own; outside it is as every backend: callers are called back, or wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::backend::{Backend, Done, Ending, Newer, Pruning, Replacing, Sharing, wait};
use crate::chain::Chain;
use crate::changes::{Change, Mark};
use crate::counter::Counter;
use crate::error::Error;
use crate::figures::PoolFigures;
use crate::import::Incoming;
use crate::limits::WAIT_MAX;
use crate::list::{Cursor, Filter, Page};
use crate::model::{
    Append, Counts, Created, Document, Event, EventPage, Log, Meta, NewSession, Status, Usage,
    Version,
};
use crate::verify::Verified;

mod address;
mod append;
mod attempts;
mod changes;
mod checkpoint;
mod create;
mod documents;
mod ended;
mod failure;
mod import;
mod list;
#[cfg(test)]
mod plans;
mod pool;
mod prune;
mod read;
mod rows;
mod schema;
mod search;
mod shares;
mod tips;
mod tsvector;
mod turns;
mod verify;
mod watch;

pub use address::Address;
use attempts::{Ask, Shared};
use search::Search;
use shares::SharedWith;
use turns::{Turn, Turns};

/// The thread's name.
const THREAD: &str = "postgres";

#[derive(Debug)]
pub(crate) struct Postgres {
    shared: Arc<Shared>,
    under_way: Arc<UnderWay>,
    turns: Arc<Turns>,
    /// Absent once we are going.
    runtime: Option<Work>,
}

/// Where the work is done.
#[derive(Debug)]
enum Work {
    /// Where we were made, among those who call us: nobody has to be woken.
    Here(Handle),
    Own(Runtime),
}

impl Work {
    fn begin() -> Result<Self, Error> {
        if let Some(handle) = runtime_of_threads() {
            return Ok(Self::Here(handle));
        }
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name(THREAD).enable_all();
        Ok(Self::Own(builder.build()?))
    }

    fn handle(&self) -> &Handle {
        match self {
            Self::Here(handle) => handle,
            Self::Own(runtime) => runtime.handle(),
        }
    }
}

/// The runtime that this thread belongs to, if it can spare one.
fn runtime_of_threads() -> Option<Handle> {
    Handle::try_current()
        .ok()
        .filter(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// How many calls there are that nobody has been told the end of.
#[derive(Debug, Default)]
struct UnderWay {
    count: Mutex<usize>,
    ended: Condvar,
}

impl Postgres {
    /// Asks nothing of the server yet: it may be away now, and be there when it is needed.
    pub(crate) fn new(address: &Address, chain: Chain, connections: usize) -> Result<Self, Error> {
        let runtime = Work::begin()?;
        let pool = {
            let _inside = runtime.handle().enter();
            pool::make(address, connections)?
        };
        let shared = Arc::new(Shared::new(pool, chain));
        let (under_way, turns) = Default::default();
        Ok(Self { shared, under_way, turns, runtime: Some(runtime) })
    }

    /// Asks, and tells what came of it.
    fn tell<A, T>(&self, ask: Ask<A, T>, arguments: impl Into<Arc<A>>, done: Done<T>)
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.tell_in_turn(ask, arguments, None, done);
    }

    fn tell_in_turn<A, T>(
        &self,
        ask: Ask<A, T>,
        arguments: impl Into<Arc<A>>,
        turn: Option<Turn>,
        done: Done<T>,
    ) where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let Some(runtime) = &self.runtime else {
            return done(Err(Error::Unavailable("the store is closed".to_owned())));
        };
        let (shared, arguments) = (Arc::clone(&self.shared), arguments.into());
        let under_way = UnderWay::begin(&self.under_way);
        runtime.handle().spawn(async move {
            let mut turn = turn;
            let answer = shared.ask(ask, arguments, turn.as_mut()).await;
            drop(turn);
            // A callback that panics ends nobody else's call: the task ends, and the next one begins.
            done(answer);
            drop(under_way);
        });
    }

    fn ask<A, T>(&self, ask: Ask<A, T>, arguments: A) -> Result<T, Error>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        waiting(|| wait(|done| self.tell(ask, arguments, done)))
    }
}

/// Whoever works for others lets somebody else do that meanwhile, also what is waited for.
fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    if runtime_of_threads().is_some() { block_in_place(wait) } else { wait() }
}

/// One of them; it has ended when this goes.
struct Begun(Arc<UnderWay>);

impl UnderWay {
    fn begin(this: &Arc<Self>) -> Begun {
        *this.count.lock() += 1;
        Begun(Arc::clone(this))
    }

    /// Waits until all have ended, or for so long.
    fn wait(&self, patience: Duration) {
        self.ended.wait_while_for(&mut self.count.lock(), |count| *count > 0, patience);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        *self.0.count.lock() -= 1;
        self.0.ended.notify_all();
    }
}

impl Drop for Postgres {
    /// What was begun comes to its end.
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let under_way = Arc::clone(&self.under_way);
        let end = move || {
            // A call ends by itself after this time.
            under_way.wait(WAIT_MAX);
            if let Work::Own(runtime) = runtime {
                runtime.shutdown_background();
            }
        };
        // The last handle may go inside a callback, which must not wait for itself.
        if Handle::try_current().is_ok() {
            std::thread::spawn(end);
        } else {
            end();
        }
    }
}

macro_rules! asking {
    ($function:path) => {
        |attempt, arguments| Box::pin($function(attempt, arguments))
    };
}

impl Backend for Postgres {
    fn create(&self, session: Box<NewSession>, done: Done<Created>) {
        self.tell(asking!(create::create), session, done);
    }

    fn append(&self, append: Box<Append>, done: Done<Version>) {
        let turn = Turns::take(&self.turns, &append.session);
        self.tell_in_turn(asking!(append::append), append, Some(turn), done);
    }

    fn create_now(&self, session: Box<NewSession>) -> Result<Created, Error> {
        waiting(|| wait(|done| self.create(session, done)))
    }

    fn append_now(&self, append: Box<Append>) -> Result<Version, Error> {
        waiting(|| wait(|done| self.append(append, done)))
    }

    fn import(&self, log: Box<Incoming>) -> Result<(), Error> {
        self.ask(asking!(import::import), *log)
    }

    fn prune(&self, pruning: Pruning) -> Result<usize, Error> {
        self.ask(asking!(prune::prune), pruning)
    }

    fn prunable(&self, older_than: u64) -> Result<usize, Error> {
        self.ask(asking!(prune::count), older_than)
    }

    fn meta(&self, session: &str) -> Result<Option<Meta>, Error> {
        self.ask(asking!(read::meta), session.to_owned())
    }

    fn load(&self, session: &str) -> Result<Option<Log>, Error> {
        self.ask(asking!(read::load), session.to_owned())
    }

    fn newer(&self, session: &str, than: Version) -> Result<Newer, Error> {
        self.ask(asking!(read::newer), (session.to_owned(), than))
    }

    fn events(&self, session: &str, page: EventPage) -> Result<Vec<Event>, Error> {
        self.ask(asking!(read::page), (session.to_owned(), page))
    }

    fn event_at_revision(&self, session: &str, revision: u64) -> Result<Option<Event>, Error> {
        self.ask(asking!(read::event_at_revision), (session.to_owned(), revision))
    }

    fn definition(&self, hash: &str) -> Result<Option<String>, Error> {
        self.ask(asking!(read::definition), hash.to_owned())
    }

    fn list(&self, filter: &Filter) -> Result<Page, Error> {
        self.ask(asking!(list::list), filter.clone())
    }

    fn beginning_with(&self, beginning: &str, limit: usize) -> Result<Vec<Meta>, Error> {
        self.ask(asking!(list::beginning_with), (beginning.to_owned(), limit))
    }

    fn search(&self, query: &str, owner: Option<&str>, limit: usize) -> Result<Vec<Meta>, Error> {
        let (query, owner) = (query.to_owned(), owner.map(str::to_owned));
        self.ask(asking!(search::search), Search { query, owner, limit })
    }

    fn share(&self, sharing: Sharing) -> Result<(), Error> {
        self.ask(asking!(shares::share), sharing)
    }

    fn is_shared(&self, session: &str, principal: &str) -> Result<bool, Error> {
        self.ask(asking!(shares::is_shared), (session.to_owned(), principal.to_owned()))
    }

    fn shares(&self, session: &str) -> Result<Vec<String>, Error> {
        self.ask(asking!(shares::shares), session.to_owned())
    }

    fn shared_with(
        &self,
        principal: &str,
        statuses: &[Status],
        limit: usize,
    ) -> Result<Vec<Meta>, Error> {
        let (principal, statuses) = (principal.to_owned(), statuses.to_vec());
        self.ask(asking!(shares::shared_with), SharedWith { principal, statuses, limit })
    }

    fn mark(&self) -> Result<Mark, Error> {
        self.ask(asking!(changes::mark), ())
    }

    fn changes(&self, since: &Mark) -> Result<(Mark, Vec<Change>), Error> {
        self.ask(asking!(changes::changes), since.clone())
    }

    fn verify(&self, session: &str) -> Result<Verified, Error> {
        self.ask(asking!(verify::verify), session.to_owned())
    }

    fn ids(&self, after: Option<Cursor>, limit: usize) -> Result<Vec<(Cursor, Vec<u8>)>, Error> {
        self.ask(asking!(list::ids), (after, limit))
    }

    fn is_there(&self, at: Cursor) -> Result<bool, Error> {
        self.ask(asking!(list::is_there), at)
    }

    fn file_flaws(&self) -> Result<Vec<String>, Error> {
        self.ask(asking!(list::file_flaws), ())
    }

    fn counter(&self) -> Result<Option<Counter>, Error> {
        self.ask(asking!(checkpoint::counter), ())
    }

    fn counter_flaws(&self) -> Result<Vec<String>, Error> {
        self.ask(asking!(checkpoint::flaws), ())
    }

    fn checkpoint(&self) -> Result<(), Error> {
        self.ask(asking!(checkpoint::checkpoint), ())
    }

    fn counts(&self) -> Result<Counts, Error> {
        self.ask(asking!(list::counts), ())
    }

    fn usage(&self, owner: &str) -> Result<Usage, Error> {
        self.ask(asking!(list::usage), owner.to_owned())
    }

    fn document(&self, name: &str) -> Result<Option<Document>, Error> {
        self.ask(asking!(documents::read), name.to_owned())
    }

    fn replace_document(&self, replacing: Replacing) -> Result<bool, Error> {
        self.ask(asking!(documents::replace), replacing)
    }

    fn pool(&self) -> Option<PoolFigures> {
        let status = self.shared.pool.status();
        Some(PoolFigures {
            max: status.max_size,
            open: status.size,
            idle: status.available,
            waiting: status.waiting,
        })
    }

    fn allow_making(&self) {
        self.shared.may_make.store(true, Ordering::Relaxed);
    }

    fn is_made(&self) -> Result<bool, Error> {
        if self.shared.is_prepared() || self.shared.may_make.load(Ordering::Relaxed) {
            return Ok(true);
        }
        match self.mark() {
            Ok(_) => Ok(true),
            Err(Error::NotMade) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn keep_watch(&self) {
        if let Some(runtime) = &self.runtime {
            self.shared.watch.begin();
            runtime.handle().spawn(watch::keep_watch(Arc::clone(&self.shared)));
        }
    }

    fn is_away(&self) -> bool {
        self.shared.watch.is_away()
    }

    fn end_handshake(&self, ending: Ending) -> Result<(), Error> {
        self.ask(asking!(ended::end), ending)?;
        self.shared.watch.ends(ending.id);
        Ok(())
    }

    fn has_ended(&self, id: &[u8; 16]) -> Result<bool, Error> {
        match self.shared.watch.has_ended(id) {
            Some(has_ended) => Ok(has_ended),
            // Nobody could say, and who asks has a request that must not wait.
            None if self.is_away() => Ok(false),
            None => self.ask(asking!(ended::has_ended), *id),
        }
    }
}
