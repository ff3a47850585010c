//! `workflow_next`: the step that comes next.

use engine::{Budget, Next, Progress};
use mcp::content::About;
use mcp::{Outcome, Quoted};
use serde::{Deserialize, Serialize};
use serde_json::json;
use workflow::Context;

use super::tool::handle;
use super::{
    ID_PATTERN, Role, Tool, ToolCall, arguments, id_schema, needs_worker, read_only, refused,
};
use crate::app::{self, App};
use crate::error::Refusal;

pub(super) const TOOL: Tool = Tool {
    is_method: true,
    role: Role::Anyone,
    instead: Some("call `workflow_start`, which begins a session and returns its first step"),
    ..Tool::new("workflow_next", about, |it| handle(call(it)))
};

/// Opens the text of the first step.
const NO_SESSION: &str =
    "Nothing is recorded here, and gates do nothing: workflow_start begins a session.\n\n";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    #[serde(deserialize_with = "arguments::workflow_id")]
    workflow_id: String,
    #[serde(default, deserialize_with = "arguments::current_step")]
    current_step: Option<String>,
    #[serde(deserialize_with = "arguments::completed_steps")]
    completed_steps: Vec<String>,
    #[serde(default, deserialize_with = "arguments::context")]
    context: Option<Context>,
}

fn about() -> About {
    About {
        title: "Get the next step without a session",
        description: "Records nothing, and gates do nothing here: use workflow_start, unless you must keep track yourself. \
            Hands you the next step, and what your output will be checked for. Do the step, check it with workflow_validate, add its id to completedSteps (unless the prompt says \
            otherwise) and call again, until isComplete. Put what you learn into context (the prompts say which variables); merge an answer's \
            `state` into context too.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "workflowId": id_schema("The workflow's id"),
                "currentStep": id_schema("The step you are on, if any"),
                "completedSteps": {
                    "type": "array",
                    "items": {"type": "string", "pattern": ID_PATTERN},
                    "uniqueItems": true,
                    "description": "Ids of the steps that are done; empty at first",
                },
                "context": {
                    "type": "object",
                    "description": "Variables for conditions and prompts",
                    "additionalProperties": true,
                },
            },
            "required": ["workflowId", "completedSteps"],
            "additionalProperties": false,
        }),
        output_schema: Some(json!({
            "type": "object",
            "properties": {
                "step": {
                    "anyOf": [{"type": "object"}, {"type": "null"}],
                    "description": "null when complete",
                },
                "guidance": {
                    "type": "object",
                    "properties": {
                        "prompt": {"type": "string"},
                        "modelHint": {"type": "string"},
                        "requiresConfirmation": {"type": "boolean"},
                        "validationCriteria": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["prompt", "requiresConfirmation", "validationCriteria"],
                },
                "isComplete": {"type": "boolean"},
                "state": {"type": "object", "description": "Merge into context"},
            },
            "required": ["step", "guidance", "isComplete"],
        })),
        annotations: read_only(),
        examples: Some(json!({
            "request": {"method": "workflow_next", "params": {
                "workflowId": "ai-task-implementation",
                "completedSteps": [],
                "context": {"taskId": "TASK-123"},
            }},
            "response": {
                "step": {
                    "id": "understand",
                    "title": "Deep understanding of task and codebase",
                    "prompt": "Study the task and the code it touches",
                },
                "guidance": {
                    "prompt": "Study the task and the code it touches",
                    "requiresConfirmation": true,
                    "validationCriteria": ["Clear understanding of requirements"],
                },
                "isComplete": false,
            },
        })),
    }
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let ToolCall { app, context, .. } = call;
    if let Some(step) = app::repeated_step(&arguments.completed_steps) {
        let details = format!("completedSteps must not repeat a step: `{step}` is there twice");
        return Err(Refusal::InvalidParams { details, hint: None });
    }
    match next(&app, &arguments, &Budget::for_inline_call()) {
        Err(refusal) if needs_worker(&refusal) => {
            let work = move || {
                let outcome = next(&app, &arguments, &Budget::for_call());
                outcome.unwrap_or_else(|refusal| refused(&refusal))
            };
            Ok(context.run(work).await)
        }
        outcome => outcome,
    }
}

fn next(app: &App, arguments: &Arguments, budget: &Budget) -> Result<Outcome, Refusal> {
    let snapshot = app.snapshot();
    let none = Context::new();
    let progress = Progress {
        completed: &arguments.completed_steps,
        current: arguments.current_step.as_deref(),
        context: arguments.context.as_ref().unwrap_or(&none),
    };
    let answer = app.next(&snapshot, &arguments.workflow_id, progress, budget)?;
    let state = answer.state.as_ref().map(|state| serde_json::to_string(state).unwrap_or_default());
    let prompt = Quoted::from(&answer.guidance.prompt);
    let notice = if arguments.completed_steps.is_empty() { NO_SESSION } else { "" };
    let text = text(notice, &answer, &prompt, state.as_deref());
    let structured = structured(&answer, &prompt, state.as_deref());
    Ok(Outcome::Tool { text, structured })
}

