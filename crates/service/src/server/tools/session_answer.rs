//! The answer of the session tools. Each text is in it once: `content` is one text that is enough by itself, and
//! `structuredContent` has the same as `instruction`, beside fields for programs.

use engine::{Budget, Opening, StepView, View, Waiting, view};
use mcp::Outcome;
use mcp::content::About;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize};
use serde_json::{Value, json};
use store::sessions::Session;
use workflow::definition::Confirmation;
use workflow::{Condition, Step};

use super::{advance, status};
use crate::access::{Who, how_it_is_decided};
use crate::error::Refusal;
use crate::sessions::{Denied, Open, Standing, refusal};

/// A session as its caller may see it. Steps that come later are not in it.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    session: &'a Session,
    view: View<'a>,
    /// What an agent does while a person has to decide.
    waiting: Option<String>,
}

/// The fields of `structuredContent`, which every answer about a session has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structured<'a, M> {
    session_id: &'a str,
    workflow_id: &'a str,
    revision: u64,
    status: &'static str,
    is_complete: bool,
    step: Option<StepSummary<'a>>,
    #[serde(flatten)]
    more: &'a M,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<&'a Waiting<'a>>,
    instruction: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextCall<'a>>,
}

/// The current step. Its prompt is part of the instruction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StepSummary<'a> {
    id: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask_for_files: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    require_confirmation: Option<&'a Confirmation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_condition: Option<&'a Condition>,
}

/// The call that leads on.
#[derive(Serialize)]
struct NextCall<'a> {
    tool: &'static str,
    arguments: NextArguments<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NextArguments<'a> {
    session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_id: Option<&'a str>,
}

impl<'a> Answer<'a> {
    /// Reads earlier outputs that the step's texts refer to, which may take time: see [`reads_outputs`].
    pub(crate) fn new(
        open: &'a Open,
        session: &'a Session,
        who: &Who,
        detail: Opening,
        budget: &Budget,
    ) -> Result<Self, Refusal> {
        let outputs = open.sessions.outputs(session);
        let view = view(&session.workflow, &session.state, detail, &outputs, budget);
        let mut view = view.map_err(|refusal| {
            let (why, at) = (Denied::Engine(refusal), Standing::of(session));
            Refusal::Session { why, at }
        })?;
        outputs.finish().map_err(|error| refusal(&session.id, error))?;
        let waiting = view.waiting.as_mut().map(|waiting| {
            // Whoever decides names it, so that they decide about what they saw.
            waiting.version = Some(session.version);
            ask_user(who, session, waiting)
        });
        Ok(Self { session, view, waiting })
    }

    /// Where the session stands and what to do, for an agent that sees nothing else.
    pub(crate) fn instruction(&self) -> String {
        let View { opening, guidance, step, .. } = &self.view;
        let mut text = String::with_capacity(opening.len() + guidance.prompt.len() + 256);
        if !opening.is_empty() {
            text.push_str(opening);
            text.push_str("\n\n");
        }
        match (&self.waiting, step) {
            (Some(waiting), _) => text.push_str(waiting),
            (None, Some(step)) => {
                for part in ["Step: ", &step.title, "\n\n"] {
                    text.push_str(part);
                }
                text.push_str(&guidance.prompt);
                text.push_str("\n\n");
                text.push_str(&self.next_call());
            }
            (None, None) => text.push_str(&guidance.prompt),
        }
        text
    }

    /// The call that submits the current step, in words.
    pub(crate) fn next_call(&self) -> String {
        let Self { session, view: View { revision, step, has_reports, .. }, .. } = self;
        let (id, step) = (&session.id, step.as_ref().map(|step| step.id).unwrap_or_default());
        let context = if *has_reports { " context={…}" } else { "" };
        format!(
            "Next: {} sessionId={id} revision={revision} stepId={step} output=…{context}",
            advance::TOOL.name
        )
    }

    /// The result of a tool: the instruction behind a few words of its own, and more fields.
    pub(crate) fn outcome(&self, before: &str, more: &impl Serialize) -> Outcome {
        let text = format!("{before}{}", self.instruction());
        let structured = self.json(&text, more);
        Outcome::Tool { text: text.into(), structured }
    }

