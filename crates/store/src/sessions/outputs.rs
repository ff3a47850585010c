//! Outputs of earlier steps, read back from the log: for texts that refer to them, and whole for an agent that has
//! lost its context. Only what counts is found: what a rewind has superseded is not.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use engine::{Event, OutputLocation};
use workflow::template::Outputs;

use super::stored::{RETURNED, damaged, read_decisive, read_event};
use super::{Error, Session, Sessions};
use crate::error::Error as StoreError;
use crate::model::{EventPage, Order, Version};

/// How many sessions an output is looked for in: the session, and those that it was copied from.
const COPIES_MAX: usize = 64;

/// The accepted outputs of a session, as texts refer to them. Each is read once.
pub struct SessionOutputs<'s> {
    sessions: &'s Sessions,
    session: &'s Session,
    found: RefCell<HashMap<String, Option<Arc<str>>>>,
    error: Cell<Option<Error>>,
}

/// One submission for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The iteration of the step that it belongs to, from 1, and how many there are.
    pub iteration: u32,
    pub iterations: u32,
    /// Which submission of the iteration it is, from 1, and how many there are.
    pub attempt: u32,
    pub attempts: u32,
    pub outcome: AttemptOutcome,
    pub output: String,
    pub time: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    Accepted,
    /// Did not pass its checks.
    Rejected,
    /// Passed its checks; a person has not decided yet.
    Waiting,
    /// A person has rejected it.
    Declined,
    /// Another submission came before a person decided.
    Replaced,
}

impl AttemptOutcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Waiting => "waiting",
            Self::Declined => "declined",
            Self::Replaced => "replaced",
        }
    }
}

/// Which submission of a step is wanted. By default the last accepted one, or the last if none is.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptQuery {
    pub iteration: Option<u32>,
    pub attempt: Option<u32>,
}

/// Where a submission is in the log.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// An index into the sessions that were read.
    session: usize,
    version: Version,
    iteration: u32,
    attempt: u32,
    outcome: AttemptOutcome,
}

impl Sessions {
    pub fn outputs<'s>(&'s self, session: &'s Session) -> SessionOutputs<'s> {
        let (found, error) = (RefCell::default(), Cell::new(None));
        SessionOutputs { sessions: self, session, found, error }
    }

    /// A submission for a step; none if there is no such one.
    pub fn attempt(
        &self,
        session: &Session,
        step: &str,
        query: AttemptQuery,
    ) -> Result<Option<Attempt>, Error> {
        let chain = self.chain(session)?;
        let mut entries: Vec<Entry> = Vec::new();
        for (index, (id, to)) in chain.iter().enumerate() {
            self.collect_attempts(index, id, *to, step, &mut entries)?;
        }
        let iterations = entries.last().map_or(0, |entry| entry.iteration);
        let wanted = query.iteration.or(query.attempt.map(|_| iterations));
        let in_iteration = |entry: &&Entry| wanted.is_none_or(|it| it == entry.iteration);
        let candidates = || entries.iter().filter(in_iteration).rev();
        let chosen = match query.attempt {
            Some(attempt) => candidates().find(|entry| entry.attempt == attempt),
            None => candidates()
                .find(|entry| entry.outcome == AttemptOutcome::Accepted)
                .or_else(|| candidates().next()),
        };
        let Some(&Entry { session: index, version, iteration, attempt, outcome }) = chosen else {
            return Ok(None);
        };
        let of_iteration = entries.iter().filter(|entry| entry.iteration == iteration);
        let attempts = of_iteration.map(|entry| entry.attempt).max().unwrap_or(attempt);
        let (event, time) = self.event_at(&chain[index].0, version)?;
        let output = match event {
            Event::Accepted { submission, .. }
            | Event::Returned { submission, .. }
            | Event::Submitted { submission } => submission.output,
            _ => return Err(damaged("a submission that is none")),
        };
        let found = Attempt { iteration, iterations, attempt, attempts, outcome, output, time };
        Ok(Some(found))
    }

    /// The session and those that it was copied from, oldest first, each up to the version that counts.
    fn chain(&self, session: &Session) -> Result<Vec<(String, Version)>, Error> {
        let mut chain = vec![(session.id.clone(), session.version)];
        while chain.len() < COPIES_MAX {
            let (id, _) = &chain[chain.len() - 1];
            // A file may name anybody's session as the one that it was copied from.
            if self.store.meta(id)?.is_none_or(|meta| meta.is_imported) {
                break;
            }
            let (first, _) = match self.event_at(id, 1) {
                // The session that it was copied from is gone.
                Err(Error::Store(StoreError::NotFound) | Error::NotFound) => {
                    chain.pop();
                    break;
                }
                first => first?,
            };
            let Event::Started { forked_from: Some(origin), .. } = first else { break };
            chain.push((origin.session, origin.version));
        }
        chain.reverse();
        Ok(chain)
    }

