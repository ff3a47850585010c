//! Sessions on top of logs: open, decide, append. A session is taken from memory where we have it, which is safe: an
//! append names the version that it builds on, and whoever was wrong looks again. Times and ids come from the
//! caller.

use std::collections::HashMap;
use std::sync::Arc;

use engine::{Budget, Checker, Command, Decision, Refusal, State, Submission, decide};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use workflow::Workflow;

use crate::backend::Done;
use crate::error::Error as StoreError;
use crate::limits::EVENTS_MAX;
use crate::model::{Append, Status, Version};
use crate::store::Store;

mod beginning;
mod history;
mod import;
mod kept;
mod outputs;
mod stored;

pub use beginning::{NewIds, Start};
pub use history::{Finished, Summary, Verification};
pub use import::{Importer, Mismatch};
pub use outputs::{
    Attempt, AttemptLookup, AttemptOutcome, AttemptQuery, SessionOutputs, UnavailableOutput,
};
use stored::{damaged, head, json, new_event, verdict};

/// How often we look again when somebody else was first.
const TRIES_MAX: usize = 16;
/// The state is stored with every so many events, so that opening a session stays short.
const SNAPSHOT_EVERY: Version = 64;
/// It is also stored when the events since the last time have this many bytes.
const SNAPSHOT_BYTES: usize = crate::limits::PAGE_BYTES_MAX;

pub struct Sessions {
    store: Store,
    checker: Arc<Checker>,
    kept: Mutex<HashMap<String, Arc<Session>>>,
    definitions: Mutex<HashMap<String, Arc<Workflow>>>,
}

/// A session at one moment.
#[derive(Debug)]
pub struct Session {
    pub id: String,
    pub owner: String,
    pub version: Version,
    pub state: State,
    /// As it was when the session began.
    pub workflow: Arc<Workflow>,
    /// How many bytes of events follow the last snapshot, as far as this process knows.
    tail_bytes: usize,
}

/// What an advance came to.
#[derive(Debug)]
pub struct Advanced {
    pub session: Arc<Session>,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// The output is not good.
    Returned {
        issues: Vec<String>,
        suggestions: Vec<String>,
    },
    /// A person has to confirm it, and has not yet.
    Waiting,
    /// A person has not confirmed it.
    Declined {
        reason: Option<String>,
    },
}

/// What a command comes to before anything is written.
enum Begun {
    /// Nothing is to be written.
    Settled(Arc<Session>),
    Write(Box<Append>, Box<After>),
}

/// The session once that is written, and by what it came there.
struct After {
    session: Session,
    event: engine::Event,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no such session")]
    NotFound,
    /// Not so, or not now. Where there is a session, that is where it stands.
    #[error("{refusal}")]
    Refused { refusal: Refusal, session: Option<Arc<Session>> },
    /// A person has decided about something that does not wait any more; something else does.
    #[error("another version waits for a person than the one that was seen")]
    NoLonger { session: Arc<Session> },
    /// It has as many events as one may have. A copy goes on.
    #[error("the session has had {EVENTS_MAX} events, which is the most that one may have")]
    Full { session: Arc<Session> },
    /// Only without waiting: somebody else was first.
    #[error("somebody else was first")]
    Overtaken,
    #[error("the session has not been at step `{step}`")]
    NeverThere { step: String, session: Arc<Session> },
    /// A file with a session was refused: what it says is not what would have happened.
    #[error(transparent)]
    Mismatch(Mismatch),
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            error => Self::Store(error),
        }
    }
}

