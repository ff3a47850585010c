//! `workflow_advance`: takes a step's output, has it checked, and hands out the next step. A step that a person has to
//! confirm is asked about here, where the client can ask its user.

use std::sync::Arc;

use engine::Submission;
use mcp::content::About;
use mcp::{Caller, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use store::sessions::{Advanced, Error, Verdict};
use workflow::Context;

use super::session_answer::{
    Answer, about_session, read_revision, revision_schema, session_id_schema, writing,
};
use super::{Carried, bounded, gate, id_schema, refused};
use crate::access::Who;
use crate::app::App;
use crate::error::Refusal;
use crate::server::waiting;
use crate::sessions::{Open, now, refusal};

pub(super) const NAME: &str = "workflow_advance";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    session_id: String,
    #[serde(deserialize_with = "read_revision")]
    revision: u64,
    step_id: String,
    output: String,
    #[serde(default, deserialize_with = "bounded")]
    context: Option<Context>,
}

pub(super) fn about() -> About {
    about_session(
        "Hand in a step",
        "Hands in the output of a session's current step. The server checks it: accepted, you get the next step; \
         otherwise change what the issues say and hand it in again, with the new revision. Report what the prompts \
         ask for as variables in context. A repeated call gets the same answer.",
        writing(true),
        json!({
            "type": "object",
            "properties": {
                "sessionId": session_id_schema(),
                "revision": revision_schema(),
                "stepId": id_schema("The current step"),
                "output": {"type": "string", "description": "What you produced", "minLength": 1},
                "context": {
                    "type": "object",
                    "description": "Variables that you learned; merged into the session's",
                    "additionalProperties": true,
                },
            },
            "required": ["sessionId", "revision", "stepId", "output"],
            "additionalProperties": false,
        }),
        json!({
            "accepted": {"type": "boolean", "description": "Absent while a person decides"},
            "issues": {"type": "array", "items": {"type": "string"}},
            "suggestions": {"type": "array", "items": {"type": "string"}},
            "attempt": {"type": "integer"},
        }),
    )
}

pub(super) fn call(
    app: &App,
    arguments: Arguments,
    raw: &RawValue,
    caller: Caller,
    who: Who,
) -> Result<Carried, Refusal> {
    if arguments.output.is_empty() {
        let details = "output must not be empty".to_owned();
        return Err(Refusal::InvalidParams { details, hint: None });
    }
    if app.sessions().are_remote() && !app.sessions().knows(&who, &arguments.session_id) {
        // It has to be looked at first, which takes its time.
        let (app, raw) = (app.clone(), raw.to_owned());
        return Ok(Carried::Later(Box::new(move || {
            match hand_in(&app, arguments, &raw, caller, who) {
                Ok(carried) => waiting::ended(carried),
                Err(refusal) => refused(&refusal),
            }
        })));
    }
    hand_in(app, arguments, raw, caller, who)
}

fn hand_in(
    app: &App,
    arguments: Arguments,
    raw: &RawValue,
    caller: Caller,
    who: Who,
) -> Result<Carried, Refusal> {
    let open = app.sessions().seen_by(&who, &arguments.session_id, NAME)?;
    let stored_bytes = raw.get().len() as u64;
    open.quotas.check_append(&open, &who, &arguments.session_id, stored_bytes)?;
    let Arguments { session_id: id, revision, step_id: step, output, context } = arguments;
    let submission = Submission { step, output, context: context.unwrap_or_default() };
    let raw = caller.abilities.forms.then(|| raw.to_owned());
    let handing_in = HandingIn { open, id, revision, submission, raw, caller, who };
    if let Some(answers) = handing_in.caller.answers.clone() {
        return gate::decide(handing_in, &answers);
    }
    Ok(Carried::Told(Box::new(move |finish| {
        let handing_in = Arc::new(handing_in);
        let later = Arc::clone(&handing_in);
        let done = move |advanced| match advanced {
            // Looking again, or deciding what is expensive, takes a thread's time.
            Err(Error::Overtaken) => {
                finish.done(Carried::Later(Box::new(move || later.wait())));
            }
            advanced => finish.done(later.outcome(advanced)),
        };
        let HandingIn { open, id, revision, submission, .. } = &*handing_in;
        open.sessions.advance_then(id, *revision, submission, now(), Box::new(done));
    })))
}

