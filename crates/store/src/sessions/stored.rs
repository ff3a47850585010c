//! How a session goes into a log and comes out of it: events, heads and pinned definitions as texts.

use engine::{Refusal, State};
use sha2::{Digest as _, Sha256};
use workflow::Workflow;
use workflow::definition::Step;

use super::{Error, Verdict};
use crate::error::Error as StoreError;
use crate::model::{Definition, Head, NewEvent, Status};

/// A step whose output cannot be checked would hold up a session for ever.
pub(super) fn check_criteria(workflow: &Workflow) -> Result<(), Refusal> {
    let mut unusable = None;
    workflow.each_step(&mut |step| {
        if let Step::Plain(step) = step
            && let Some(criteria) = &step.unusable_criteria
        {
            let (step, details) = (step.id.to_string(), criteria.details.clone());
            unusable.get_or_insert(Refusal::UnusableCriteria { step, details });
        }
    });
    unusable.map_or(Ok(()), Err)
}

/// What the session follows from now on, whatever becomes of the file.
pub(super) fn pinned(workflow: &Workflow) -> Result<Definition, Error> {
    let text = json(workflow)?;
    Ok(Definition { hash: content_hash(&text), text })
}

pub(super) fn content_hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn new_event(event: &engine::Event, revision: Option<u64>) -> Result<NewEvent, Error> {
    let kind = kind(event).to_owned();
    Ok(NewEvent { kind, body: json(event)?, revision, digest: None, search: searched(event) })
}

/// What an event is found by.
pub(super) fn searched(event: &engine::Event) -> Option<String> {
    match event {
        engine::Event::Accepted { submission, .. } | engine::Event::Submitted { submission } => {
            Some(submission.output.clone())
        }
        _ => None,
    }
}

pub(super) fn kind(event: &engine::Event) -> &'static str {
    match event {
        engine::Event::Started { .. } => "started",
        engine::Event::Accepted { .. } => "accepted",
        engine::Event::Returned { .. } => RETURNED,
        engine::Event::Submitted { .. } => "submitted",
        engine::Event::Approved { .. } => "approved",
        engine::Event::Declined { .. } => "declined",
        engine::Event::Rewound { .. } => "rewound",
        engine::Event::LoopApproved { .. } => "loopApproved",
        engine::Event::LoopDeclined { .. } => "loopDeclined",
        engine::Event::Imported { .. } => IMPORTED,
    }
}

/// What an event says about the advance that it answers.
pub(super) fn verdict(event: &engine::Event) -> Option<Verdict> {
    match event {
        engine::Event::Accepted { .. } | engine::Event::Approved { .. } => Some(Verdict::Accepted),
        engine::Event::Returned { issues, suggestions, .. } => {
            let (issues, suggestions) = (issues.clone(), suggestions.clone());
            Some(Verdict::Returned { issues, suggestions })
        }
        engine::Event::Submitted { .. } => Some(Verdict::Waiting),
        engine::Event::Declined { decision } => {
            Some(Verdict::Declined { reason: decision.reason.clone() })
        }
        engine::Event::Started { .. }
        | engine::Event::Rewound { .. }
        | engine::Event::LoopApproved { .. }
        | engine::Event::LoopDeclined { .. }
        | engine::Event::Imported { .. } => None,
    }
}

pub(super) fn head(state: &State) -> Head {
    let status = match (state.pending(), &state.step) {
        (Some(_), _) => Status::Waiting,
        (None, Some(_)) => Status::Running,
        (None, None) => Status::Complete,
    };
    Head { status, step: state.position().map(str::to_owned), revision: state.revision }
}

pub(super) fn read_event(body: &str) -> Result<engine::Event, Error> {
    serde_json::from_str(body)
        .map_err(|error| damaged(&format!("an event cannot be read: {error}")))
}

/// The kind whose body no state depends on. It is as large as an output, and there may be thousands of them.
pub(super) const RETURNED: &str = "returned";
pub(super) const IMPORTED: &str = "imported";

/// The event of a log, for whoever folds states: the body of a [`RETURNED`] one need not have been read.
pub(super) fn read_decisive(event: &crate::Event) -> Result<engine::Event, Error> {
    if event.kind != RETURNED {
        return read_event(&event.body);
    }
    let (step, output, context) = Default::default();
    let submission = engine::Submission { step, output, context };
    let (issues, suggestions) = Default::default();
    Ok(engine::Event::Returned { submission, issues, suggestions })
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| damaged(&error.to_string()))
}

pub(super) fn damaged(what: &str) -> Error {
    Error::Store(StoreError::Damaged(what.to_owned()))
}
