//! Looking back into the log of a session: what a repeated call got, where a step was current, what the finished
//! steps produced. A list of the last outputs is read from the end, and does not grow with the log.

use std::sync::Arc;

use engine::{Event, ImportOrigin, LoopState, State, Submission};

use workflow::{Format, read_trusted};

use super::stored::{IMPORTED, RETURNED, damaged, head, read_decisive, read_event, verdict};
use super::{Advanced, Error, Session, Sessions, Verdict};
use crate::error::Error as StoreError;
use crate::limits::PAGE_MAX;
use crate::model::{EventPage, Order, Version};

/// How many events are read at once on the way back, and in all.
const BACK_PAGE: usize = 16;
const BACK_MAX: u64 = 256;
/// How many imports at the end of a log are looked past for what came before them.
const IMPORTS_MAX: usize = 8;

pub(super) const ELSEWHERE: &str = "replayed, it does not stand where its head says";

/// A step that is done, and what it produced.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub step: String,
    pub output: String,
    pub time: u64,
    /// Where the loops stood when it was done.
    pub loops: LoopState,
}

/// The last finished steps, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    pub steps: Vec<Finished>,
    /// There were more before them.
    pub is_cut: bool,
}

/// What checking a session came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Everything that is wrong, each in a sentence.
    pub flaws: Vec<String>,
    /// The import that it came from: what was so before, this store cannot vouch for.
    pub imported: Option<ImportOrigin>,
}

impl Sessions {
    /// The answer that this very call has got before.
    pub(super) fn answered(
        &self,
        session: &Session,
        revision: u64,
        submission: &Submission,
    ) -> Result<Option<Advanced>, Error> {
        let Some(stored) = self.store.event_at_revision(&session.id, revision)? else {
            return Ok(None);
        };
        let event = read_event(&stored.body)?;
        // Compared first: only the state of a call that was answered is worth reading the log for.
        let is_same = match &event {
            Event::Accepted { submission: handed_in, .. }
            | Event::Returned { submission: handed_in, .. }
            | Event::Submitted { submission: handed_in } => handed_in == submission,
            Event::Approved { .. } | Event::Declined { .. } => {
                let waiting = self.last_before_imports(&session.id, stored.version - 1)?;
                matches!(waiting, Some(Event::Submitted { submission: waiting }) if waiting == *submission)
            }
            Event::Started { .. }
            | Event::Rewound { .. }
            | Event::LoopApproved { .. }
            | Event::LoopDeclined { .. }
            | Event::Imported { .. } => false,
        };
        if !is_same {
            return Ok(None);
        }
        let mut state = self.state_at(&session.id, stored.version - 1)?;
        state.apply(&event);
        // That the session came from a file counts for all of its history.
        state.imported.clone_from(&session.state.imported);
        let verdict = verdict(&event);
        let session = Arc::new(Session {
            id: session.id.clone(),
            owner: session.owner.clone(),
            version: stored.version,
            state,
            workflow: Arc::clone(&session.workflow),
            tail_bytes: 0,
        });
        Ok(verdict.map(|verdict| Advanced { session, verdict }))
    }

    /// The last time that a session came to a step: after which event, and how it stood. What was superseded by going
    /// back does not count: going back must never lead forward.
    pub(super) fn last_at(
        &self,
        session: &Arc<Session>,
        step: &str,
    ) -> Result<(Version, State), Error> {
        let mut arrivals: Vec<Version> = Vec::new();
        let mut is_there = false;
        self.each_decisive(&session.id, 1, session.version, |version, event| {
            let place = match event {
                Event::Started { place, .. }
                | Event::Accepted { place, .. }
                | Event::Approved { place, .. } => place,
                Event::Rewound { place, version: to, .. } => {
                    arrivals.retain(|arrival| arrival <= to);
                    place
                }
                // From here on the step is handed out.
                Event::LoopApproved { .. } => {
                    arrivals.extend(is_there.then_some(version));
                    return;
                }
                Event::Returned { .. }
                | Event::Submitted { .. }
                | Event::Declined { .. }
                | Event::LoopDeclined { .. }
                | Event::Imported { .. } => return,
            };
            is_there = place.step.as_deref() == Some(step);
            arrivals.extend(is_there.then_some(version));
        })?;
        match arrivals.last() {
            Some(version) => Ok((*version, self.state_at(&session.id, *version)?)),
            None => Err(Error::NeverThere { step: step.to_owned(), session: Arc::clone(session) }),
        }
    }

