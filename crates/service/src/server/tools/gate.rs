//! Asking the client's user whether a step may be left. The user sees the output, and what they decide becomes an
//! event with its channel. No argument of the agent's has a say in it.

use std::time::Duration;

use engine::{Channel, Decision, REASON_BYTES_MAX, Submission};
use mcp::{Answer, Answers, Ask, Call, Caller, Form, Outcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::sessions::{Error, Session};

use super::advance::{HandingIn, NAME};
use super::{Carried, cut, refused};
use crate::access::{Right, Who};
use crate::app::App;
use crate::error::Refusal;
use crate::server::session_resources;
use crate::sessions::{self, Asked, Gate, Gates, Open, now, refusal};

/// How long a call stays open for its user: clients give up after 60 s.
const PATIENCE: Duration = Duration::from_secs(45);
/// How much of an output is shown in a question.
const SHOWN_BYTES_MAX: usize = 8 * 1024;
/// How many variables are, and how much of each.
const VARIABLES_MAX: usize = 50;
const VARIABLE_BYTES_MAX: usize = 400;
/// What is wanted, for the audit log.
const ANSWER: &str = "an answer to a question";
/// The question's name, by which its answer is found.
const QUESTION: &str = "gate";

/// Has the client ask its user about what waits.
pub(super) fn ask(handing_in: &HandingIn, arguments: &RawValue, session: &Session) -> Outcome {
    let signer = &handing_in.open.signer;
    let principal = handing_in.caller.principal.as_deref();
    let state = signer.sign(handing_in.gate(), session.version, principal, now());
    let arguments = arguments.to_owned();
    Outcome::Ask(Box::new(Ask {
        call: Call::Tool { name: NAME, arguments, is_method: false },
        questions: vec![(QUESTION.to_owned(), form(session, &handing_in.submission).into())],
        patience: PATIENCE,
        about: Some(session_resources::uri(&session.id)),
        state: Some(state),
    }))
}

fn form(session: &Session, submission: &Submission) -> Form {
    let Submission { output, context, .. } = submission;
    let step = session.state.step.as_deref().unwrap_or_default();
    let title = session.workflow.step(step).map_or(step, |step| step.title());
    let goal = session.state.goal.as_ref().map(|goal| format!(" ({})", cut(goal, 200)));
    let goal = goal.unwrap_or_default();
    let mut shown = cut(output, SHOWN_BYTES_MAX).into_owned();
    if shown.len() < output.len() {
        let id = &session.id;
        shown.push_str(&format!("\n\n`workflowlookup session show {id}` shows all of it."));
    }
    if !context.is_empty() {
        shown.push_str("\n\nWhat it reports besides:");
    }
    for (name, value) in context.iter().take(VARIABLES_MAX) {
        let value = value.to_string();
        shown.push_str(&format!("\n- {}: {}", cut(name, 100), cut(&value, VARIABLE_BYTES_MAX)));
    }
    let message = format!(
        "Workflow `{}`{goal} asks you to confirm step `{step}`, {title}, before it goes on. What the agent handed \
         in:\n\n{shown}",
        session.state.workflow_id
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": "approve: the session goes on; reject: the agent does the step again",
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
    Form { message, schema }
}

/// Takes what the user said, if it answers our question. It is about what they saw: where that does not wait any
/// more, nothing is decided.
pub(super) fn decide(handing_in: HandingIn, answers: &Answers) -> Result<Carried, Refusal> {
    let asked = asked(&handing_in.open, answers, &handing_in.caller);
    let Some(asked) = asked.filter(|asked| asked.is_about(handing_in.gate())) else {
        let HandingIn { open, id, who, .. } = &handing_in;
        who.refused(ANSWER, Some(id), "it answers no question that they were asked", &open.audit);
        return Ok(not_ours().into());
    };
    let ruling = Ruling::of(answers.given.get(QUESTION));
    Ok(Carried::Later(Box::new(move || {
        let HandingIn { open, who, .. } = &handing_in;
        let decided = ruling.map(|ruling| decided(open, &asked, ruling, who));
        if let Some(Err(error)) = decided {
            return refused(&refusal(&asked.session, error));
        }
        // The same call again gets what became of it.
        handing_in.wait()
    })))
}

/// Takes what a user said to a question that another process asked. The call that waits there sees what became of it.
pub(crate) fn settle(app: &App, answers: &Answers, caller: &Caller, who: &Who) -> Carried {
    let Ok(Some(open)) = app.sessions().get_if_any() else {
        return not_ours().into();
    };
    let Some(asked) = asked(&open, answers, caller) else {
        who.refused(ANSWER, None, "it answers no question that they were asked", &open.audit);
        return not_ours().into();
    };
    // They may have been let in on it when they were asked, and not any more.
    let is_theirs = who
        .needs_about(Some(&asked.session), Right::Use, ANSWER, &open.audit)
        .and_then(|()| open.see(who, &asked.session, ANSWER));
    if is_theirs.is_err() {
        return not_ours().into();
    }
    // Where nobody made a choice, it goes on waiting.
    let ruling = Ruling::of(answers.given.get(QUESTION));
    let who = who.clone();
    Carried::Later(Box::new(move || {
        if let Some(Err(error)) = ruling.map(|ruling| decided(&open, &asked, ruling, &who)) {
            tracing::warn!("a decision cannot be recorded: {}", refusal(&asked.session, error));
        }
        // Nobody waits for what comes of it here.
        Outcome::Fault
    }))
}

fn asked(open: &Open, answers: &Answers, caller: &Caller) -> Option<Asked> {
    let state = answers.state.as_deref()?;
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
    fn of(answer: Option<&Answer>) -> Option<Self> {
        match answer? {
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
    fn gate(&self) -> Gate<'_> {
        Gate { session: &self.id, revision: self.revision, submission: &self.submission }
    }
}
