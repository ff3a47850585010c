//! `workflow_validate`: whether what a step produced is good.

use engine::Budget;
use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;
use workflow::Context;

use super::tool::handle;
use super::{Role, Tool, ToolCall, arguments, id_schema, needs_worker, read_only, refused};
use crate::app::App;
use crate::error::Refusal;

pub(super) const TOOL: Tool = Tool {
    is_method: true,
    role: Role::Anyone,
    instead: Some("call `workflow_start`; in its session `workflow_advance` checks each output"),
    ..Tool::new("workflow_validate", about, |it| handle(call(it)))
};

/// The first protocol puts it before everything more specific.
const FIRST_SUGGESTION: &str = "Review validation criteria and adjust output accordingly.";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    #[serde(deserialize_with = "arguments::workflow_id")]
    workflow_id: String,
    #[serde(deserialize_with = "arguments::step_id")]
    step_id: String,
    #[serde(deserialize_with = "arguments::checked_output")]
    output: String,
    #[serde(default, deserialize_with = "arguments::context")]
    context: Option<Context>,
}

fn about() -> About {
    About {
        title: "Check an output without a session",
        description: "Records nothing, and passes no gate; in a session workflow_advance checks. Checks what you \
            produced for a step. If it is not valid, change what the suggestions say and \
            check again before you go on. Give the same context as to workflow_next.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "workflowId": id_schema("The workflow's id"),
                "stepId": id_schema("The step's id"),
                "output": {"type": "string", "description": "What you produced", "minLength": 1},
                "context": {"type": "object", "additionalProperties": true},
            },
            "required": ["workflowId", "stepId", "output"],
            "additionalProperties": false,
        }),
        output_schema: Some(json!({
            "type": "object",
            "properties": {
                "valid": {"type": "boolean"},
                "issues": {"type": "array", "items": {"type": "string"}},
                "suggestions": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["valid"],
        })),
        annotations: read_only(),
        examples: Some(json!({
            "request": {"method": "workflow_validate", "params": {
                "workflowId": "ai-task-implementation",
                "stepId": "understand",
                "output": "I have analyzed the requirements.",
            }},
            "response": {"valid": true, "issues": [], "suggestions": []},
        })),
    }
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let ToolCall { app, context, .. } = call;
    if arguments.output.is_empty() {
        let details = "output must not be empty".to_owned();
        return Err(Refusal::InvalidParams { details, hint: None });
    }
    match validate(&app, &arguments, &Budget::for_inline_call()) {
        Err(refusal) if needs_worker(&refusal) => {
            let work = move || {
                let outcome = validate(&app, &arguments, &Budget::for_call());
                outcome.unwrap_or_else(|refusal| refused(&refusal))
            };
            Ok(context.run(work).await)
        }
        outcome => outcome,
    }
}

fn validate(app: &App, arguments: &Arguments, budget: &Budget) -> Result<Outcome, Refusal> {
    let Arguments { workflow_id, step_id, output, context } = arguments;
    let snapshot = app.snapshot();
    let mut verdict =
        app.check(&snapshot, workflow_id, step_id, output, context.as_ref(), budget)?;
    if !verdict.valid {
        verdict.suggestions.insert(0, FIRST_SUGGESTION.to_owned());
    }
    let mut text = if verdict.valid {
        format!(
            "Valid; nothing is recorded. In a session, workflow_advance checks. Otherwise go on with workflow_next, with \
             `{step_id}` in completedSteps unless its prompt says otherwise."
        )
    } else {
        "Not valid.".to_owned()
    };
    for (heading, list) in [("Issues", &verdict.issues), ("Suggestions", &verdict.suggestions)] {
        if !list.is_empty() {
            text.push_str(&format!("\n{heading}:\n- {}", list.join("\n- ")));
        }
    }
    let structured = serde_json::to_string(&verdict).unwrap_or_default();
    Ok(Outcome::Tool { text: text.into(), structured })
}