    /// Adds the submissions for a step that a log has up to a version. Rejected outputs are not read.
    fn collect_attempts(
        &self,
        session: usize,
        id: &str,
        to: Version,
        step: &str,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let mut is_current = false;
        let add = |entries: &mut Vec<Entry>, version, outcome| {
            let (iteration, attempt) = match entries.last() {
                None => (1, 1),
                Some(last) if last.outcome == AttemptOutcome::Accepted => (last.iteration + 1, 1),
                Some(last) => (last.iteration, last.attempt + 1),
            };
            if let Some(last) = entries.last_mut()
                && last.outcome == AttemptOutcome::Waiting
            {
                last.outcome = AttemptOutcome::Replaced;
            }
            entries.push(Entry { session, version, iteration, attempt, outcome });
        };
        self.each_page(id, 1, to, Some(RETURNED), |stored| {
            let version = stored.version;
            let place = match read_decisive(stored)? {
                Event::Started { place, .. } => place,
                Event::Accepted { submission, place } => {
                    if submission.step == step {
                        add(entries, version, AttemptOutcome::Accepted);
                    }
                    place
                }
                Event::Returned { .. } => {
                    if is_current {
                        add(entries, version, AttemptOutcome::Rejected);
                    }
                    return Ok(());
                }
                Event::Submitted { submission } => {
                    if submission.step == step {
                        add(entries, version, AttemptOutcome::Waiting);
                    }
                    return Ok(());
                }
                Event::Approved { place, .. } => {
                    settle(entries, is_current, AttemptOutcome::Accepted);
                    place
                }
                Event::Declined { .. } => {
                    settle(entries, is_current, AttemptOutcome::Declined);
                    return Ok(());
                }
                Event::Rewound { version: kept, place, .. } => {
                    entries.retain(|entry| entry.session != session || entry.version <= kept);
                    place
                }
                Event::LoopApproved { .. }
                | Event::LoopDeclined { .. }
                | Event::Imported { .. } => return Ok(()),
            };
            is_current = place.step.as_deref() == Some(step);
            Ok(())
        })
    }

    /// One event of a log, and when it was written.
    fn event_at(&self, id: &str, version: Version) -> Result<(Event, u64), Error> {
        let page =
            EventPage { from: version, order: Order::OldestFirst, limit: 1, omit_bodies_of: None };
        let page = self.store.page(id, page)?;
        let stored = page.first().filter(|event| event.version == version);
        let stored = stored.ok_or_else(|| damaged("a log that is shorter than its head says"))?;
        Ok((read_event(&stored.body)?, stored.time))
    }

    /// The output of a step at a location that a state names.
    fn located(
        &self,
        session: &Session,
        step: &str,
        location: &OutputLocation,
    ) -> Result<Option<Arc<str>>, Error> {
        let id = match &location.session {
            None => &session.id,
            Some(original) => {
                let chain = self.chain(session)?;
                let is_known =
                    |(id, to): &(String, Version)| **id == **original && location.version <= *to;
                if !chain.iter().any(is_known) {
                    return Ok(None);
                }
                &**original
            }
        };
        let event = match self.event_at(id, location.version) {
            Err(Error::Store(StoreError::NotFound) | Error::NotFound) => return Ok(None),
            event => event?.0,
        };
        Ok(match event {
            Event::Accepted { submission, .. } | Event::Submitted { submission }
                if submission.step == step =>
            {
                Some(submission.output.into())
            }
            _ => None,
        })
    }
}

/// Records the decision about the submission that waits.
fn settle(entries: &mut [Entry], is_current: bool, outcome: AttemptOutcome) {
    if let Some(last) = entries.last_mut()
        && is_current
        && last.outcome == AttemptOutcome::Waiting
    {
        last.outcome = outcome;
    }
}

impl SessionOutputs<'_> {
    /// The error of the store that left a reference unfilled, if any.
    pub fn finish(self) -> Result<(), Error> {
        self.error.into_inner().map_or(Ok(()), Err)
    }
}

impl Outputs for SessionOutputs<'_> {
    fn output(&self, step: &str) -> Option<Cow<'_, str>> {
        let location = self.session.state.outputs.get(step)?;
        let mut found = self.found.borrow_mut();
        if !found.contains_key(step) {
            let output = match self.sessions.located(self.session, step, location) {
                Ok(output) => output,
                Err(error) => {
                    self.error.set(Some(error));
                    None
                }
            };
            found.insert(step.to_owned(), output);
        }
        found.get(step)?.as_deref().map(|output| Cow::Owned(output.to_owned()))
    }
}
