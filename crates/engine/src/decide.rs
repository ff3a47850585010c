//! What a command comes to: an event, or a refusal. Nothing is done here; whoever asks stores the event and
//! folds it into the state.

use workflow::{Context, Workflow};

use crate::check::{Checker, variables_at};
use crate::command::Command;
use crate::event::{Channel, Decision, Event, Place, Submission};
use crate::loops::{KEY, LoopState};
use crate::next::{Found, Ids, Keeper, find, is_confirmed, named_bodies};
use crate::refusal::Refusal;
use crate::state::State;

/// The longest output of a step.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// How much context a session may hold, as JSON.
pub const CONTEXT_BYTES_MAX: usize = 256 * 1024;
/// The longest reason of a decision, or of going back.
pub const REASON_BYTES_MAX: usize = 4 * 1024;

/// Decides. None: what is asked for is so already.
pub fn decide(
    workflow: &Workflow,
    checker: &Checker,
    state: Option<&State>,
    command: Command<'_>,
) -> Result<Option<Event>, Refusal> {
    match (command, state) {
        (Command::Start { goal, context, strict }, None) => {
            start(workflow, goal, context, strict).map(Some)
        }
        (Command::Fork { from, state: then }, None) => Ok(Some(Event::Started {
            workflow_id: then.workflow_id.clone(),
            goal: then.goal.clone(),
            context: then.context.clone(),
            forked_from: Some(from),
            gated: then.gated.clone(),
            strict: then.strict,
            place: whole_place(then),
        })),
        (Command::Advance { revision, submission }, Some(state)) => {
            advance(workflow, checker, state, revision, submission)
        }
        (Command::Approve(decision), Some(state)) => {
            let submission = state.waiting.as_ref().ok_or(Refusal::NotWaiting)?;
            check_channel(state, &decision)?;
            check_reason(decision.reason.as_deref())?;
            let place = place_after(workflow, state, current(workflow, state)?, submission)?;
            Ok(Some(Event::Approved { decision, place }))
        }
        (Command::Decline(decision), Some(state)) => match state.waiting {
            Some(_) => {
                check_channel(state, &decision)?;
                check_reason(decision.reason.as_deref())?;
                Ok(Some(Event::Declined { decision }))
            }
            None => Err(Refusal::NotWaiting),
        },
        (Command::Rewind { revision, version, then, reason }, Some(state)) => {
            check_revision(state, revision)?;
            check_reason(Some(&reason))?;
            let (context, place) = (then.context.clone(), whole_place(then));
            Ok(Some(Event::Rewound { reason, version, context, place }))
        }
        (Command::Start { .. } | Command::Fork { .. }, Some(_)) => {
            Err(Refusal::BadState { details: "the session has begun already".to_owned() })
        }
        (_, None) => Err(Refusal::BadState { details: "the session has not begun".to_owned() }),
    }
}

/// The current step.
pub(crate) fn current<'a>(workflow: &'a Workflow, state: &'a State) -> Result<Found<'a>, Refusal> {
    let loops = state.loops.clone();
    let completed = Ids::new(&state.completed);
    let found = find(workflow, &completed, loops, &state.context, Keeper::Session)?;
    if found.step.map(|step| &*step.id) != state.step.as_deref() {
        let details =
            "the session stands where this version of the program would not go".to_owned();
        return Err(Refusal::BadState { details });
    }
    Ok(found)
}

fn start(
    workflow: &Workflow,
    goal: Option<String>,
    context: Context,
    strict: bool,
) -> Result<Event, Refusal> {
    check_context(&context)?;
    let none = Ids::new::<String>(&[]);
    let first = find(workflow, &none, LoopState::default(), &context, Keeper::Session)?;
    let place = Place { step: first.step.map(|step| step.id.to_string()), ..Place::default() };
    let workflow_id = workflow.id.to_string();
    let (forked_from, gated) = (None, Vec::new());
    Ok(Event::Started { workflow_id, goal, context, forked_from, gated, strict, place })
}

