//! What the tools answer about a session: one shape for a machine, and a text that is enough without it.

use engine::{View, Waiting, view};
use mcp::Outcome;
use mcp::content::About;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize};
use serde_json::{Value, json};
use store::sessions::Session;

use crate::access::{Who, how_it_is_decided};
use crate::error::Refusal;
use crate::sessions::{Denied, Standing};

/// A session as its caller may see it. Steps that come later are not in it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer<'a> {
    pub(crate) session_id: &'a str,
    #[serde(flatten)]
    pub(crate) view: View<'a>,
}

impl<'a> Answer<'a> {
    pub(crate) fn of(session: &'a Session, who: &Who) -> Result<Self, Refusal> {
        let mut view = view(&session.workflow, &session.state).map_err(|refusal| {
            let (why, at) = (Denied::Engine(refusal), Standing::of(session));
            Refusal::Session { why, at }
        })?;
        if let Some(waiting) = &mut view.waiting {
            // Whoever decides names it, so that they decide about what they saw.
            waiting.version = Some(session.version);
            view.guidance.prompt = ask_user(who, session, waiting);
        }
        Ok(Self { session_id: &session.id, view })
    }

    /// Where the session stands and what to do, for an agent to read.
    pub(crate) fn text(&self) -> String {
        let Self { session_id, view } = self;
        let (revision, prompt) = (view.revision, &view.guidance.prompt);
        if view.waiting.is_some() {
            return format!("Session `{session_id}`, revision {revision}. {prompt}");
        }
        let Some(step) = &view.step else {
            return format!(
                "Session `{session_id}` is complete (revision {revision}).\n\n{prompt}"
            );
        };
        format!(
            "Session `{session_id}`, revision {revision}.\n\nStep `{}`: {}\n\n{prompt}\n\nThen hand in your output: \
             {}.",
            step.id,
            step.title,
            self.call()
        )
    }

    /// The call that hands in the current step.
    pub(crate) fn call(&self) -> String {
        let Self { session_id, view: View { revision, step, .. } } = self;
        let step = step.as_ref().map(|step| step.id).unwrap_or_default();
        format!(
            "workflow_advance with sessionId `{session_id}`, revision {revision}, stepId `{step}`"
        )
    }

    /// The result of a tool: a few words, and more fields for a machine.
    pub(crate) fn outcome(&self, text: &str, more: &impl Serialize) -> Outcome {
        Outcome::Tool { text: text.into(), structured: self.json(more) }
    }

    /// The session and more about it.
    pub(crate) fn json(&self, more: &impl Serialize) -> String {
        #[derive(Serialize)]
        struct All<'a, M> {
            #[serde(flatten)]
            answer: &'a Answer<'a>,
            #[serde(flatten)]
            more: &'a M,
        }
        serde_json::to_string(&All { answer: self, more }).unwrap_or_default()
    }
}

/// What an agent does while a person has to decide. No tool of an agent's decides it.
fn ask_user(who: &Who, session: &Session, waiting: &Waiting<'_>) -> String {
    let shown = if waiting.loops.is_empty() { "the output" } else { "what was done so far" };
    let how = how_it_is_decided(who, session, shown);
    format!("{} {how} Once it is decided, call workflow_status.", waiting.text())
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
        "guidance": {"type": "object", "properties": {"prompt": {"type": "string"}}},
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
