//! `workflow_next`: the step that comes next.

use engine::Progress;
use mcp::Outcome;
use mcp::content::Tool;
use serde::Deserialize;
use serde_json::json;
use workflow::Context;

use super::{ID_PATTERN, id_schema, read_only};
use crate::app::{self, App};
use crate::error::Refusal;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    workflow_id: String,
    current_step: Option<String>,
    completed_steps: Vec<String>,
    #[serde(default)]
    context: Context,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "workflow_next",
        title: "Get the next step",
        description: "Hands you the next step of a workflow: what to do, and what your output will be checked for. \
            Do the step, check it with workflow_validate, add its id to completedSteps (unless the prompt says \
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
        output_schema: json!({
            "type": "object",
            "properties": {
                "step": {"type": ["object", "null"], "description": "null when complete"},
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
        }),
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
                "guidance": {"prompt": "Study the task and the code it touches"},
                "isComplete": false,
            },
        })),
        is_method: true,
    }
}

pub(super) fn call(app: &App, arguments: Arguments) -> Result<Outcome, Refusal> {
    let snapshot = app.snapshot();
    let progress = Progress {
        completed: &arguments.completed_steps,
        current: arguments.current_step.as_deref(),
        context: &arguments.context,
    };
    let answer = app::next(&snapshot, &arguments.workflow_id, progress)?;
    let mut text = match &answer.step {
        Some(step) => format!("Step `{}`: {}\n\n{}", step.id, step.title, answer.guidance.prompt),
        None => answer.guidance.prompt.clone(),
    };
    if let Some(state) = &answer.state {
        text.push_str(&format!("\n\nstate: {}", json!(state)));
    }
    let structured = serde_json::to_string(&answer).unwrap_or_default();
    Ok(Outcome::Tool { text, structured })
}
