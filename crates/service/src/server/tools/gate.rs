//! Asking the client's user whether a step may be left. The user sees the output, and what they decide becomes an
//! event with its channel. No argument of the agent's has a say in it.

use std::sync::Arc;
use std::time::Duration;

use engine::{Budget, Channel, Decision, LoopGate, Pending, REASON_BYTES_MAX};
use mcp::{Answer, Answers, Ask, Call, Caller, Form, Outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::sessions::{Error, Session};
use transport::Context;
use untrusted_text::escape;

use super::advance::{self, HandingIn};
use super::{cut, refused};
use crate::access::{Right, Who};
use crate::app::App;
use crate::error::Refusal;
use crate::server::session_resources;
use crate::sessions::{self, Asked, Gate, Gates, Open, now, refusal};
use crate::words::one_line;

/// How long a call stays open for its user: clients give up after 60 s.
const PATIENCE: Duration = Duration::from_secs(45);
/// How much of an output is shown in a question.
const SHOWN_BYTES_MAX: usize = 8 * 1024;
/// How many variables are, and how much of each.
const VARIABLES_MAX: usize = 50;
const VARIABLE_BYTES_MAX: usize = 400;
/// How much of a variable's name, of a title, and of a goal.
const NAME_CHARS_MAX: usize = 100;
const TITLE_CHARS_MAX: usize = 200;
const GOAL_CHARS_MAX: usize = 200;
/// What is wanted, for the audit log.
const ANSWER: &str = "an answer to a question";
/// The question's name, by which its answer is found.
const QUESTION: &str = "gate";

/// Has the client ask its user about what waits, before the output that was just handed in leads further.
pub(super) fn ask(
    handing_in: &HandingIn,
    arguments: &RawValue,
    session: &Session,
    budget: &Budget,
) -> Outcome {
    let call = handing_in.call_text();
    let gate = handing_in.gate(&call);
    let (open, caller) = (&handing_in.open, &handing_in.caller);
    let output = Some(&*handing_in.submission.output);
    let subject = Subject { session, output };
    ask_about(open, caller, advance::TOOL.name, arguments, gate, subject, budget)
}

/// The session that waits, and what was handed in last.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) session: &'a Session,
    pub(super) output: Option<&'a str>,
}

/// The same for any call that leads to something that waits.
pub(super) fn ask_about(
    open: &Open,
    caller: &Caller,
    tool: &'static str,
    arguments: &RawValue,
    gate: Gate<'_>,
    subject: Subject<'_>,
    budget: &Budget,
) -> Outcome {
    let session = subject.session;
    let state = open.signer.sign(gate, session.version, caller.principal.as_deref(), now());
    let arguments = arguments.to_owned();
    Outcome::Ask(Box::new(Ask {
        call: Call::Tool { name: tool, arguments, is_method: false },
        questions: vec![(QUESTION.to_owned(), form(open, subject, budget).into())],
        patience: PATIENCE,
        about: Some(session_resources::uri(&session.id)),
        state: Some(state),
    }))
}

fn form(open: &Open, subject: Subject<'_>, budget: &Budget) -> Form {
    let Subject { session, output } = subject;
    let state = &session.state;
    let step = state.position().unwrap_or_default();
    let outputs = open.sessions.outputs(session);
    let title = engine::title(&session.workflow, state, step, &outputs, budget);
    let title = one_line(&title, TITLE_CHARS_MAX);
    let goal = state.goal.as_ref();
    let goal = goal.map(|goal| format!(" ({})", one_line(goal, GOAL_CHARS_MAX)));
    let goal = goal.unwrap_or_default();
    let (question, context, effect) = match state.pending() {
        Some(Pending::Loops(LoopGate { loops, .. })) => {
            let inner = match &loops[1..] {
                [] => String::new(),
                inner => format!(", with `{}` inside it,", inner.join("`, `")),
            };
            (
                format!("asks you to approve that loop `{step}`, {title},{inner} begins."),
                &state.context,
                "approve: the loop begins; reject: it does not",
            )
        }
        Some(Pending::Output(submission)) => (
            format!("asks you to confirm step `{step}`, {title}, before it goes on."),
            &submission.context,
            "approve: the session goes on; reject: the agent does the step again",
        ),
        None => (String::new(), &state.context, ""),
    };
    let mut shown = String::new();
    if let Some(output) = output {
        let output = escape(output);
        shown = format!(" What the agent handed in:\n\n{}", cut(&output, SHOWN_BYTES_MAX));
        if output.len() > SHOWN_BYTES_MAX {
            let id = &session.id;
            shown.push_str(&format!("\n\n`workflowlookup session show {id}` shows all of it."));
        }
    }
    if !context.is_empty() {
        shown.push_str("\n\nWhat it reports besides:");
    }
    for (name, value) in context.iter().take(VARIABLES_MAX) {
        let (name, value) = (one_line(name, NAME_CHARS_MAX), value.to_string());
        shown.push_str(&format!("\n- {name}: {}", cut(&value, VARIABLE_BYTES_MAX)));
    }
    let message = format!("Workflow `{}`{goal} {question}{shown}", state.workflow_id);
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": effect,
                "enum": ["approve", "reject"],
            },
            "reason": {
                "type": "string",
                "title": "Reason",
                "description": "For the agent and for the record",
            },
        },
        "required": ["decision"],
    });
    // The person approves what they see.
    Form { message: escape(&message).into_owned(), schema }
}

