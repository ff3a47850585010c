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
use transport::Context;

use super::session_answer::{
    Answer, about_session, noted, reads_outputs, revision_schema, session_id_schema, writing,
};
use super::tool::{SUBMISSION_INLINE_BYTES_MAX, handle};
use super::{Tool, ToolCall, arguments, gate, id_schema, look, refused, view_budget};
use crate::access::Who;
use crate::app::App;
use crate::error::Refusal;
use crate::sessions::{Open, now, refusal};

const NAME: &str = "workflow_advance";

// It does not wait for a remote store if the session is in memory, and begins on a worker by itself otherwise.
pub(super) const TOOL: Tool = Tool {
    inline_bytes_max: SUBMISSION_INLINE_BYTES_MAX,
    ..Tool::new(NAME, about, |it| handle(call(it)))
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
    context: Option<workflow::Context>,
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

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let ToolCall { app, raw, caller, who, context, .. } = call;
    if arguments.output.is_empty() {
        let details = "output must not be empty".to_owned();
        return Err(Refusal::InvalidParams { details, hint: None });
    }
    if app.sessions().are_remote() && !app.sessions().knows(&who, &arguments.session_id) {
        // It has to be looked at first, which takes its time.
        let look = move |context| handle(hand_in(app, arguments, raw, caller, who, context));
        return Ok(context.run_call(look).await);
    }
    hand_in(app, arguments, raw, caller, who, context).await
}

async fn hand_in(
    app: App,
    arguments: Arguments,
    raw: Box<RawValue>,
    caller: Caller,
    who: Who,
    context: Context,
) -> Result<Outcome, Refusal> {
    let open = app.sessions().seen_by(&who, &arguments.session_id, NAME)?;
    let stored_bytes = raw.get().len() as u64;
    open.quotas.check_append(&open, &who, &arguments.session_id, stored_bytes)?;
    let Arguments { session_id: id, revision, step_id: step, output, context: reported } =
        arguments;
    let submission = Submission { step, output, context: reported.unwrap_or_default() };
    let raw = caller.abilities.forms.then_some(raw);
    let handing_in = Arc::new(HandingIn { open, id, revision, submission, raw, caller, who });
    if handing_in.caller.answers.is_some() {
        return gate::decide(handing_in, &context).await;
    }
    let advanced = {
        let HandingIn { open, id, revision, submission, .. } = &*handing_in;
        let counting = Arc::clone(open);
        let count = move |advanced: &Advanced| counting.tally.advanced(&advanced.verdict);
        open.sessions.advance_async(id, *revision, submission, now(), count).await
    };
    Ok(match advanced {
        // Looking again, or deciding what is expensive, takes a thread's time.
        Err(Error::Overtaken) => context.run(move || handing_in.wait()).await,
        // Texts of the next step refer to earlier outputs, which have to be read.
        Ok(advanced) if reads_outputs(&advanced.session) => {
            context.run(move || handing_in.outcome(Ok(advanced))).await
        }
        advanced => handing_in.answer(advanced, &context).await,
    })
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
        let advanced = open.sessions.advance(id, *revision, submission, now());
        self.outcome(advanced.inspect(|advanced| open.tally.advanced(&advanced.verdict)))
    }

    /// What is answered, on a thread that nobody else waits for.
    fn outcome(&self, advanced: Result<Advanced, Error>) -> Outcome {
        match advanced {
            Ok(advanced) => self.answer_within(&advanced, &view_budget()),
            Err(error) => refused(&refusal(&self.id, error)),
        }
    }

    /// The same on one that others wait for.
    async fn answer(
        self: Arc<Self>,
        advanced: Result<Advanced, Error>,
        context: &Context,
    ) -> Outcome {
        match advanced {
            Ok(advanced) => {
                look(context, move |budget| self.answer_within(&advanced, budget)).await
            }
            Err(error) => refused(&refusal(&self.id, error)),
        }
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
