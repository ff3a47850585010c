//! Beginning sessions: new ones, and copies of others.

use std::sync::Arc;

use engine::{Budget, Command, Origin, Refusal, Rules, SESSION_STEPS_MAX, State, decide};
use workflow::{Context, Workflow};

use super::stored::{check_criteria, damaged, head, new_event, pinned};
use super::{Error, Session, Sessions, written};
use crate::error::Error as StoreError;
use crate::model::{Created, Definition, NewSession};

/// A session to begin.
#[derive(Debug, Clone, Default)]
pub struct Start {
    pub id: String,
    pub owner: String,
    /// Who repeats a start with the same key gets the session that it began.
    pub key: Option<String>,
    pub goal: Option<String>,
    pub context: Context,
    /// Who may have to do with it besides its owner.
    pub shared_with: Vec<String>,
    /// What waits for a person is decided with a token that may approve, and in no other way.
    pub strict: bool,
    pub time: u64,
}

/// By what a new session is found.
#[derive(Debug, Clone, Default)]
pub struct NewIds {
    pub id: String,
    pub owner: String,
    pub key: Option<String>,
    pub shared_with: Vec<String>,
    /// Only a token decides what waits in a copy, whatever was so in the original.
    pub strict: bool,
    pub time: u64,
}

impl Sessions {
    /// Begins a session, or returns the one that was begun with the same key.
    pub fn start(&self, workflow: &Workflow, start: Start) -> Result<Arc<Session>, Error> {
        let budget = Budget::with_steps(SESSION_STEPS_MAX);
        let (event, ids) = self.started(workflow, start, &budget)?;
        self.create(pinned(workflow)?, &event, ids)
    }

    /// The same for threads that must not be blocked: reads and decides at once, and then waits until it is stored.
    /// [`Error::Overtaken`]: deciding takes more work than such threads are for; [`Sessions::start`] does it. `note` hears
    /// which session it is, also if nobody waits for that any more.
    pub async fn start_async(
        self: &Arc<Self>,
        workflow: &Workflow,
        start: Start,
        note: impl FnOnce(&Arc<Session>) + Send + 'static,
    ) -> Result<Arc<Session>, Error> {
        // One that was begun before has to be read, which the thread that tells us so must not wait for.
        if self.store.is_remote() {
            return self.start(workflow, start).inspect(note);
        }
        let started = self.started(workflow, start, &Budget::for_inline_call());
        let (event, ids) = started.map_err(|error| match error {
            Error::Refused { refusal: Refusal::Exhausted { .. }, .. } => Error::Overtaken,
            error => error,
        })?;
        let (new, session) = self.new_session(pinned(workflow)?, &event, ids)?;
        let sessions = Arc::clone(self);
        let created = move |created: Result<Created, StoreError>| {
            sessions.created(created?, session).inspect(note)
        };
        written(|done| self.store.create(new, done), created).await
    }

    /// A session of its own that begins where this one stood at a step.
    pub fn fork(
        &self,
        id: &str,
        revision: u64,
        to_step: &str,
        reason: &str,
        new: NewIds,
    ) -> Result<Arc<Session>, Error> {
        let session = self.open(id)?;
        session.check_revision(revision)?;
        let (version, mut then) = self.last_at(&session, to_step)?;
        // A copy does not get around what a person has to confirm.
        then.gated.clone_from(&session.state.gated);
        // Nor does it hide that the original came from a file.
        then.imported.clone_from(&session.state.imported);
        then.strict |= new.strict;
        let from = Origin { session: id.to_owned(), version, reason: Some(reason.to_owned()) };
        let command = Command::Fork { from, state: &then };
        let decided = decide(&session.workflow, &self.checker, None, command, &Budget::for_call());
        let event = decided.map_err(|refusal| session.refused(refusal))?;
        let event = event.ok_or_else(|| damaged("a copy that is no event"))?;
        self.create(pinned(&session.workflow)?, &event, new)
    }

    /// The first event of a session that is to begin.
    fn started(
        &self,
        workflow: &Workflow,
        start: Start,
        budget: &Budget,
    ) -> Result<(engine::Event, NewIds), Error> {
        let refused = |refusal| Error::Refused { refusal, session: None };
        check_criteria(workflow).map_err(refused)?;
        let Start { id, owner, key, goal, context, shared_with, strict, time } = start;
        let command = Command::Start { goal, context, strict, rules: Rules::CURRENT };
        let event = decide(workflow, &self.checker, None, command, budget).map_err(refused)?;
        let event = event.ok_or_else(|| damaged("a start that is no event"))?;
        Ok((event, NewIds { id, owner, key, shared_with, strict, time }))
    }

    fn create(
        &self,
        definition: Definition,
        event: &engine::Event,
        ids: NewIds,
    ) -> Result<Arc<Session>, Error> {
        let (new, session) = self.new_session(definition, event, ids)?;
        let created = self.store.create_now(new)?;
        self.created(created, session)
    }

    fn new_session(
        &self,
        definition: Definition,
        event: &engine::Event,
        ids: NewIds,
    ) -> Result<(NewSession, Session), Error> {
        let NewIds { id, owner, key, shared_with, time, strict: _ } = ids;
        let state = State::of([event]).ok_or_else(|| damaged("a session without a beginning"))?;
        let workflow = self.definition(&definition.hash, &definition.text)?;
        let new = NewSession {
            id: id.clone(),
            key,
            owner: owner.clone(),
            shared_with,
            workflow: state.workflow_id.clone(),
            goal: state.goal.clone().unwrap_or_default(),
            definition,
            event: new_event(event, None)?,
            head: head(&state),
            time,
        };
        let tail_bytes = new.event.body.len();
        Ok((new, Session { id, owner, version: 1, state, workflow, tail_bytes }))
    }

    fn created(&self, created: Created, session: Session) -> Result<Arc<Session>, Error> {
        match created {
            Created::New => Ok(self.keep(session)),
            Created::Existing(id) => self.open(&id),
        }
    }
}
