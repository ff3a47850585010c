//! Sessions on top of logs: open, decide, append. A session is taken from memory where we have it, which is safe: an
//! append names the version that it builds on, and whoever was wrong looks again. Times and ids come from the
//! caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{Checker, Command, Decision, Origin, Refusal, State, Submission, decide};
use workflow::{Context, Format, Workflow, read_trusted};

use crate::error::Error as StoreError;
use crate::model::{Append, Created, Definition, NewSession, Version};
use crate::store::Store;

mod stored;

use stored::{check_criteria, damaged, head, json, new_event, pinned, read_event, verdict};

/// How many sessions, and how many definitions, are kept in memory. Beyond, all are forgotten and read again.
const KEPT_MAX: usize = 1_000;
/// How often we look again when somebody else was first.
const TRIES_MAX: usize = 16;
/// The state is stored with every so many events, so that opening a session stays short.
const SNAPSHOT_EVERY: Version = 64;

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
}

/// A session to begin.
#[derive(Debug, Default)]
pub struct Start {
    pub id: String,
    pub owner: String,
    /// Who repeats a start with the same key gets the session that it began.
    pub key: Option<String>,
    pub goal: Option<String>,
    pub context: Context,
    pub time: u64,
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

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no such session")]
    NotFound,
    /// Not so, or not now. Where there is a session, that is where it stands.
    #[error("{refusal}")]
    Refused { refusal: Refusal, session: Option<Arc<Session>> },
    #[error("the session has not been at step `{step}`")]
    NeverThere { step: String, session: Arc<Session> },
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

    /// Begins a session, or returns the one that was begun with the same key.
    pub fn start(&self, workflow: &Workflow, start: Start) -> Result<Arc<Session>, Error> {
        let refused = |refusal| Error::Refused { refusal, session: None };
        check_criteria(workflow).map_err(refused)?;
        let Start { id, owner, key, goal, context, time } = start;
        let command = Command::Start { goal, context };
        let event = decide(workflow, &self.checker, None, command).map_err(refused)?;
        let event = event.ok_or_else(|| damaged("a start that is no event"))?;
        self.create(pinned(workflow)?, &event, NewIds { id, owner, key, time })
    }

    /// A session of its own that begins where this one stood at a step.
    pub fn fork(&self, id: &str, to_step: &str, new: NewIds) -> Result<Arc<Session>, Error> {
        let session = self.open(id)?;
        let (version, then) = self.last_at(&session, to_step)?;
        let from = Origin { session: id.to_owned(), version };
        let command = Command::Fork { from, state: &then };
        let decided = decide(&session.workflow, &self.checker, None, command);
        let event = decided.map_err(|refusal| session.refused(refusal))?;
        let event = event.ok_or_else(|| damaged("a copy that is no event"))?;
        self.create(pinned(&session.workflow)?, &event, new)
    }

    /// The session as it is now.
    pub fn open(&self, id: &str) -> Result<Arc<Session>, Error> {
        let meta = self.store.meta(id)?.ok_or(Error::NotFound)?;
        match self.kept(id) {
            Some(session) if session.version == meta.version => Ok(session),
            _ => self.load(id),
        }
    }

    /// Hands in the output of the current step. The same call again gets the same answer.
    pub fn advance(
        &self,
        id: &str,
        revision: u64,
        submission: &Submission,
        time: u64,
    ) -> Result<Advanced, Error> {
        let submission = submission.clone();
        let decided = self
            .apply(id, time, |_| Ok(Command::Advance { revision, submission: submission.clone() }));
        match decided {
            Ok((session, Some(event))) => {
                let verdict =
                    verdict(&event).ok_or_else(|| damaged("an advance without a verdict"))?;
                Ok(Advanced { session, verdict })
            }
            Ok((session, None)) => Ok(Advanced { session, verdict: Verdict::Waiting }),
            Err(Error::Refused {
                refusal: refusal @ Refusal::WrongRevision { .. },
                session: Some(session),
            }) => match self.answered(&session, revision, &submission)? {
                Some(advanced) => Ok(advanced),
                None => Err(session.refused(refusal)),
            },
            Err(error) => Err(error),
        }
    }

    pub fn approve(&self, id: &str, decision: &Decision, time: u64) -> Result<Arc<Session>, Error> {
        let command = |_: &Session| Ok(Command::Approve(decision.clone()));
        self.apply(id, time, command).map(|(session, _)| session)
    }

