//! A session with all that happened in it, in the order in which it happened: what `session show` tells, in whichever
//! form. All of it is held at once, as an export is.

use std::cmp::Ordering;
use std::sync::Arc;

use engine::{Budget, Channel, Decision, Event, ImportOrigin, Origin, State};
use store::Version;
use store::sessions::{Session, Sessions};

use super::find::Found;
use service::error::Refusal;
use service::sessions::{Open, from_store, refusal};
use service::words::one_line;

const TITLE_CHARS_MAX: usize = 80;
/// How much of a title a report has. It may quote an output.
const REPORT_TITLE_CHARS_MAX: usize = 200;

pub(super) struct Story {
    pub(super) open: Arc<Open>,
    pub(super) session: Arc<Session>,
    /// Whom it is shared with, over HTTP.
    pub(super) shared_with: Vec<String>,
    /// From the beginning on, without a gap: the first has version 1.
    pub(super) events: Vec<Told>,
    /// What is not as it was written, each in a sentence.
    pub(super) flaws: Vec<String>,
}

/// An event, and what can only be said of it by knowing those around it.
pub(super) struct Told {
    pub(super) version: Version,
    pub(super) time: u64,
    pub(super) event: Event,
    /// The step that it is about; for a beginning and for going back, where that leads.
    pub(super) step: Option<String>,
    /// The title of that step, with what was known then.
    pub(super) title: String,
    /// Which try of the step this is, where it is one.
    pub(super) attempt: Option<u32>,
    /// The going back after which it does not count any more.
    pub(super) superseded_by: Option<Version>,
    /// It came from a file, and the engine cannot decide it again: what a person decided, or a copy's start.
    pub(super) is_unverified: bool,
}

impl Story {
    pub(super) fn read(found: &Found) -> Result<Self, Refusal> {
        let refused = |error| refusal(&found.id, error);
        // One that is broken is shown too, with what is wrong.
        let session = Arc::new(found.open.sessions.replay(&found.id).map_err(refused)?);
        let mut events: Vec<Told> = Vec::new();
        let mut state = State::default();
        let budget = Budget::for_call();
        let each =
            found.open.sessions.each_event(&found.id, session.version, |version, time, event| {
                let (step, attempt) = about(event, &state);
                let leads_there = matches!(event, Event::Started { .. } | Event::Rewound { .. });
                let title_in = |state: &State| {
                    let step = step.as_deref();
                    step.map(|step| title_at(&session, state, step, &events, &budget))
                };
                let before = (!leads_there).then(|| title_in(&state));
                state.apply(event);
                let title = before.unwrap_or_else(|| title_in(&state)).unwrap_or_default();
                let event = event.clone();
                let superseded_by = None;
                let is_unverified = false;
                events.push(Told {
                    version,
                    time,
                    event,
                    step,
                    title,
                    attempt,
                    superseded_by,
                    is_unverified,
                });
            });
        each.map_err(refused)?;
        mark_superseded(&mut events);
        mark_unverified(&mut events);
        let flaws = found.open.sessions.verify(&found.id).map_err(refused)?.flaws;
        let shared_with = found.open.sessions.store().shares(&found.id);
        let shared_with = shared_with.map_err(|error| from_store(&error))?;
        Ok(Self { open: Arc::clone(&found.open), session, shared_with, events, flaws })
    }

    pub(super) fn began(&self) -> u64 {
        self.events.first().map_or(0, |told| told.time)
    }

    pub(super) fn touched(&self) -> u64 {
        self.events.last().map_or(0, |told| told.time)
    }

    /// The session that this one was copied from.
    pub(super) fn origin(&self) -> Option<&Origin> {
        match &self.events.first()?.event {
            Event::Started { forked_from, .. } => forked_from.as_ref(),
            _ => None,
        }
    }

    /// Where it, or its original, was imported from.
    pub(super) fn imported(&self) -> Option<&ImportOrigin> {
        self.session.state.imported.as_ref()
    }

    /// What was done already where this one, a copy, began.
    pub(super) fn done_before(&self) -> &[String] {
        match self.events.first().map(|told| &told.event) {
            Some(Event::Started { place, .. }) => &place.completed,
            _ => &[],
        }
    }
}

impl Told {
    /// The events that going back supersedes, in words.
    pub(super) fn supersedes(&self) -> Option<String> {
        let Event::Rewound { version, .. } = self.event else { return None };
        let (first, last) = (version.saturating_add(1), self.version - 1);
        match first.cmp(&last) {
            Ordering::Less => Some(format!("events {first} to {last}")),
            Ordering::Equal => Some(format!("event {first}")),
            Ordering::Greater => None,
        }
    }
}

/// The step that an event is about, and which try of it that is, as the session stands before it.
fn about(event: &Event, before: &State) -> (Option<String>, Option<u32>) {
    let attempt = Some(before.attempts + 1);
    match event {
        Event::Accepted { submission, .. }
        | Event::Returned { submission, .. }
        | Event::Submitted { submission } => (Some(submission.step.clone()), attempt),
        Event::Approved { .. } | Event::Declined { .. } => (before.step.clone(), attempt),
        Event::LoopApproved { .. } | Event::LoopDeclined { .. } => {
            (before.position().map(str::to_owned), None)
        }
        Event::Imported { .. } => (before.position().map(str::to_owned), None),
        Event::Started { place, .. } | Event::Rewound { place, .. } => (place.step.clone(), None),
    }
}

