//! What is kept in memory of sessions and definitions: a bounded copy of what the store holds, and never more than
//! that.

use std::sync::Arc;

use engine::State;
use workflow::{Format, Workflow, read_trusted};

use crate::backend::Newer;

use super::stored::{content_hash, damaged, read_event};
use super::{Error, Session, Sessions};

/// How many sessions, and how many definitions, are kept in memory. Beyond, all are forgotten and read again.
const KEPT_MAX: usize = 1_000;

impl Sessions {
    pub(super) fn load(&self, id: &str) -> Result<Arc<Session>, Error> {
        if let Some(session) = self.caught_up(id)? {
            return Ok(session);
        }
        let log = self.store.load(id)?.ok_or(Error::NotFound)?;
        let mut state: Option<State> = match &log.snapshot {
            Some(snapshot) => serde_json::from_str(&snapshot.text).ok(),
            None => None,
        };
        let is_unreadable = log.snapshot.is_some() && state.is_none();
        if is_unreadable || log.is_cut {
            // Of another version of ours: it is only a cache. Or more follows it than one page holds.
            let known = state.zip(log.snapshot.as_ref().map(|snapshot| snapshot.version));
            state = Some(self.state_from(id, known, log.meta.version)?);
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
        let known = self.definitions.lock().get(hash).cloned();
        let workflow = match known {
            Some(workflow) => workflow,
            None => {
                let text = self.store.definition(hash)?;
                self.definition(hash, &text.ok_or_else(|| damaged("a definition is missing"))?)?
            }
        };
        let tail_bytes = log.events.iter().map(|event| event.body.len()).sum();
        let (id, owner, version) = (log.meta.id, log.meta.owner, log.meta.version);
        Ok(self.keep(Session { id, owner, version, state, workflow, tail_bytes }))
    }

    /// The session that we have in memory, brought up to date by what others have written since; none where that
    /// cannot be told.
    fn caught_up(&self, id: &str) -> Result<Option<Arc<Session>>, Error> {
        let Some(kept) = self.kept(id) else { return Ok(None) };
        let Newer::Events(events) = self.store.newer(id, kept.version)? else { return Ok(None) };
        let Some(last) = events.last() else { return Ok(Some(kept)) };
        let version = last.version;
        let (mut state, mut tail_bytes) = (kept.state.clone(), kept.tail_bytes);
        for event in &events {
            state.apply(&read_event(&event.body)?);
            tail_bytes += event.body.len();
        }
        let (id, owner, workflow) = (id.to_owned(), kept.owner.clone(), Arc::clone(&kept.workflow));
        Ok(Some(self.keep(Session { id, owner, version, state, workflow, tail_bytes })))
    }

    pub(super) fn definition(&self, hash: &str, text: &str) -> Result<Arc<Workflow>, Error> {
        let mut definitions = self.definitions.lock();
        if let Some(workflow) = definitions.get(hash) {
            return Ok(Arc::clone(workflow));
        }
        if content_hash(text) != hash {
            return Err(damaged("a definition was changed"));
        }
        let workflow = read_trusted(text, Format::Json);
        let workflow = Arc::new(workflow.ok_or_else(|| damaged("a definition cannot be read"))?);
        if definitions.len() >= KEPT_MAX {
            definitions.clear();
        }
        definitions.insert(hash.to_owned(), Arc::clone(&workflow));
        Ok(workflow)
    }

    pub(super) fn kept(&self, id: &str) -> Option<Arc<Session>> {
        self.kept.lock().get(id).cloned()
    }

    /// Forgets what a write built on that somebody else has overtaken.
    pub(super) fn forget(&self, after: &Session) {
        let mut kept = self.kept.lock();
        if kept.get(&after.id).is_some_and(|kept| kept.version < after.version) {
            kept.remove(&after.id);
        }
    }

    /// Keeps the newest.
    pub(super) fn keep(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        let mut kept = self.kept.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let is_older = |other: &Arc<Session>| other.version > session.version;
        if !kept.get(&session.id).is_some_and(is_older) {
            kept.insert(session.id.clone(), Arc::clone(&session));
        }
        session
    }
}
