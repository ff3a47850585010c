//! `workflow_advance`: takes a step's output, has it checked, and hands out the next step. A step that a person has to
//! confirm is asked about here, where the client can ask its user.

use std::sync::Arc;

use engine::{Budget, Opening, Submission, near_misses};
use mcp::content::About;
use mcp::{Caller, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use store::sessions::{Advanced, Error, Session, Verdict};
use workflow::Context;

use super::session_answer::{
    Answer, about_session, noted, reads_outputs, revision_schema, session_id_schema, writing,
};
use super::tool::SUBMISSION_INLINE_BYTES_MAX;
use super::{Carried, Tool, ToolCall, arguments, gate, id_schema, look, refused, view_budget};
use crate::access::Who;
use crate::app::App;
use crate::error::Refusal;
use crate::server::waiting;
use crate::sessions::{Open, now, refusal};

// It does not wait for a remote store if the session is in memory, and begins on a worker by itself otherwise.
pub(super) const TOOL: Tool = Tool {
    inline_bytes_max: SUBMISSION_INLINE_BYTES_MAX,
    ..Tool::new("workflow_advance", about, call)
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    #[serde(deserialize_with = "arguments::session_id")]
    session_id: String,
    #[serde(deserialize_with = "arguments::revision")]
    revision: u64,
    #[serde(deserialize_with = "arguments::step_id")]
    step_id: String,
    #[serde(deserialize_with = "arguments::submitted_output")]
    output: String,
    #[serde(default, deserialize_with = "arguments::context")]
    context: Option<Context>,
}

fn about() -> About {
    about_session(
        "Submit a step",
        "Submits the output of a session's current step, and in context the variables that the step asks you to \
         report. The server checks both: accepted, you get the next step; otherwise fix the issues and submit again \
         with the new revision. A repeated call gets the same answer.",
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

fn call(call: ToolCall<'_>) -> Result<Carried, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let ToolCall { app, raw, caller, who, .. } = call;
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
    let open = app.sessions().seen_by(&who, &arguments.session_id, TOOL.name)?;
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
        let done = move |advanced: Result<Advanced, Error>| match advanced {
            // Looking again, or deciding what is expensive, takes a thread's time.
            Err(Error::Overtaken) => {
                finish.done(Carried::Later(Box::new(move || later.wait())));
            }
            // Texts of the next step refer to earlier outputs, which have to be read.
            Ok(advanced) if reads_outputs(&advanced.session) => {
                finish.done(Carried::Later(Box::new(move || later.outcome(Ok(advanced)))));
            }
            advanced => finish.done(later.answer(advanced)),
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

    /// What is answered, on a thread that nobody else waits for.
    fn outcome(&self, advanced: Result<Advanced, Error>) -> Outcome {
        self.count(advanced).map_or_else(
            |refusal| refused(&refusal),
            |advanced| self.answer_within(&advanced, &view_budget()),
        )
    }

    /// The same on one that others wait for.
    fn answer(self: Arc<Self>, advanced: Result<Advanced, Error>) -> Carried {
        match self.count(advanced) {
            Ok(advanced) => look(move |budget| self.answer_within(&advanced, budget)),
            Err(refusal) => refused(&refusal).into(),
        }
    }

    fn count(&self, advanced: Result<Advanced, Error>) -> Result<Advanced, Refusal> {
        let advanced = advanced.map_err(|error| refusal(&self.id, error))?;
        self.open.tally.advanced(&advanced.verdict);
        Ok(advanced)
    }

    fn answer_within(&self, advanced: &Advanced, budget: &Budget) -> Outcome {
        if let Some(raw) = &self.raw
            && self.caller.answers.is_none()
            && self.should_ask(advanced)
        {
            return gate::ask(self, raw, &advanced.session, budget);
        }
        let mut session = Arc::clone(&advanced.session);
        // What was decided may be about the loop that the output led to.
        if self.caller.answers.is_some()
            && session.state.loop_gate.is_some()
            && let Ok(current) = self.open.sessions.open(&self.id)
        {
            session = current;
        }
        let answer = self.answer_about(&session, &advanced.verdict, budget);
        answer.unwrap_or_else(|refusal| refused(&refusal))
    }

    fn answer_about(
        &self,
        session: &Session,
        verdict: &Verdict,
        budget: &Budget,
    ) -> Result<Outcome, Refusal> {
        let answer = Answer::new(&self.open, session, &self.who, Opening::Reminder, budget)?;
        let Some((issues, suggestions)) = complaints(verdict.clone()) else {
            let notes = noted(&near_misses(&session.workflow, &self.submission.context));
            if *verdict == Verdict::Waiting {
                return Ok(answer.outcome(&notes, &()));
            }
            let before = format!("Accepted.\n\n{notes}");
            let checked =
                Checked { accepted: true, attempt: None, issues: None, suggestions: None };
            return Ok(answer.outcome(&before, &checked));
        };
        let attempt = session.state.attempts;
        let next = format!("{}\nworkflow_status repeats the prompt.", answer.next_call());
        let mut text = format!("Not accepted (attempt {attempt}).");
        for (heading, list) in [("Issues", &issues), ("What to change", &suggestions)] {
            if !list.is_empty() {
                text.push_str(&format!("\n{heading}:\n- {}", list.join("\n- ")));
            }
        }
        text.push_str(&format!("\n\n{next}"));
        // The issues and suggestions are fields here.
        let instruction = format!("Not accepted: fix the issues. {next}");
        let (issues, suggestions) = (Some(&*issues), Some(&*suggestions));
        let checked = Checked { accepted: false, attempt: Some(attempt), issues, suggestions };
        let structured = answer.json(&instruction, &checked);
        Ok(Outcome::Tool { text: text.into(), structured })
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
    #[serde(skip_serializing_if = "Option::is_none")]
    issues: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestions: Option<&'a [String]>,
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