    /// The fields of the session with an instruction, and more fields.
    pub(crate) fn json(&self, instruction: &str, more: &impl Serialize) -> String {
        let Self { session, view, waiting, .. } = self;
        let View { workflow_id, revision, is_complete, step, .. } = view;
        let session_id = &*session.id;
        let next = match (waiting, step) {
            (Some(_), _) => Some(NextCall {
                tool: status::TOOL.name,
                arguments: NextArguments { session_id, revision: None, step_id: None },
            }),
            (None, Some(step)) => Some(NextCall {
                tool: advance::TOOL.name,
                arguments: NextArguments {
                    session_id,
                    revision: Some(*revision),
                    step_id: Some(step.id),
                },
            }),
            (None, None) => None,
        };
        let structured = Structured {
            session_id,
            workflow_id,
            revision: *revision,
            status: session.status().name(),
            is_complete: *is_complete,
            step: step.as_ref().map(StepSummary::from_view),
            more,
            waiting: view.waiting.as_ref(),
            instruction,
            next,
        };
        serde_json::to_string(&structured).unwrap_or_default()
    }
}

impl<'a> StepSummary<'a> {
    fn from_view(step: &'a StepView<'a>) -> Self {
        Self {
            id: step.id,
            title: &step.title,
            ask_for_files: step.ask_for_files,
            require_confirmation: step.require_confirmation,
            run_condition: step.run_condition,
        }
    }
}

/// Whether an answer about a session has to read the log: not on a thread that others wait for.
pub(super) fn reads_outputs(session: &Session) -> bool {
    let Session { state, workflow, .. } = session;
    if state.outputs.is_empty() {
        return false;
    }
    let step = state.step.as_deref().and_then(|step| workflow.step(step));
    if step.is_some_and(|step| step.may_refer_to_outputs()) {
        return true;
    }
    // The titles of the loops around the step are shown too.
    let mut refers = false;
    workflow.each_step(&mut |step| {
        refers |= matches!(step, Step::Loop(_)) && step.may_refer_to_outputs();
    });
    refers
}

/// Notes as paragraphs before an instruction.
pub(super) fn noted(notes: &[String]) -> String {
    notes.iter().map(|note| format!("Note: {note}.\n\n")).collect()
}

/// What an agent does while a person has to decide. No tool of an agent's decides it.
fn ask_user(who: &Who, session: &Session, waiting: &Waiting<'_>) -> String {
    let shown = if waiting.loops.is_empty() { "the output" } else { "what was done so far" };
    let how = how_it_is_decided(who, session, shown);
    format!(
        "{} {how} Once it is decided: {} sessionId={}",
        waiting.text(),
        status::TOOL.name,
        session.id
    )
}

/// What a tool of sessions says about itself.
pub(super) fn about_session(
    title: &'static str,
    description: &'static str,
    annotations: Value,
    input_schema: Value,
    more: Value,
) -> About {
    let mut properties = json!({
        "sessionId": {"type": "string"},
        "workflowId": {"type": "string"},
        "revision": {"type": "integer"},
        "isComplete": {"type": "boolean"},
        "step": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "status": {"enum": ["running", "waiting", "complete"]},
        "instruction": {"type": "string", "description": "What to do now"},
        "next": {"type": "object", "description": "The call that leads on"},
        "waiting": {"type": "object", "description": "A person has to confirm this step"},
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut properties, more) {
        all.extend(more);
    }
    About {
        title,
        description,
        input_schema,
        // A list of sessions has nothing of this, so nothing is required.
        output_schema: Some(json!({"type": "object", "properties": properties})),
        annotations,
        examples: None,
    }
}

/// A tool that writes, and takes nothing away.
pub(super) fn writing(is_idempotent: bool) -> Value {
    json!({
        "readOnlyHint": false,
        "destructiveHint": false,
        "idempotentHint": is_idempotent,
        "openWorldHint": false,
    })
}

pub(super) fn session_id_schema() -> Value {
    json!({"type": "string", "description": "As workflow_start returned it"})
}

/// A revision, in words that an agent understands where it is none. JSON has one kind of number: 1.0 is 1.
pub(super) fn read_revision<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(from)?;
    let number = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
        // Beyond, a fraction would have been lost already.
        (number < 9e15).then_some(number as u64)
    });
    number.ok_or_else(|| {
        D::Error::custom("revision must be a whole number, as the last answer had it")
    })
}

pub(super) fn revision_schema() -> Value {
    json!({"type": "integer", "minimum": 0, "description": "Of the last answer"})
}
