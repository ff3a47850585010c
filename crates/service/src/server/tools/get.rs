//! `workflow_get`: a whole definition.

use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;

use super::tool::handle;
use super::{Role, Tool, ToolCall, arguments, id_schema, read_only};
use crate::app;
use crate::error::Refusal;

pub(super) const TOOL: Tool = Tool {
    is_method: true,
    role: Role::Anyone,
    ..Tool::new("workflow_get", about, |it| handle(call(it)))
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(deserialize_with = "arguments::id")]
    id: String,
}

fn about() -> About {
    About {
        title: "Get a workflow",
        description: "Returns a workflow's whole definition. To work through one you do not need it: \
            workflow_start begins a session, which hands you each step when it is due.",
        input_schema: json!({
            "type": "object",
            "properties": {"id": id_schema("The workflow's id")},
            "required": ["id"],
            "additionalProperties": false,
        }),
        // The full schema is a resource: here it would cost more than all the rest of the list.
        output_schema: Some(json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "name": {"type": "string"},
                "description": {"type": "string"},
                "version": {"type": "string"},
                "steps": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["id", "name", "description", "version", "steps"],
        })),
        annotations: read_only(),
        examples: Some(json!({
            "request": {"method": "workflow_get", "params": {"id": "ai-task-implementation"}},
            "response": {
                "id": "ai-task-implementation",
                "name": "AI Task Prompt Workflow",
                "description": "Takes one coding task from its description to a verified change",
                "version": "1.0.0",
                "preconditions": ["Task description is clear and complete"],
                "steps": [{
                    "id": "understand",
                    "title": "Deep understanding of task and codebase",
                    "prompt": "Study the task and the code it touches",
                    "requireConfirmation": true,
                }],
            },
        })),
    }
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let snapshot = call.app.snapshot();
    let workflow = app::find(&snapshot, &arguments.id)?;
    let definition = serde_json::to_string(workflow).unwrap_or_default();
    Ok(Outcome::Tool { text: (&definition).into(), structured: definition })
}