    pub fn decline(&self, id: &str, decision: &Decision, time: u64) -> Result<Arc<Session>, Error> {
        let command = |_: &Session| Ok(Command::Decline(decision.clone()));
        self.apply(id, time, command).map(|(session, _)| session)
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
        command: impl Fn(&Session) -> Result<Command<'c>, Error>,
    ) -> Result<(Arc<Session>, Option<engine::Event>), Error> {
        let mut kept = self.kept(id);
        for _ in 0..TRIES_MAX {
            let is_fresh = kept.is_none();
            let session = kept.take().map_or_else(|| self.load(id), Ok)?;
            let decided =
                decide(&session.workflow, &self.checker, Some(&session.state), command(&session)?);
            let event = match decided {
                Ok(Some(event)) => event,
                Ok(None) if is_fresh => return Ok((session, None)),
                Err(refusal) if is_fresh => return Err(session.refused(refusal)),
                // What we had in memory may be old.
                Ok(None) | Err(_) => continue,
            };
            let mut state = session.state.clone();
            state.apply(&event);
            let version = session.version + 1;
            let is_due = version % SNAPSHOT_EVERY == 0;
            let append = Append {
                session: id.to_owned(),
                expected: session.version,
                event: new_event(&event, Some(session.state.revision))?,
                head: head(&state),
                snapshot: is_due.then(|| json(&state)).transpose()?,
                time,
            };
            match self.store.append_now(append) {
                Ok(version) => {
                    let Session { owner, workflow, .. } = &*session;
                    let (id, owner) = (id.to_owned(), owner.clone());
                    let workflow = Arc::clone(workflow);
                    let session = self.keep(Session { id, owner, version, state, workflow });
                    return Ok((session, Some(event)));
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Store(StoreError::Unavailable("too many others write this session".to_owned())))
    }

    /// The answer that this very call has got before.
    fn answered(
        &self,
        session: &Session,
        revision: u64,
        submission: &Submission,
    ) -> Result<Option<Advanced>, Error> {
        let Some(stored) = self.store.event_at_revision(&session.id, revision)? else {
            return Ok(None);
        };
        let event = read_event(&stored.body)?;
        let before = self.state_at(&session.id, stored.version - 1)?;
        let handed_in = match &event {
            engine::Event::Accepted { submission, .. }
            | engine::Event::Returned { submission, .. }
            | engine::Event::Submitted { submission } => Some(submission),
            engine::Event::Approved { .. } | engine::Event::Declined { .. } => {
                before.waiting.as_ref()
            }
            engine::Event::Started { .. } | engine::Event::Rewound { .. } => None,
        };
        if handed_in != Some(submission) {
            return Ok(None);
        }
        let mut state = before.clone();
        state.apply(&event);
        let verdict = verdict(&event);
        let session = Arc::new(Session {
            id: session.id.clone(),
            owner: session.owner.clone(),
            version: stored.version,
            state,
            workflow: Arc::clone(&session.workflow),
        });
        Ok(verdict.map(|verdict| Advanced { session, verdict }))
    }

    /// The last time that a session came to a step: after which event, and how it stood.
    fn last_at(&self, session: &Arc<Session>, step: &str) -> Result<(Version, State), Error> {
        let mut found = None;
        let mut state: Option<State> = None;
        self.each_event(&session.id, session.version, |version, event| {
            let is_move = !matches!(
                event,
                engine::Event::Returned { .. }
                    | engine::Event::Submitted { .. }
                    | engine::Event::Declined { .. }
            );
            match &mut state {
                Some(state) => state.apply(event),
                None => state = State::of([event]),
            }
            if let Some(state) =
                state.as_ref().filter(|state| is_move && state.step.as_deref() == Some(step))
            {
                found = Some((version, state.clone()));
            }
        })?;
        let never = || Error::NeverThere { step: step.to_owned(), session: Arc::clone(session) };
        found.ok_or_else(never)
    }

    fn state_at(&self, id: &str, version: Version) -> Result<State, Error> {
        let mut state: Option<State> = None;
        self.each_event(id, version, |_, event| match &mut state {
            Some(state) => state.apply(event),
            None => state = State::of([event]),
        })?;
        state.ok_or_else(|| damaged("a log without a beginning"))
    }

    /// Every event of a session up to a version, in order.
    fn each_event(
        &self,
        id: &str,
        to: Version,
        mut visit: impl FnMut(Version, &engine::Event),
    ) -> Result<(), Error> {
        let mut from = 1;
        while from <= to {
            let page = self.store.events(id, from, crate::limits::PAGE_MAX)?;
            let Some(last) = page.last().map(|event| event.version) else {
                return Err(damaged("a log that is shorter than its head says"));
            };
            for event in page.iter().filter(|event| event.version <= to) {
                visit(event.version, &read_event(&event.body)?);
            }
            from = last + 1;
        }
        Ok(())
    }

    fn create(
        &self,
        definition: Definition,
        event: &engine::Event,
        new: NewIds,
    ) -> Result<Arc<Session>, Error> {
        let NewIds { id, owner, key, time } = new;
        let state = State::of([event]).ok_or_else(|| damaged("a session without a beginning"))?;
        let workflow = self.definition(&definition.hash, &definition.text)?;
        let created = self.store.create_now(NewSession {
            id: id.clone(),
            key,
            owner: owner.clone(),
            workflow: state.workflow_id.clone(),
            goal: state.goal.clone().unwrap_or_default(),
            definition,
            event: new_event(event, None)?,
            head: head(&state),
            time,
        })?;
        match created {
            Created::New => Ok(self.keep(Session { id, owner, version: 1, state, workflow })),
            Created::Existing(id) => self.open(&id),
        }
    }

    fn load(&self, id: &str) -> Result<Arc<Session>, Error> {
        let log = self.store.load(id)?.ok_or(Error::NotFound)?;
        let mut state: Option<State> = match &log.snapshot {
            Some(snapshot) => serde_json::from_str(&snapshot.text).ok(),
            None => None,
        };
        if log.snapshot.is_some() && state.is_none() {
            // Of another version of ours: it is only a cache.
            state = Some(self.state_at(id, log.meta.version)?);
        } else {
            for event in &log.events {
                let event = read_event(&event.body)?;
                match &mut state {
                    Some(state) => state.apply(&event),
                    None => state = State::of([&event]),
                }
            }
        }
        let state = state.ok_or_else(|| damaged("a log without a beginning"))?;
        let hash = &log.meta.definition;
        // Let go of before the match: what it leads to takes the lock itself.
        let known = self.lock(&self.definitions).get(hash).cloned();
        let workflow = match known {
            Some(workflow) => workflow,
            None => {
                let text = self.store.definition(hash)?;
                self.definition(hash, &text.ok_or_else(|| damaged("a definition is missing"))?)?
            }
        };
        let (id, owner, version) = (log.meta.id, log.meta.owner, log.meta.version);
        Ok(self.keep(Session { id, owner, version, state, workflow }))
    }

    fn definition(&self, hash: &str, text: &str) -> Result<Arc<Workflow>, Error> {
        let mut definitions = self.lock(&self.definitions);
        if let Some(workflow) = definitions.get(hash) {
            return Ok(Arc::clone(workflow));
        }
        let workflow = read_trusted(text, Format::Json);
        let workflow = Arc::new(workflow.ok_or_else(|| damaged("a definition cannot be read"))?);
        if definitions.len() >= KEPT_MAX {
            definitions.clear();
        }
        definitions.insert(hash.to_owned(), Arc::clone(&workflow));
        Ok(workflow)
    }

    fn kept(&self, id: &str) -> Option<Arc<Session>> {
        self.lock(&self.kept).get(id).cloned()
    }

    /// Keeps the newest.
    fn keep(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        let mut kept = self.lock(&self.kept);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let is_older = |other: &Arc<Session>| other.version > session.version;
        if !kept.get(&session.id).is_some_and(is_older) {
            kept.insert(session.id.clone(), Arc::clone(&session));
        }
        session
    }

    fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sessions").field("store", &self.store).finish_non_exhaustive()
    }
}

/// By what a new session is found.
#[derive(Debug, Clone, Default)]
pub struct NewIds {
    pub id: String,
    pub owner: String,
    pub key: Option<String>,
    pub time: u64,
}

impl Session {
    fn refused(self: &Arc<Self>, refusal: Refusal) -> Error {
        Error::Refused { refusal, session: Some(Arc::clone(self)) }
    }
}
