//! What a command comes to: an event, or a refusal. Nothing is done here; whoever asks stores the event and
//! folds it into the state.

use std::collections::BTreeMap;

use budget::Budget;
use workflow::{Context, Workflow};

use crate::check::{Checker, variables_at};
use crate::command::Command;
use crate::event::{Channel, Decision, Event, Place, Submission};
use crate::loops::{KEY, LoopState};
use crate::next::{Found, Ids, Keeper, Running, find, is_confirmed};
use crate::refusal::Refusal;
use crate::reports::check_session_names;
use crate::rules::Rules;
use crate::state::{Pending, State};

/// The longest output of a step.
pub const OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// How much context a session may hold, as JSON.
pub const CONTEXT_BYTES_MAX: usize = 256 * 1024;
/// The longest reason of a decision, a rewind or a fork.
pub const REASON_BYTES_MAX: usize = 4 * 1024;

/// Decides. None: what is asked for is so already.
pub fn decide(
    workflow: &Workflow,
    checker: &Checker,
    state: Option<&State>,
    command: Command<'_>,
    budget: &Budget,
) -> Result<Option<Event>, Refusal> {
    match (command, state) {
        (Command::Start { goal, context, strict, rules }, None) => {
            start(workflow, checker, goal, context, strict, rules, budget).map(Some)
        }
        (Command::Fork { from, state: then }, None) => {
            check_reason(from.reason.as_deref())?;
            Ok(Some(Event::Started {
                rules: then.rules,
                workflow_id: then.workflow_id.clone(),
                goal: then.goal.clone(),
                context: then.context.clone(),
                forked_from: Some(from.clone()),
                gated: then.gated.clone(),
                strict: then.strict,
                imported: then.imported.clone(),
                references_outputs: then.references_outputs,
                outputs: then.outputs_from(&from.session),
                place: whole_place(then),
            }))
        }
        (Command::Advance { revision, submission }, Some(state)) => {
            advance(workflow, checker, state, revision, submission, budget)
        }
        (Command::Approve(decision), Some(state)) => {
            let pending = check_decision(state, &decision)?;
            let now = current(workflow, state, budget)?;
            Ok(Some(match pending {
                Pending::Output(submission) => {
                    let place = place_after(workflow, state, now, submission, budget)?;
                    Event::Approved { decision, place }
                }
                Pending::Loops(_) => Event::LoopApproved { decision },
            }))
        }
        (Command::Decline(decision), Some(state)) => {
            Ok(Some(match check_decision(state, &decision)? {
                Pending::Output(_) => Event::Declined { decision },
                Pending::Loops(_) => Event::LoopDeclined { decision },
            }))
        }
        (Command::Rewind { revision, version, then, reason }, Some(state)) => {
            check_revision(state, revision)?;
            check_reason(Some(&reason))?;
            let (context, place) = (then.context.clone(), whole_place(then));
            let outputs = then.outputs.clone();
            Ok(Some(Event::Rewound { reason, version, context, outputs, place }))
        }
        (Command::Start { .. } | Command::Fork { .. }, Some(_)) => {
            Err(Refusal::BadState { details: "the session has begun already".to_owned() })
        }
        (_, None) => Err(Refusal::BadState { details: "the session has not begun".to_owned() }),
    }
}

/// The current step.
pub(crate) fn current<'a, 'b>(
    workflow: &'a Workflow,
    state: &'a State,
    budget: &'b Budget,
) -> Result<Found<'a, 'b>, Refusal> {
    if !state.rules.is_known() {
        let (rules, known) = (state.rules, Rules::CURRENT);
        let details = format!(
            "the session follows rules {rules}, and this version of the program knows up to {known}"
        );
        return Err(Refusal::BadState { details });
    }
    let loops = state.loops.clone();
    let completed = Ids::of_session(&state.completed);
    let keeper = Keeper::Session(state.rules);
    let found = find(workflow, &completed, loops, &state.context, keeper, budget)?;
    if found.step.map(|step| &*step.id) != state.step.as_deref() {
        let details =
            "the session stands where this version of the program would not go".to_owned();
        return Err(Refusal::BadState { details });
    }
    Ok(found)
}

/// Refuses a state that no session of this workflow can be in, where it was not computed here: the beginning of a
/// copy, in a log from elsewhere.
pub fn check_state(workflow: &Workflow, state: &State, budget: &Budget) -> Result<(), Refusal> {
    check_context(&state.context)?;
    let completed = state.completed.iter();
    let gated = state.gated.iter().map(String::as_str);
    if let Some(unknown) = completed.chain(gated).find(|id| workflow.step(id).is_none()) {
        return Err(Refusal::step_not_found(workflow, unknown));
    }
    state.loops.check(workflow, budget)?;
    let found = current(workflow, state, budget)?;
    let begins = |id: &String| {
        let mut running = found.running.iter();
        running.any(|running| running.begins && *running.step.id == **id)
    };
    match &state.loop_gate {
        Some(gate) if !state.rules.decides_loop_gate_first() || !gate.loops.iter().all(begins) => {
            let details = "it waits before a loop that does not begin there".to_owned();
            Err(Refusal::BadState { details })
        }
        _ => Ok(()),
    }
}