fn advance(
    workflow: &Workflow,
    checker: &Checker,
    state: &State,
    revision: u64,
    submission: Submission,
) -> Result<Option<Event>, Refusal> {
    check_revision(state, revision)?;
    if state.step.as_deref() != Some(&*submission.step) {
        let (step, current) = (submission.step, state.step.clone());
        return Err(Refusal::NotCurrent { step, current });
    }
    if state.waiting.as_ref() == Some(&submission) {
        return Ok(None);
    }
    if submission.output.len() > OUTPUT_BYTES_MAX {
        return Err(Refusal::TooLarge { what: "an output", limit: OUTPUT_BYTES_MAX });
    }
    let context = merged(state, &submission);
    check_context(&context)?;
    let now = current(workflow, state)?;
    let Submission { step, output, .. } = &submission;
    let Some(plain) = now.step else { return Err(Refusal::step_not_found(workflow, step)) };
    let variables = variables_at(workflow, step, &now.state, &context)?;
    let verdict = checker.judge(plain, output, &variables)?;
    if !verdict.valid {
        let (issues, suggestions) = (verdict.issues, verdict.suggestions);
        return Ok(Some(Event::Returned { submission, issues, suggestions }));
    }
    let is_gated = state.gated.contains(step);
    let confirmation = plain.require_confirmation.as_ref();
    if is_gated || now.requires_confirmation() || is_confirmed(confirmation, &variables) {
        return Ok(Some(Event::Submitted { submission }));
    }
    let place = place_after(workflow, state, now, &submission)?;
    Ok(Some(Event::Accepted { submission, place }))
}

/// Where a session stands once a submission for its current step is accepted.
fn place_after(
    workflow: &Workflow,
    state: &State,
    now: Found<'_>,
    submission: &Submission,
) -> Result<Place, Refusal> {
    let is_top = |id: &str| {
        workflow.steps.iter().any(|step| step.id() == id) && !named_bodies(workflow).contains(&id)
    };
    // What an agent would report as completed: the step, unless a loop counts it, and the loops that ended.
    let Found { running, state: mut loops, .. } = now;
    let mut completed = Vec::new();
    if running.is_empty() {
        completed.push(submission.step.clone());
    }
    let ended = loops.loops.extract_if(.., |id, progress| progress.ended && is_top(id));
    completed.extend(ended.map(|(id, _)| id));
    let before = state.completed.iter().map(|id| &**id);
    let all: Vec<&str> = before.chain(completed.iter().map(String::as_str)).collect();
    let context = merged(state, submission);
    let next = find(workflow, &Ids::new(&all), loops.clone(), &context, Keeper::Session)?;
    let step = next.step.map(|step| step.id.to_string());
    Ok(Place { step, completed, loops })
}

fn whole_place(state: &State) -> Place {
    let completed = state.completed.iter().map(ToString::to_string).collect();
    Place { step: state.step.clone(), completed, loops: state.loops.clone() }
}

fn merged(state: &State, submission: &Submission) -> Context {
    let mut context = state.context.clone();
    context.extend(submission.context.clone());
    context
}

fn check_revision(state: &State, given: u64) -> Result<(), Refusal> {
    if given == state.revision {
        return Ok(());
    }
    Err(Refusal::WrongRevision { given, current: state.revision })
}

/// Who could sit at a terminal or answer for a client's user could be the agent.
fn check_channel(state: &State, decision: &Decision) -> Result<(), Refusal> {
    match decision.channel {
        Channel::Token => Ok(()),
        Channel::Client | Channel::Cli if state.strict => Err(Refusal::StrictGate),
        Channel::Client | Channel::Cli => Ok(()),
    }
}

/// Where loops stand is the session's business, and what it holds is bounded.
fn check_context(context: &Context) -> Result<(), Refusal> {
    if context.contains_key(KEY) {
        return Err(Refusal::Reserved { variable: KEY });
    }
    let bytes = serde_json::to_string(context).map_or(0, |text| text.len());
    if bytes > CONTEXT_BYTES_MAX {
        return Err(Refusal::TooLarge { what: "the context", limit: CONTEXT_BYTES_MAX });
    }
    Ok(())
}

fn check_reason(reason: Option<&str>) -> Result<(), Refusal> {
    if reason.is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
        return Err(Refusal::TooLarge { what: "a reason", limit: REASON_BYTES_MAX });
    }
    Ok(())
}