fn text(notice: &str, answer: &Next<'_>, prompt: &Quoted, state: Option<&str>) -> Quoted {
    let mut text = Quoted::with_capacity(prompt.inner().len() + 512);
    text.push(notice);
    if let Some(step) = &answer.step {
        for part in ["Step ", step.id, ": ", &step.title, "\n\n"] {
            text.push(part);
        }
    }
    text.append(prompt);
    if let Some(state) = state {
        text.push("\n\nstate: ");
        text.push(state);
    }
    text
}

/// The answer as JSON. This is the call that an agent makes most, so its texts are written by `quote`; a
/// test holds the result against what `serde_json` makes of it.
fn structured(answer: &Next<'_>, prompt: &Quoted, state: Option<&str>) -> String {
    let Next { step, guidance, is_complete, state: _ } = answer;
    let mut out = Json(String::with_capacity(2 * prompt.inner().len() + 1024));
    match step {
        None => out.raw(r#"{"step":null"#),
        Some(step) => {
            out.text(r#"{"step":{"id":"#, step.id);
            out.text(r#","title":"#, &step.title);
            out.text(r#","prompt":"#, step.prompt);
            if let Some(asks) = step.ask_for_files {
                out.flag(r#","askForFiles":"#, asks);
            }
            out.value(r#","requireConfirmation":"#, step.require_confirmation);
            out.value(r#","runCondition":"#, step.run_condition);
            out.raw("}");
        }
    }
    for piece in [r#","guidance":{"prompt":""#, prompt.inner(), "\""] {
        out.raw(piece);
    }
    if let Some(hint) = guidance.model_hint {
        out.text(r#","modelHint":"#, hint);
    }
    out.flag(r#","requiresConfirmation":"#, guidance.requires_confirmation);
    out.raw(r#","validationCriteria":["#);
    for (at, message) in guidance.validation_criteria.iter().enumerate() {
        out.text(if at == 0 { "" } else { "," }, message);
    }
    out.raw("]}");
    out.flag(r#","isComplete":"#, *is_complete);
    if let Some(state) = state {
        out.raw(r#","state":"#);
        out.raw(state);
    }
    out.raw("}");
    out.0
}

/// JSON that is put together from pieces.
struct Json(String);

impl Json {
    fn raw(&mut self, piece: &str) {
        self.0.push_str(piece);
    }

    fn text(&mut self, before: &str, text: &str) {
        self.0.push_str(before);
        mcp::quote(text, &mut self.0);
    }

    fn flag(&mut self, before: &str, flag: bool) {
        self.0.push_str(before);
        self.0.push_str(if flag { "true" } else { "false" });
    }

    /// Left out where there is none.
    fn value(&mut self, before: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.0.push_str(before);
            self.0.push_str(&serde_json::to_string(&value).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::bundled::BUNDLED;

    #[test]
    fn the_answer_is_what_serde_makes_of_it() {
        let app = App::open(
            vec![catalog::Source::Bundled(BUNDLED)],
            crate::trust::WorkspaceTrust::new(None, None),
            None,
            crate::audit::Audit::choose(None),
        );
        let snapshot = app.snapshot();
        let context =
            json!({"sections": ["a\n\"b\"", "c"], "docType": "guide", "taskSize": "large"});
        let mut seen = 0;
        for workflow in snapshot.workflows() {
            let mut context = context.as_object().cloned().unwrap_or_default();
            let mut completed: Vec<String> = Vec::new();
            for _ in 0..50 {
                let (done, now) = (completed.clone(), context.clone());
                let progress = Progress { completed: &done, current: None, context: &now };
                let answer =
                    app.next(&snapshot, &workflow.id, progress, &Budget::for_call()).unwrap();
                let state = answer.state.as_ref().map(|state| json!(state).to_string());
                let prompt = Quoted::from(&answer.guidance.prompt);
                let made = structured(&answer, &prompt, state.as_deref());
                assert_eq!(serde_json::from_str::<Value>(&made).unwrap(), json!(answer));
                seen += 1;
                let Some(step) = &answer.step else { break };
                completed.push(step.id.to_owned());
                completed.extend(answer.state.iter().flat_map(|state| {
                    let ended = state.loops.iter().filter(|(_, progress)| progress.ended);
                    ended.map(|(id, _)| id.clone())
                }));
                if let Value::Object(state) = json!(answer.state) {
                    context.extend(state);
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }
}