    pub(super) fn state_at(&self, id: &str, version: Version) -> Result<State, Error> {
        self.state_from(id, None, version)
    }

    /// The same from a state that is known at an earlier version.
    pub(super) fn state_from(
        &self,
        id: &str,
        known: Option<(State, Version)>,
        version: Version,
    ) -> Result<State, Error> {
        let from = known.as_ref().map_or(1, |(_, known)| known + 1);
        let mut state = known.map(|(state, _)| state);
        self.each_decisive(id, from, version, |_, event| match &mut state {
            Some(state) => state.apply(event),
            None => state = State::of([event]),
        })?;
        state.ok_or_else(|| damaged("a log without a beginning"))
    }

    /// The events between two versions as a fold of states needs them: rejected outputs are not read.
    fn each_decisive(
        &self,
        id: &str,
        from: Version,
        to: Version,
        mut visit: impl FnMut(Version, &Event),
    ) -> Result<(), Error> {
        self.each_page(id, from, to, Some(RETURNED), |stored| {
            visit(stored.version, &read_decisive(stored)?);
            Ok(())
        })
    }

    /// Every event of a session up to a version, in order, each with its version and its time.
    pub fn each_event(
        &self,
        id: &str,
        to: Version,
        mut visit: impl FnMut(Version, u64, &Event),
    ) -> Result<(), Error> {
        self.each_page(id, 1, to, None, |stored| {
            visit(stored.version, stored.time, &read_event(&stored.body)?);
            Ok(())
        })
    }

    /// Goes through a log with no more than one page of it in memory.
    pub(super) fn each_page(
        &self,
        id: &str,
        mut from: Version,
        to: Version,
        omit_bodies_of: Option<&'static str>,
        mut visit: impl FnMut(&crate::Event) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (order, limit) = (Order::OldestFirst, PAGE_MAX);
        while from <= to {
            let page = self.store.page(id, EventPage { from, order, limit, omit_bodies_of })?;
            let Some(last) = page.last().map(|event| event.version) else {
                return Err(damaged("a log that is shorter than its head says"));
            };
            page.iter().filter(|event| event.version <= to).try_for_each(&mut visit)?;
            from = last + 1;
        }
        Ok(())
    }

    /// The session as its events tell it, believed or not: for who looks at one that may be broken.
    pub fn replay(&self, id: &str) -> Result<Session, Error> {
        let meta = self.store.meta(id)?.ok_or(Error::NotFound)?;
        let state = self.state_at(id, meta.version)?;
        let text = self.store.definition(&meta.definition)?;
        let workflow = text.and_then(|text| read_trusted(&text, Format::Json));
        let workflow = workflow.ok_or_else(|| damaged("a definition cannot be read"))?;
        let (owner, version) = (meta.owner, meta.version);
        let workflow = Arc::new(workflow);
        Ok(Session { id: meta.id, owner, version, state, workflow, tail_bytes: 0 })
    }

