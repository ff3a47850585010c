//! Looking back into the log of a session: what a repeated call got, where a step was current, what the finished
//! steps produced. A list of the last outputs is read from the end, and does not grow with the log.

use std::sync::Arc;

use engine::{Event, State, Submission};

use workflow::{Format, read_trusted};

use super::stored::{content_hash, damaged, head, read_event, searched, verdict};
use super::{Advanced, Error, Session, Sessions, Verdict};
use crate::error::Error as StoreError;
use crate::export::{ExportedHead, ExportedLog};
use crate::model::{Head, Version};

/// How many events are read at once on the way back, and in all.
const BACK_PAGE: u64 = 16;
const BACK_MAX: u64 = 256;

const ELSEWHERE: &str = "replayed, it does not stand where its head says";

/// A step that is done, and what it produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub step: String,
    pub output: String,
    pub time: u64,
}

/// The last finished steps, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    pub steps: Vec<Finished>,
    /// There were more before them.
    pub is_cut: bool,
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
        let before = self.state_at(&session.id, stored.version - 1)?;
        let handed_in = match &event {
            Event::Accepted { submission, .. }
            | Event::Returned { submission, .. }
            | Event::Submitted { submission } => Some(submission),
            Event::Approved { .. } | Event::Declined { .. } => before.waiting.as_ref(),
            Event::Started { .. } | Event::Rewound { .. } => None,
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

    /// The last time that a session came to a step: after which event, and how it stood. What was superseded by going
    /// back does not count: going back must never lead forward.
    pub(super) fn last_at(
        &self,
        session: &Arc<Session>,
        step: &str,
    ) -> Result<(Version, State), Error> {
        let mut arrivals: Vec<Version> = Vec::new();
        self.each_event(&session.id, session.version, |version, _, event| {
            let place = match event {
                Event::Started { place, .. }
                | Event::Accepted { place, .. }
                | Event::Approved { place, .. } => place,
                Event::Rewound { place, version: to, .. } => {
                    arrivals.retain(|arrival| arrival <= to);
                    place
                }
                Event::Returned { .. } | Event::Submitted { .. } | Event::Declined { .. } => return,
            };
            if place.step.as_deref() == Some(step) {
                arrivals.push(version);
            }
        })?;
        match arrivals.last() {
            Some(version) => Ok((*version, self.state_at(&session.id, *version)?)),
            None => Err(Error::NeverThere { step: step.to_owned(), session: Arc::clone(session) }),
        }
    }

    pub(super) fn state_at(&self, id: &str, version: Version) -> Result<State, Error> {
        let mut state: Option<State> = None;
        self.each_event(id, version, |_, _, event| match &mut state {
            Some(state) => state.apply(event),
            None => state = State::of([event]),
        })?;
        state.ok_or_else(|| damaged("a log without a beginning"))
    }

    /// Every event of a session up to a version, in order, each with its version and its time.
    pub fn each_event(
        &self,
        id: &str,
        to: Version,
        mut visit: impl FnMut(Version, u64, &Event),
    ) -> Result<(), Error> {
        let mut from = 1;
        while from <= to {
            let page = self.store.events(id, from, crate::limits::PAGE_MAX)?;
            let Some(last) = page.last().map(|event| event.version) else {
                return Err(damaged("a log that is shorter than its head says"));
            };
            for event in page.iter().filter(|event| event.version <= to) {
                visit(event.version, event.time, &read_event(&event.body)?);
            }
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
        Ok(Session { id: meta.id, owner, version, state, workflow: Arc::new(workflow) })
    }

    /// What the last finished steps produced, at most so many. What was superseded by going back is left out; a
    /// copy goes on with the session that it was made from.
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
                let from = at.saturating_sub(BACK_PAGE - 1).max(1);
                let count = usize::try_from(at - from + 1).unwrap_or(usize::MAX);
                let page = match self.store.events(&id, from, count) {
                    // The session that this one was made from is gone.
                    Err(StoreError::NotFound) if id != session.id => {
                        summary.is_cut = true;
                        break 'sessions;
                    }
                    page => page?,
                };
                at = from - 1;
                for stored in page.into_iter().rev() {
                    looked_at += 1;
                    let time = stored.time;
                    let mut finish = |submission: Submission, time| {
                        let Submission { step, output, .. } = submission;
                        summary.steps.push(Finished { step, output, time });
                    };
                    match read_event(&stored.body)? {
                        Event::Accepted { submission, .. } => finish(submission, time),
                        Event::Approved { .. } => confirmed = Some(time),
                        Event::Submitted { submission } => {
                            if let Some(time) = confirmed.take() {
                                finish(submission, time);
                            }
                        }
                        Event::Rewound { version, .. } => {
                            at = version;
                            break;
                        }
                        Event::Started { forked_from: Some(from), .. } => {
                            (id, at) = (from.session, from.version);
                            continue 'sessions;
                        }
                        Event::Returned { .. } | Event::Declined { .. } | Event::Started { .. } => {
                        }
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
        let last = self.store.events(&session.id, session.version, 1)?.pop();
        Ok(last.map(|event| read_event(&event.body)).transpose()?.as_ref().and_then(verdict))
    }

    /// Computes the chain of a session anew and replays its events: everything that is wrong, each in a sentence.
    pub fn verify(&self, id: &str) -> Result<Vec<String>, Error> {
        let verified = self.store.verify(id)?;
        let mut flaws: Vec<String> = verified.flaws.iter().map(ToString::to_string).collect();
        match self.replayed(id) {
            Ok(flaw) => flaws.extend(flaw),
            Err(Error::Store(StoreError::Damaged(flaw))) => flaws.push(flaw),
            Err(error) => return Err(error),
        }
        Ok(flaws)
    }

    /// Takes in an exported session, if it can be replayed.
    pub fn import(&self, log: &ExportedLog) -> Result<(), Error> {
        let is_readable = read_trusted(&log.definition.text, Format::Json).is_some();
        if !is_readable || content_hash(&log.definition.text) != log.definition.hash {
            return Err(damaged("the definition is not the one that the session began with"));
        }
        let events = log.events.iter().map(|event| read_event(event.body.get()));
        let events: Vec<Event> = events.collect::<Result<_, _>>()?;
        let is_begun = matches!(events.first(), Some(Event::Started { .. }));
        let state = State::of(&events).filter(|_| is_begun);
        let state = state.ok_or_else(|| damaged("a log without a beginning"))?;
        let ExportedHead { status, step, revision, .. } = &log.head;
        let given = Head { status: *status, step: step.clone(), revision: *revision };
        if head(&state) != given || state.workflow_id != log.session.workflow {
            return Err(damaged(ELSEWHERE));
        }
        let search = |event: &crate::Event| searched(&read_event(&event.body).ok()?);
        Ok(self.store.import(log, &search)?)
    }

    fn replayed(&self, id: &str) -> Result<Option<String>, Error> {
        let meta = self.store.meta(id)?.ok_or(Error::NotFound)?;
        let state = self.state_at(id, meta.version)?;
        let is_same = head(&state) == meta.head && state.workflow_id == meta.workflow;
        Ok((!is_same).then(|| ELSEWHERE.to_owned()))
    }
}
