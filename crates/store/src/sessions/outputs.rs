//! Outputs of earlier steps, read back from the log: for texts that refer to them, and whole for an agent that has
//! lost its context. Only what counts is found: what a rewind has superseded is not. A copy reads on in the log of its
//! original; when that log is not in the store, the copy's own outputs are all that is left.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use engine::{Event, OutputLocation};
use workflow::template::Outputs;

use super::stored::{RETURNED, damaged, read_decisive, read_event};
use super::{Error, Session, Sessions};
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

/// Why an output of an original cannot be read by its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnavailableOutput {
    #[error("its original session was removed")]
    OriginalRemoved,
    /// Even if the store has a session of that name: a file may name any session as the original.
    #[error("the session was imported without its original")]
    OriginalNotImported,
    /// The log has nothing at the recorded place, or the original is more than [`COPIES_MAX`] copies away.
    #[error("no record of it was found")]
    NotRecorded,
}

/// The result of looking for an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptLookup {
    Found(Attempt),
    /// The logs have no such attempt.
    Missing {
        /// Why the log of an original was not searched, if there is one that was not.
        earlier: Option<UnavailableOutput>,
    },
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
    /// An index into [`Lineage::logs`].
    session: usize,
    version: Version,
    iteration: u32,
    attempt: u32,
    outcome: AttemptOutcome,
}

/// The logs that hold the outputs of a session.
#[derive(Debug)]
struct Lineage {
    /// Those that it was copied from, oldest first, and its own. Each up to the version that counts.
    logs: Vec<(String, Version)>,
    /// Why there are no logs before the first one, if there should be.
    missing: Option<UnavailableOutput>,
}

impl Sessions {
    pub fn outputs<'s>(&'s self, session: &'s Session) -> SessionOutputs<'s> {
        let (found, error) = (RefCell::default(), Cell::new(None));
        SessionOutputs { sessions: self, session, found, error }
    }

    /// Looks for a submission for a step.
    pub fn attempt(
        &self,
        session: &Session,
        step: &str,
        query: AttemptQuery,
    ) -> Result<AttemptLookup, Error> {
        let Lineage { logs, missing: mut earlier } = self.lineage(session)?;
        let mut entries: Vec<Entry> = Vec::new();
        for (index, (id, to)) in logs.iter().enumerate() {
            match self.collect_attempts(index, id, *to, step, &mut entries) {
                // It was removed just now, and so nothing before it counts any more.
                Err(Error::NotFound) if *id != session.id => {
                    entries.clear();
                    earlier = Some(UnavailableOutput::OriginalRemoved);
                }
                collected => collected?,
            }
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
            return Ok(AttemptLookup::Missing { earlier });
        };
        let of_iteration = entries.iter().filter(|entry| entry.iteration == iteration);
        let attempts = of_iteration.map(|entry| entry.attempt).max().unwrap_or(attempt);
        let id = &logs[index].0;
        let (event, time) = match self.event_at(id, version) {
            Err(Error::NotFound) if *id != session.id => {
                let earlier = Some(UnavailableOutput::OriginalRemoved);
                return Ok(AttemptLookup::Missing { earlier });
            }
            event => event?,
        };
        let output = match event {
            Event::Accepted { submission, .. }
            | Event::Returned { submission, .. }
            | Event::Submitted { submission } => submission.output,
            _ => return Err(damaged("a submission that is none")),
        };
        let found = Attempt { iteration, iterations, attempt, attempts, outcome, output, time };
        Ok(AttemptLookup::Found(found))
    }

    /// The session and those that it was copied from, as far as they are in the store.
    fn lineage(&self, session: &Session) -> Result<Lineage, Error> {
        let mut logs = vec![(session.id.clone(), session.version)];
        let missing = loop {
            let (id, _) = &logs[logs.len() - 1];
            let meta = self.store.meta(id)?;
            let first = match meta {
                Some(_) => self.event_at(id, 1),
                None => Err(Error::NotFound),
            };
            let first = match first {
                Err(Error::NotFound) if logs.len() > 1 => {
                    logs.pop();
                    break Some(UnavailableOutput::OriginalRemoved);
                }
                first => first?.0,
            };
            let Event::Started { forked_from: Some(origin), .. } = first else { break None };
            // A file may name anybody's session as the one that it was copied from.
            if meta.is_some_and(|meta| meta.is_imported) {
                break Some(UnavailableOutput::OriginalNotImported);
            }
            if logs.len() == COPIES_MAX {
                break Some(UnavailableOutput::NotRecorded);
            }
            logs.push((origin.session, origin.version));
        };
        logs.reverse();
        Ok(Lineage { logs, missing })
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
    ) -> Result<Result<Arc<str>, UnavailableOutput>, Error> {
        let OutputLocation { session: original, version } = location;
        let id = match original {
            // Imports of earlier versions of the product did not check locations.
            None if !(1..=session.version).contains(version) => {
                return Ok(Err(UnavailableOutput::NotRecorded));
            }
            None => &session.id,
            Some(original) => {
                let Lineage { logs, missing } = self.lineage(session)?;
                let originals = &logs[..logs.len() - 1];
                let is_known = |(id, to): &(String, Version)| {
                    **id == **original && (1..=*to).contains(version)
                };
                if !originals.iter().any(is_known) {
                    return Ok(Err(missing.unwrap_or(UnavailableOutput::NotRecorded)));
                }
                &**original
            }
        };
        let event = match self.event_at(id, *version) {
            Err(Error::NotFound) if *id != *session.id => {
                return Ok(Err(UnavailableOutput::OriginalRemoved));
            }
            event => event?.0,
        };
        Ok(match event {
            Event::Accepted { submission, .. } | Event::Submitted { submission }
                if submission.step == step =>
            {
                Ok(submission.output.into())
            }
            _ => Err(UnavailableOutput::NotRecorded),
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
                Ok(Ok(output)) => Some(output),
                // The text says so: the slot as it is written would be taken for a part of the task.
                Ok(Err(why)) => {
                    Some(format!("(the output of step `{step}` is not available: {why})").into())
                }
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