    /// What the last finished steps produced, at most so many. What was superseded by going back is left out; a
    /// copy goes on with the session that it was made from, unless a file says which that was: anybody's session could be
    /// named there. However the log was written, each event is closer to the beginning than the one before, or counts
    /// against the bound.
    pub fn summary(&self, session: &Session, max: usize) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let (mut id, mut at) = (session.id.clone(), session.version);
        let mut looked_at = 0;
        // A confirmed output stands before its confirmation.
        let mut confirmed = None;
        'sessions: loop {
            while at > 0 {
                if summary.steps.len() == max || looked_at >= BACK_MAX {
                    summary.is_cut = true;
                    break 'sessions;
                }
                let (order, omit_bodies_of) = (Order::NewestFirst, Some(RETURNED));
                let page = EventPage { from: at, order, limit: BACK_PAGE, omit_bodies_of };
                let page = match self.store.page(&id, page) {
                    // The session that this one was made from is gone.
                    Err(StoreError::NotFound) if id != session.id => {
                        summary.is_cut = true;
                        break 'sessions;
                    }
                    page => page?,
                };
                at = page.last().map_or(0, |event| event.version.saturating_sub(1));
                for stored in page {
                    looked_at += 1;
                    let time = stored.time;
                    let mut finish = |submission: Submission, time, loops| {
                        let Submission { step, output, .. } = submission;
                        summary.steps.push(Finished { step, output, time, loops });
                    };
                    match read_decisive(&stored)? {
                        Event::Accepted { submission, place } => {
                            finish(submission, time, place.loops);
                        }
                        Event::Approved { place, .. } => confirmed = Some((time, place.loops)),
                        Event::Submitted { submission } => {
                            if let Some((time, loops)) = confirmed.take() {
                                finish(submission, time, loops);
                            }
                        }
                        Event::Rewound { version, .. } => {
                            at = version.min(stored.version - 1);
                            break;
                        }
                        Event::Started { forked_from: Some(from), .. } => {
                            if session.state.imported.is_some() {
                                summary.is_cut = true;
                                break 'sessions;
                            }
                            (id, at) = (from.session, from.version);
                            continue 'sessions;
                        }
                        Event::Returned { .. }
                        | Event::Declined { .. }
                        | Event::Started { .. }
                        | Event::LoopApproved { .. }
                        | Event::LoopDeclined { .. }
                        | Event::Imported { .. } => {}
                    }
                    if summary.steps.len() == max {
                        at = stored.version - 1;
                        break;
                    }
                }
            }
            break;
        }
        summary.steps.reverse();
        Ok(summary)
    }

    /// What came of the last output for the current step, where it was not accepted: what was wrong with it.
    pub fn last_try(&self, session: &Session) -> Result<Option<Verdict>, Error> {
        if session.state.attempts == 0 || session.state.waiting.is_some() {
            return Ok(None);
        }
        let last = self.last_before_imports(&session.id, session.version)?;
        Ok(last.as_ref().and_then(verdict))
    }

    /// The last event up to a version that is no import.
    fn last_before_imports(&self, id: &str, version: Version) -> Result<Option<Event>, Error> {
        let (order, limit) = (Order::NewestFirst, IMPORTS_MAX);
        let page = EventPage { from: version, order, limit, omit_bodies_of: Some(IMPORTED) };
        let page = self.store.page(id, page)?;
        let last = page.iter().find(|event| event.kind != IMPORTED);
        last.map(|event| read_event(&event.body)).transpose()
    }

    /// Computes the chain of a session anew and replays its events.
    pub fn verify(&self, id: &str) -> Result<Verification, Error> {
        let verified = self.store.verify(id)?;
        let mut flaws: Vec<String> = verified.flaws.iter().map(ToString::to_string).collect();
        let imported = match self.replayed(id) {
            Ok((flaw, imported)) => {
                flaws.extend(flaw);
                imported
            }
            Err(Error::Store(StoreError::Damaged(flaw))) => {
                flaws.push(flaw);
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Verification { flaws, imported })
    }

    fn replayed(&self, id: &str) -> Result<(Option<String>, Option<ImportOrigin>), Error> {
        let meta = self.store.meta(id)?.ok_or(Error::NotFound)?;
        let state = self.state_at(id, meta.version)?;
        let is_same = head(&state) == meta.head && state.workflow_id == meta.workflow;
        Ok(((!is_same).then(|| ELSEWHERE.to_owned()), state.imported))
    }
}