/// The title of a step as it was when the session stood so, behind these events.
fn title_at(
    session: &Session,
    state: &State,
    step: &str,
    events: &[Told],
    budget: &Budget,
) -> String {
    let output = |step: &str| {
        let location = state.outputs.get(step).filter(|location| location.session.is_none())?;
        let at = usize::try_from(location.version).ok()?.checked_sub(1)?;
        match &events.get(at)?.event {
            Event::Accepted { submission, .. } | Event::Submitted { submission } => {
                Some(submission.output.clone())
            }
            _ => None,
        }
    };
    let title = engine::title(&session.workflow, state, step, &output, budget);
    one_line(&title, REPORT_TITLE_CHARS_MAX)
}

/// Walks back from the end. Where the session went back, what lies between does not count; one may also have gone
/// back to something that was superseded before, and which counts again then.
fn mark_superseded(events: &mut [Told]) {
    let mut at = events.len();
    while at > 0 {
        let by = events[at - 1].version;
        // A log that was forged may lead forward, and that would never end.
        let to = match events[at - 1].event {
            Event::Rewound { version, .. } => {
                usize::try_from(version).unwrap_or(usize::MAX).min(at - 1)
            }
            _ => at - 1,
        };
        for between in &mut events[to..at - 1] {
            between.superseded_by = Some(by);
        }
        at = to;
    }
}

/// What stands before the last import came with it.
fn mark_unverified(events: &mut [Told]) {
    let is_import = |told: &Told| matches!(told.event, Event::Imported { .. });
    let imported = events.iter().rposition(is_import).unwrap_or_default();
    for told in &mut events[..imported] {
        told.is_unverified = match &told.event {
            Event::Started { forked_from, .. } => forked_from.is_some(),
            Event::Approved { .. }
            | Event::Declined { .. }
            | Event::LoopApproved { .. }
            | Event::LoopDeclined { .. } => true,
            Event::Accepted { .. }
            | Event::Returned { .. }
            | Event::Submitted { .. }
            | Event::Rewound { .. }
            | Event::Imported { .. } => false,
        };
    }
}

/// The title of a step or a loop as the session stands.
pub(super) fn current_title(sessions: &Sessions, session: &Session, id: &str) -> String {
    let (outputs, budget) = (sessions.outputs(session), Budget::for_call());
    let title = engine::title(&session.workflow, &session.state, id, &outputs, &budget);
    one_line(&title, REPORT_TITLE_CHARS_MAX)
}

/// A step by its id and its title, as sentences name it.
pub(super) fn step_name(sessions: &Sessions, session: &Session, id: &str) -> String {
    match session.workflow.step(id) {
        Some(_) => {
            let title = current_title(sessions, session, id);
            format!("step `{id}` ({})", one_line(&title, TITLE_CHARS_MAX))
        }
        None => format!("step `{id}`"),
    }
}

/// A loop by its id and its title, as sentences name it.
pub(super) fn loop_name(sessions: &Sessions, session: &Session, id: &str) -> String {
    step_name(sessions, session, id).replacen("step", "loop", 1)
}

/// The file that a session came from, as the rest of a sentence.
pub(super) fn import_name(origin: &ImportOrigin) -> String {
    let ImportOrigin { session, owner, digest, .. } = origin;
    let (session, owner) = (one_line(session, TITLE_CHARS_MAX), one_line(owner, TITLE_CHARS_MAX));
    format!("from a file with session `{session}` of {owner} (SHA-256 {digest})")
}

/// By whom and by which way, as the rest of a sentence.
pub(super) fn decider(decision: &Decision) -> String {
    let way = match decision.channel {
        Channel::Client => "through the client, which vouched for its user (unverified)",
        Channel::Cli => "on the command line",
        Channel::Token => "with a token",
    };
    format!("by {} {way}", one_line(&decision.who, TITLE_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use engine::Place;

    use super::*;

    fn superseded(rewinds: &[(usize, Version)], count: usize) -> Vec<Option<Version>> {
        let told = |at: usize| {
            let rewind = rewinds.iter().find(|(version, _)| *version == at);
            let event = match rewind {
                Some((_, version)) => Event::Rewound {
                    reason: String::new(),
                    version: *version,
                    context: Default::default(),
                    outputs: Default::default(),
                    place: Place::default(),
                },
                None => Event::Returned {
                    submission: submission(),
                    issues: vec![],
                    suggestions: vec![],
                },
            };
            let version = at as Version;
            let (step, attempt, superseded_by) = (None, None, None);
            let (title, is_unverified) = (String::new(), false);
            Told { version, time: 0, event, step, title, attempt, superseded_by, is_unverified }
        };
        let mut events: Vec<Told> = (1..=count).map(told).collect();
        mark_superseded(&mut events);
        events.iter().map(|told| told.superseded_by).collect()
    }

    fn submission() -> engine::Submission {
        engine::Submission {
            step: String::new(),
            output: String::new(),
            context: Default::default(),
        }
    }

    #[test]
    fn what_lies_behind_a_going_back_is_superseded() {
        assert_eq!(superseded(&[], 2), [None, None]);
        assert_eq!(superseded(&[(4, 1)], 5), [None, Some(4), Some(4), None, None]);
        // Back beyond an earlier going back.
        assert_eq!(superseded(&[(3, 2), (5, 1)], 5), [None, Some(5), Some(5), Some(5), None]);
        // Back to what was superseded, which counts again.
        assert_eq!(superseded(&[(4, 1), (6, 2)], 6), [None, None, Some(6), Some(6), Some(6), None]);
        // What nobody but a forger writes.
        assert_eq!(superseded(&[(2, 2), (3, 99), (4, 0)], 4), [Some(4), Some(4), Some(4), None]);
        assert_eq!(superseded(&[(2, u64::MAX)], 3), [None, None, None]);
    }
}