fn start(
    workflow: &Workflow,
    checker: &Checker,
    goal: Option<String>,
    context: Context,
    strict: bool,
    rules: Rules,
    budget: &Budget,
) -> Result<Event, Refusal> {
    check_context(&context)?;
    let references_outputs = workflow.uses_reserved_names();
    if references_outputs {
        check_session_names(&context)?;
    }
    checker.check_context(workflow, &context, budget)?;
    let none = Ids::new::<String>(&[]);
    let keeper = Keeper::Session(rules);
    let first = find(workflow, &none, LoopState::default(), &context, keeper, budget)?;
    let step = first.step.map(|step| step.id.to_string());
    let place = Place { step, gates: loop_gates(&first, &[]), ..Place::default() };
    Ok(Event::Started {
        rules,
        workflow_id: workflow.id.to_string(),
        goal,
        context,
        forked_from: None,
        gated: Vec::new(),
        strict,
        imported: None,
        references_outputs,
        outputs: BTreeMap::new(),
        place,
    })
}

/// The loops that begin with the step found and that a person has to approve before.
fn loop_gates(found: &Found<'_, '_>, gated: &[String]) -> Vec<String> {
    let Keeper::Session(rules) = found.keeper else { return Vec::new() };
    if !rules.decides_loop_gate_first() {
        return Vec::new();
    }
    let is_gate = |running: &&Running<'_>| {
        running.confirms || running.begins && gated.iter().any(|id| **id == *running.step.id)
    };
    let gates = found.running.iter().filter(is_gate);
    gates.map(|running| running.step.id.to_string()).collect()
}

fn advance(
    workflow: &Workflow,
    checker: &Checker,
    state: &State,
    revision: u64,
    submission: Submission,
    budget: &Budget,
) -> Result<Option<Event>, Refusal> {
    check_revision(state, revision)?;
    if let Some(gate) = &state.loop_gate {
        return Err(Refusal::LoopGate { loops: gate.loops.clone() });
    }
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
    if state.references_outputs {
        check_session_names(&context)?;
    }
    let now = current(workflow, state, budget)?;
    let Submission { step, output, .. } = &submission;
    let Some(plain) = now.step else { return Err(Refusal::step_not_found(workflow, step)) };
    let variables = variables_at(workflow, step, &now.state, &context, budget)?;
    let reported = Some(&submission.context);
    let verdict = checker.judge(workflow, plain, output, reported, &variables)?;
    if !verdict.valid {
        let (issues, suggestions) = (verdict.issues, verdict.suggestions);
        return Ok(Some(Event::Returned { submission, issues, suggestions }));
    }
    let is_gated = state.gated.contains(step);
    let confirmation = plain.require_confirmation.as_ref();
    if is_gated || now.requires_confirmation()? || is_confirmed(step, confirmation, &variables)? {
        return Ok(Some(Event::Submitted { submission }));
    }
    let place = place_after(workflow, state, now, &submission, budget)?;
    Ok(Some(Event::Accepted { submission, place }))
}

/// Where a session stands once a submission for its current step is accepted.
fn place_after(
    workflow: &Workflow,
    state: &State,
    now: Found<'_, '_>,
    submission: &Submission,
    budget: &Budget,
) -> Result<Place, Refusal> {
    let named = workflow.named_bodies();
    let is_top =
        |id: &str| workflow.steps.iter().any(|step| step.id() == id) && !named.contains(id);
    // What an agent would report as completed: the step, unless a loop counts it, and the loops that ended.
    let Found { running, state: mut loops, .. } = now;
    let mut completed = Vec::new();
    if running.is_empty() {
        completed.push(submission.step.clone());
    }
    let ended = loops.loops.extract_if(.., |id, progress| progress.ended && is_top(id));
    completed.extend(ended.map(|(id, _)| id));
    let all = Ids::with_more(&state.completed, &completed);
    let context = merged(state, submission);
    let keeper = Keeper::Session(state.rules);
    let next = find(workflow, &all, loops.clone(), &context, keeper, budget)?;
    let step = next.step.map(|step| step.id.to_string());
    let gates = loop_gates(&next, &state.gated);
    Ok(Place { step, completed, loops, gates })
}

fn whole_place(state: &State) -> Place {
    let completed = state.completed.iter().map(ToString::to_string).collect();
    let gates = state.loop_gate.as_ref().map(|gate| gate.loops.clone()).unwrap_or_default();
    Place { step: state.step.clone(), completed, loops: state.loops.clone(), gates }
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

/// What a decision is about, where it may be made.
fn check_decision<'s>(state: &'s State, decision: &Decision) -> Result<Pending<'s>, Refusal> {
    let pending = state.pending().ok_or(Refusal::NotWaiting)?;
    check_channel(state, decision)?;
    check_reason(decision.reason.as_deref())?;
    Ok(pending)
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
    check_bytes(context, CONTEXT_BYTES_MAX)
}

/// Whether a context is within a limit, as JSON.
pub(crate) fn check_bytes(context: &Context, limit: usize) -> Result<(), Refusal> {
    let mut left = Left(limit);
    // Only running out of room can go wrong.
    serde_json::to_writer(&mut left, context)
        .map_err(|_| Refusal::TooLarge { what: "the context", limit })
}

/// Room that is written to, and nothing kept.
struct Left(usize);

impl std::io::Write for Left {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or(std::io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn check_reason(reason: Option<&str>) -> Result<(), Refusal> {
    if reason.is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
        return Err(Refusal::TooLarge { what: "a reason", limit: REASON_BYTES_MAX });
    }
    Ok(())
}