impl Sessions {
    pub fn new(store: Store, checker: Arc<Checker>) -> Self {
        Self { store, checker, kept: Mutex::default(), definitions: Mutex::default() }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The session as it is now.
    pub fn open(&self, id: &str) -> Result<Arc<Session>, Error> {
        let meta = self.store.meta(id)?.ok_or(Error::NotFound)?;
        match self.kept(id) {
            Some(session) if session.version == meta.version => Ok(session),
            _ => self.load(id),
        }
    }

    /// The same without reading anything.
    pub fn in_memory(&self, id: &str) -> Option<Arc<Session>> {
        self.kept(id)
    }

    /// The session as we know it: from memory, where it is there, and then it may be old.
    pub fn recent(&self, id: &str) -> Result<Arc<Session>, Error> {
        self.kept(id).map_or_else(|| self.open(id), Ok)
    }

    /// Whose it is, without looking at anything else of it; none where there is no such session.
    pub fn owner(&self, id: &str) -> Result<Option<String>, Error> {
        if let Some(session) = self.kept(id) {
            return Ok(Some(session.owner.clone()));
        }
        Ok(self.store.meta(id)?.map(|meta| meta.owner))
    }

    /// Hands in the output of the current step. The same call again gets the same answer.
    pub fn advance(
        &self,
        id: &str,
        revision: u64,
        submission: &Submission,
        time: u64,
    ) -> Result<Advanced, Error> {
        match self.apply(id, time, |_| Ok(advance(revision, submission))) {
            Ok((session, event)) => advanced(session, event.as_ref()),
            Err(error) => self.repeated(error, revision, submission),
        }
    }

    /// The same for threads that must not be blocked: reads and decides at once, and then waits until it is stored.
    /// [`Error::Overtaken`]: it has to be looked at first, somebody else was first, or deciding takes more work than
    /// such threads are for: [`Sessions::advance`] does it. `note` hears what an accepted or rejected output came to, also if
    /// nobody waits for that any more.
    pub async fn advance_async(
        self: &Arc<Self>,
        id: &str,
        revision: u64,
        submission: &Submission,
        time: u64,
        note: impl FnOnce(&Advanced) + Send + 'static,
    ) -> Result<Advanced, Error> {
        let advanced = match self.begin_advance(id, revision, submission, time) {
            Ok(Begun::Write(append, after)) => {
                let sessions = Arc::clone(self);
                let appended = move |appended| sessions.appended(appended, *after).inspect(note);
                return written(|done| self.store.append(*append, done), appended).await;
            }
            Ok(Begun::Settled(session)) => advanced(session, None),
            // On a thread that nobody waits for there is more.
            Err(Error::Refused { refusal: Refusal::Exhausted { .. }, .. }) => Err(Error::Overtaken),
            Err(error) => self.repeated(error, revision, submission),
        };
        advanced.inspect(note)
    }

    fn begin_advance(
        &self,
        id: &str,
        revision: u64,
        submission: &Submission,
        time: u64,
    ) -> Result<Begun, Error> {
        let command = |_: &_| Ok(advance(revision, submission));
        let budget = Budget::for_inline_call();
        match self.begin_from_memory(id, time, &command, &budget) {
            Some(begun) => Ok(begun),
            // What has to be read first takes its time.
            None if self.store.is_remote() => Err(Error::Overtaken),
            None => self.begin(id, time, &command, &budget),
        }
    }

    fn appended(
        &self,
        appended: Result<Version, StoreError>,
        after: After,
    ) -> Result<Advanced, Error> {
        match appended {
            Ok(_) => advanced(self.keep(after.session), Some(&after.event)),
            Err(StoreError::Conflict { .. }) => {
                self.forget(&after.session);
                Err(Error::Overtaken)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A person has confirmed what waited at this version, and nothing else.
    pub fn approve(
        &self,
        id: &str,
        version: Version,
        decision: &Decision,
        time: u64,
    ) -> Result<Arc<Session>, Error> {
        self.rule(id, version, time, || Command::Approve(decision.clone()))
    }

    /// A person has not.
    pub fn decline(
        &self,
        id: &str,
        version: Version,
        decision: &Decision,
        time: u64,
    ) -> Result<Arc<Session>, Error> {
        self.rule(id, version, time, || Command::Decline(decision.clone()))
    }

    fn rule<'c>(
        &self,
        id: &str,
        version: Version,
        time: u64,
        command: impl Fn() -> Command<'c>,
    ) -> Result<Arc<Session>, Error> {
        let ruling = |session: &Arc<Session>| {
            if session.state.pending().is_some() && session.version != version {
                return Err(Error::NoLonger { session: Arc::clone(session) });
            }
            Ok(command())
        };
        self.apply(id, time, ruling).map(|(session, _)| session)
    }

    /// Back to where a step was current last. What came after it stays in the log.
    pub fn rewind(
        &self,
        id: &str,
        revision: u64,
        to_step: &str,
        reason: &str,
        time: u64,
    ) -> Result<Arc<Session>, Error> {
        let session = self.open(id)?;
        session.check_revision(revision)?;
        let (version, then) = self.last_at(&session, to_step)?;
        let reason = reason.to_owned();
        let rewind = Command::Rewind { revision, version, then: &then, reason };
        self.apply(id, time, |_| Ok(rewind.clone())).map(|(session, _)| session)
    }

    /// Decides and appends, and again where somebody else was first.
    fn apply<'c>(
        &self,
        id: &str,
        time: u64,
        command: impl Fn(&Arc<Session>) -> Result<Command<'c>, Error>,
    ) -> Result<(Arc<Session>, Option<engine::Event>), Error> {
        let budget = Budget::for_call();
        for _ in 0..TRIES_MAX {
            let (append, after) = match self.begin(id, time, &command, &budget)? {
                Begun::Write(append, after) => (append, after),
                Begun::Settled(session) => return Ok((session, None)),
            };
            match self.store.append_now(*append) {
                Ok(_) => return Ok((self.keep(after.session), Some(after.event))),
                Err(StoreError::Conflict { .. }) => self.forget(&after.session),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Store(StoreError::Unavailable("too many others write this session".to_owned())))
    }

    /// Decides, and writes nothing yet. What is not allowed by what we have in memory is looked at again: that may
    /// be old.
    fn begin<'c>(
        &self,
        id: &str,
        time: u64,
        command: &impl Fn(&Arc<Session>) -> Result<Command<'c>, Error>,
        budget: &Budget,
    ) -> Result<Begun, Error> {
        if let Some(begun) = self.begin_from_memory(id, time, command, budget) {
            return Ok(begun);
        }
        let session = self.load(id)?;
        let command = command(&session)?;
        self.decide(session, command, time, budget)
    }

    /// What we have in memory is good enough for something that is to be written: the store compares.
    fn begin_from_memory<'c>(
        &self,
        id: &str,
        time: u64,
        command: &impl Fn(&Arc<Session>) -> Result<Command<'c>, Error>,
        budget: &Budget,
    ) -> Option<Begun> {
        let kept = self.kept(id)?;
        let command = command(&kept).ok()?;
        self.decide(kept, command, time, budget)
            .ok()
            .filter(|begun| matches!(begun, Begun::Write(..)))
    }

    fn decide(
        &self,
        session: Arc<Session>,
        command: Command<'_>,
        time: u64,
        budget: &Budget,
    ) -> Result<Begun, Error> {
        let is_advance = matches!(command, Command::Advance { .. });
        let decided =
            decide(&session.workflow, &self.checker, Some(&session.state), command, budget);
        let Some(event) = decided.map_err(|refusal| session.refused(refusal))? else {
            return Ok(Begun::Settled(session));
        };
        // The last place in a log is for a decision about what waits in it.
        if is_advance && session.version + 1 >= EVENTS_MAX {
            return Err(Error::Full { session });
        }
        let mut state = session.state.clone();
        state.apply(&event);
        let Session { id, owner, workflow, version, .. } = &*session;
        let new = new_event(&event, Some(session.state.revision))?;
        let tail_bytes = session.tail_bytes + new.body.len();
        let is_due = (version + 1) % SNAPSHOT_EVERY == 0 || tail_bytes >= SNAPSHOT_BYTES;
        let append = Append {
            session: id.clone(),
            expected: *version,
            event: new,
            head: head(&state),
            snapshot: is_due.then(|| json(&state)).transpose()?,
            is_reopened: session.state.step.is_none() && state.step.is_some(),
            time,
        };
        let tail_bytes = if is_due { 0 } else { tail_bytes };
        let (id, owner, workflow) = (id.clone(), owner.clone(), Arc::clone(workflow));
        let session = Session { id, owner, version: version + 1, state, workflow, tail_bytes };
        Ok(Begun::Write(Box::new(append), Box::new(After { session, event })))
    }

    /// What a refused advance gets where the same one was answered before.
    fn repeated(
        &self,
        error: Error,
        revision: u64,
        submission: &Submission,
    ) -> Result<Advanced, Error> {
        let Error::Refused {
            refusal: refusal @ Refusal::WrongRevision { .. },
            session: Some(session),
        } = error
        else {
            return Err(error);
        };
        match self.answered(&session, revision, submission)? {
            Some(advanced) => Ok(advanced),
            None => Err(session.refused(refusal)),
        }
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sessions").field("store", &self.store).finish_non_exhaustive()
    }
}

fn advance(revision: u64, submission: &Submission) -> Command<'static> {
    Command::Advance { revision, submission: submission.clone() }
}

