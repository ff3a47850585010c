//! A session for a program. These names are promised in `docs/json-output.md`.

use engine::{Completed, Event, ImportOrigin, LoopGate, Origin, Submission};
use serde::Serialize;
use store::{Status, Version};
use workflow::Context;

use crate::cli::session::story::{Story, Told};
use service::sessions::time_text;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'a> {
    session_id: &'a str,
    workflow_id: &'a str,
    workflow_name: &'a str,
    workflow_version: &'a str,
    goal: Option<&'a str>,
    owner: &'a str,
    shared_with: &'a [String],
    is_strict: bool,
    status: Status,
    step_id: Option<&'a str>,
    revision: u64,
    attempts: u32,
    began: String,
    touched: String,
    waiting: Option<Handed<'a>>,
    /// The loops that wait for a person before they begin.
    loop_gate: Option<Gate<'a>>,
    imported: Option<&'a ImportOrigin>,
    context: &'a Context,
    completed: &'a Completed,
    forked_from: Option<&'a Origin>,
    events: Vec<Entry<'a>>,
    flaws: &'a [String],
}

/// Loops that wait for a person.
#[derive(Serialize)]
struct Gate<'a> {
    /// What a decision names.
    version: Version,
    #[serde(flatten)]
    gate: &'a LoopGate,
}

/// What waits for a person.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Handed<'a> {
    version: Version,
    step_id: &'a str,
    output: &'a str,
    context: &'a Context,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    number: Version,
    time: String,
    step_id: Option<&'a str>,
    attempt: Option<u32>,
    superseded_by: Option<Version>,
    is_unverified: bool,
    /// As it is stored.
    event: &'a Event,
}

impl<'a> Document<'a> {
    pub(super) fn of(story: &'a Story) -> Self {
        let session = &*story.session;
        let state = &session.state;
        Self {
            session_id: &session.id,
            workflow_id: &state.workflow_id,
            workflow_name: &session.workflow.name,
            workflow_version: &session.workflow.version,
            goal: state.goal.as_deref(),
            owner: &session.owner,
            shared_with: &story.shared_with,
            is_strict: state.strict,
            status: session.status(),
            step_id: state.position(),
            revision: state.revision,
            attempts: state.attempts,
            began: time_text(story.began()),
            touched: time_text(story.touched()),
            waiting: state.waiting.as_ref().map(|waiting| Handed::of(waiting, session.version)),
            loop_gate: state.loop_gate.as_ref().map(|gate| Gate { version: session.version, gate }),
            imported: story.imported(),
            context: &state.context,
            completed: &state.completed,
            forked_from: story.origin(),
            events: story.events.iter().map(Entry::of).collect(),
            flaws: &story.flaws,
        }
    }
}

impl<'a> Handed<'a> {
    fn of(submission: &'a Submission, version: Version) -> Self {
        let Submission { step, output, context } = submission;
        Self { version, step_id: step, output, context }
    }
}

impl<'a> Entry<'a> {
    fn of(told: &'a Told) -> Self {
        Self {
            number: told.version,
            time: time_text(told.time),
            step_id: told.step.as_deref(),
            attempt: told.attempt,
            superseded_by: told.superseded_by,
            is_unverified: told.is_unverified,
            event: &told.event,
        }
    }
}