/// Takes what the user said, if it answers our question. It is about what they saw: where that does not wait any
/// more, nothing is decided.
pub(super) async fn decide(
    handing_in: Arc<HandingIn>,
    context: &Context,
) -> Result<Outcome, Refusal> {
    let HandingIn { open, caller, id, who, .. } = &*handing_in;
    let asked = asked(open, caller);
    let call = handing_in.call_text();
    let Some(asked) = asked.filter(|asked| asked.is_about(handing_in.gate(&call))) else {
        who.refused(ANSWER, Some(id), "it answers no question that they were asked", &open.audit);
        return Ok(not_ours());
    };
    let ruling = Ruling::of(caller);
    let work = move || {
        let HandingIn { open, who, .. } = &*handing_in;
        let decided = ruling.map(|ruling| decided(open, &asked, ruling, who));
        if let Some(Err(error)) = decided {
            return refused(&refusal(&asked.session, error));
        }
        // The same call again gets what became of it.
        handing_in.wait()
    };
    Ok(context.run(work).await)
}

/// Takes what the user said about a session that has just begun, and that waits before its first step. Says which one
/// that is.
pub(super) fn decide_start(
    open: &Open,
    arguments: &RawValue,
    caller: &Caller,
    who: &Who,
) -> Result<String, Outcome> {
    let asked = asked(open, caller).filter(|asked| {
        asked.is_about(Gate { session: &asked.session, revision: 0, call: arguments.get() })
    });
    let Some(asked) = asked else {
        who.refused(ANSWER, None, "it answers no question that they were asked", &open.audit);
        return Err(not_ours());
    };
    if open.see(who, &asked.session, ANSWER).is_err() {
        return Err(not_ours());
    }
    match Ruling::of(caller).map(|ruling| decided(open, &asked, ruling, who)) {
        Some(Err(error)) => Err(refused(&refusal(&asked.session, error))),
        _ => Ok(asked.session),
    }
}

/// Takes what a user said to a question that another process asked. The call that waits there sees what became of it.
pub(crate) async fn settle(
    app: &App,
    answers: Answers,
    caller: &Caller,
    who: Who,
    context: &Context,
) -> Outcome {
    let Ok(Some(open)) = app.sessions().get_if_any() else { return not_ours() };
    let caller = Caller { answers: Some(answers), ..caller.clone() };
    let Some(asked) = asked(&open, &caller) else {
        who.refused(ANSWER, None, "it answers no question that they were asked", &open.audit);
        return not_ours();
    };
    // They may have been let in on it when they were asked, and not any more.
    let is_theirs = who
        .needs_about(Some(&asked.session), Right::Use, ANSWER, &open.audit)
        .and_then(|()| open.see(&who, &asked.session, ANSWER));
    if is_theirs.is_err() {
        return not_ours();
    }
    // Where nobody made a choice, it goes on waiting.
    let ruling = Ruling::of(&caller);
    let work = move || {
        if let Some(Err(error)) = ruling.map(|ruling| decided(&open, &asked, ruling, &who)) {
            tracing::warn!("a decision cannot be recorded: {}", refusal(&asked.session, error));
        }
        // Nobody waits for what comes of it here.
        Outcome::Fault
    };
    context.run(work).await
}

fn asked(open: &Open, caller: &Caller) -> Option<Asked> {
    let state = caller.answers.as_ref()?.state.as_deref()?;
    open.signer.verify(state, caller.principal.as_deref(), now())
}

fn not_ours() -> Outcome {
    let details = "the requestState is not ours, belongs to another call, or is too old; make the call again \
        without it";
    Outcome::BadParams(details.to_owned())
}

/// Where somebody else has decided meanwhile, that is what counts; and where only a token decides, it goes on waiting.
fn decided(open: &Open, asked: &Asked, ruling: Ruling, who: &Who) -> Result<(), Error> {
    let Ruling { is_approved, reason } = ruling;
    if open.gates == Gates::Strict {
        // Also where the session itself would take it.
        let reason = engine::Refusal::StrictGate.to_string();
        who.refused(ANSWER, Some(&asked.session), &reason, &open.audit);
        return Ok(());
    }
    let who_decides = who.name(open).to_owned();
    let decision = Decision { who: who_decides, channel: Channel::Client, reason };
    let (session, version, right) = (&*asked.session, asked.version, who.right());
    let ruling = sessions::Ruling { session, version, is_approved, decision, right };
    match open.rule(ruling) {
        Ok(_)
        | Err(Error::Refused {
            refusal: engine::Refusal::NotWaiting | engine::Refusal::StrictGate,
            ..
        }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What a person decided.
#[derive(Debug)]
struct Ruling {
    pub is_approved: bool,
    reason: Option<String>,
}

impl Ruling {
    /// None where nobody made a choice: then it waits.
    fn of(caller: &Caller) -> Option<Self> {
        match caller.answers.as_ref()?.given.get(QUESTION)? {
            Answer::Accepted(fields) => {
                let is_approved = match fields.get("decision").and_then(Value::as_str)? {
                    "approve" => true,
                    "reject" => false,
                    _ => return None,
                };
                let reason = fields.get("reason").and_then(Value::as_str).map(str::trim);
                let reason = reason.filter(|reason| !reason.is_empty());
                let reason = reason.map(|reason| cut(reason, REASON_BYTES_MAX - 3).into_owned());
                Some(Self { is_approved, reason })
            }
            Answer::Declined => Some(Self { is_approved: false, reason: None }),
            Answer::Cancelled | Answer::Sampled(_) | Answer::Roots(_) => None,
        }
    }
}

impl HandingIn {
    fn gate<'a>(&'a self, call: &'a str) -> Gate<'a> {
        Gate { session: &self.id, revision: self.revision, call }
    }

    /// What is handed in. The context is sorted by name, so that the same one is always the same text.
    fn call_text(&self) -> String {
        serde_json::to_string(&self.submission).unwrap_or_default()
    }
}