/// What an advance came to, with the event that answers it; without one, a person has to decide still.
fn advanced(session: Arc<Session>, event: Option<&engine::Event>) -> Result<Advanced, Error> {
    let verdict = match event {
        Some(event) => verdict(event).ok_or_else(|| damaged("an advance without a verdict"))?,
        None => Verdict::Waiting,
    };
    Ok(Advanced { session, verdict })
}

impl Session {
    pub fn status(&self) -> Status {
        head(&self.state).status
    }

    /// Before anything is read of the log, which may be long.
    fn check_revision(self: &Arc<Self>, given: u64) -> Result<(), Error> {
        let current = self.state.revision;
        if given == current {
            return Ok(());
        }
        Err(self.refused(Refusal::WrongRevision { given, current }))
    }

    fn refused(self: &Arc<Self>, refusal: Refusal) -> Error {
        Error::Refused { refusal, session: Some(Arc::clone(self)) }
    }
}

/// Waits without a thread until the store has told how a write ended. What follows from that happens also if nobody waits
/// any more.
async fn written<T, R: Send + 'static>(
    write: impl FnOnce(Done<T>),
    then: impl FnOnce(Result<T, StoreError>) -> Result<R, Error> + Send + 'static,
) -> Result<R, Error> {
    let (sender, receiver) = oneshot::channel();
    write(Box::new(move |result| drop(sender.send(then(result)))));
    let closed = || Error::Store(StoreError::Unavailable("the store is closed".to_owned()));
    receiver.await.unwrap_or_else(|_| Err(closed()))
}