/// An output on its way in, with everything that is needed to ask about it.
#[derive(Debug)]
pub(super) struct HandingIn {
    pub(super) open: Arc<Open>,
    pub(super) id: String,
    pub(super) revision: u64,
    pub(super) submission: Submission,
    /// The arguments as they came, where they may be needed again.
    pub(super) raw: Option<Box<RawValue>>,
    pub(super) caller: Caller,
    pub(super) who: Who,
}

impl HandingIn {
    /// Hands it in, and waits until that is stored.
    pub(super) fn wait(&self) -> Outcome {
        let Self { open, id, revision, submission, .. } = self;
        self.outcome(open.sessions.advance(id, *revision, submission, now()))
    }

    fn outcome(&self, advanced: Result<Advanced, Error>) -> Outcome {
        if let Ok(advanced) = &advanced {
            self.open.tally.advanced(&advanced.verdict);
        }
        match advanced {
            Ok(mut advanced) => match &self.raw {
                Some(raw) if self.caller.answers.is_none() && self.should_ask(&advanced) => {
                    gate::ask(self, raw, &advanced.session)
                }
                _ => {
                    // What was decided may be about the loop that the output led to.
                    if self.caller.answers.is_some()
                        && advanced.session.state.loop_gate.is_some()
                        && let Ok(session) = self.open.sessions.open(&self.id)
                    {
                        advanced.session = session;
                    }
                    answer(&advanced, &self.who).unwrap_or_else(|refusal| refused(&refusal))
                }
            },
            Err(error) => refused(&refusal(&self.id, error)),
        }
    }

    /// Whether something waits that the client's user may decide. A repeated call gets the answer that it got, about a
    /// loop that may have been decided since.
    fn should_ask(&self, advanced: &Advanced) -> bool {
        let Advanced { session, verdict } = advanced;
        let is_now = || {
            let known = self.open.sessions.in_memory(&self.id);
            known.is_some_and(|known| known.version == session.version)
        };
        let is_waiting = match verdict {
            Verdict::Waiting => true,
            Verdict::Accepted => session.state.loop_gate.is_some() && is_now(),
            Verdict::Returned { .. } | Verdict::Declined { .. } => false,
        };
        is_waiting && !self.open.is_strict(session)
    }
}

/// What an advance came to, besides where the session stands.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    issues: &'a [String],
    suggestions: &'a [String],
}

fn answer(advanced: &Advanced, who: &Who) -> Result<Outcome, Refusal> {
    let answer = Answer::of(&advanced.session, who)?;
    let Some((issues, suggestions)) = complaints(advanced.verdict.clone()) else {
        if advanced.verdict == Verdict::Waiting {
            return Ok(answer.outcome(&answer.text(), &()));
        }
        let checked = Checked { accepted: true, attempt: None, issues: &[], suggestions: &[] };
        return Ok(answer.outcome(&format!("Accepted.\n\n{}", answer.text()), &checked));
    };
    let attempt = advanced.session.state.attempts;
    let mut text = format!("Not accepted (attempt {attempt}).");
    for (heading, list) in [("Issues", &issues), ("Suggestions", &suggestions)] {
        if !list.is_empty() {
            text.push_str(&format!("\n{heading}:\n- {}", list.join("\n- ")));
        }
    }
    // The agent has read the prompt; whoever needs it again finds it in the structured answer or by a status.
    text.push_str(&format!("\n\nThe same step again, with the new revision: {}.", answer.call()));
    let (issues, suggestions) = (&*issues, &*suggestions);
    let checked = Checked { accepted: false, attempt: Some(attempt), issues, suggestions };
    Ok(answer.outcome(&text, &checked))
}

/// What is wrong with an output, and what to change, where it was not taken.
pub(super) fn complaints(verdict: Verdict) -> Option<(Vec<String>, Vec<String>)> {
    match verdict {
        Verdict::Accepted | Verdict::Waiting => None,
        Verdict::Returned { issues, suggestions } => Some((issues, suggestions)),
        Verdict::Declined { reason: Some(reason) } => {
            Some((vec![format!("A person has rejected the output: {reason}")], Vec::new()))
        }
        Verdict::Declined { reason: None } => {
            let ask = "Ask your user what should be different.".to_owned();
            Some((vec!["A person has rejected the output.".to_owned()], vec![ask]))
        }
    }
}
