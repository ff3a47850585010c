//! `workflow_list`: what there is.

use std::fmt::Write;

use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;
use untrusted_text::{sanitize, spell_out};

use super::super::catalogue;
use super::tool::handle;
use super::{Asker, Role, Tool, ToolCall, arguments, read_only};
use crate::app::{self, Filter, Summary};
use crate::error::Refusal;

pub(super) const TOOL: Tool = Tool {
    is_method: true,
    role: Role::Anyone,
    ..Tool::new("workflow_list", about, |it| handle(call(it)))
};

/// How many workflows one page holds.
const PAGE: usize = 50;
/// How many ids a page names whose files are not trusted.
const UNTRUSTED_MAX: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default, deserialize_with = "arguments::query")]
    query: Option<String>,
    #[serde(default, deserialize_with = "arguments::category")]
    category: Option<String>,
    #[serde(default, deserialize_with = "arguments::cursor")]
    cursor: Option<String>,
}

fn about() -> About {
    About {
        title: "List workflows",
        description: "Lists the workflows: tested ways to do a piece of work, step by step. Look here before you \
            start on something larger than a quick answer, pick one by its description, and begin it with \
            workflow_start.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words that must occur"},
                "category": {"type": "string"},
                "cursor": {"type": "string", "description": "nextCursor of the page before"},
            },
            "required": [],
            "additionalProperties": false,
        }),
        output_schema: Some(json!({
            "type": "object",
            "properties": {
                "workflows": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string"},
                            "name": {"type": "string"},
                            "description": {"type": "string"},
                            "category": {"type": "string"},
                            "version": {"type": "string"},
                        },
                        "required": ["id", "name", "description", "category", "version"],
                    },
                },
                "nextCursor": {"type": "string"},
                "instruction": {"type": "string"},
            },
            "required": ["workflows"],
        })),
        annotations: read_only(),
        examples: Some(json!({
            "request": {"method": "workflow_list", "params": {}},
            "response": {"workflows": [{
                "id": "ai-task-implementation",
                "name": "AI Task Prompt Workflow",
                "description": "Takes one coding task from its description to a verified change",
                "category": "development",
                "version": "1.0.0",
            }]},
        })),
    }
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let ToolCall { app, asker, .. } = call;
    let snapshot = app.snapshot();
    let words = arguments.query.unwrap_or_default();
    let filter = Filter {
        category: arguments.category,
        words: words.split_whitespace().map(str::to_owned).collect(),
    };
    let after = arguments.cursor.as_deref().map(catalogue::read_cursor).transpose();
    let after = after.map_err(|details| Refusal::InvalidParams { details, hint: None })?;
    let mut listing = app::list(&snapshot, &filter);
    let mut next = None;
    if asker == Asker::Call {
        if let Some(after) = after {
            listing.workflows.retain(|workflow| workflow.id > after);
        }
        if listing.workflows.len() > PAGE {
            listing.workflows.truncate(PAGE);
            next = listing.workflows.last().map(|workflow| catalogue::cursor_after(workflow.id));
        }
    }
    let mut structured = json!(listing);
    let mut text = String::new();
    for Summary { id, name, description, category, version, overrides } in &listing.workflows {
        let overrides = overrides.map(|whose| format!(", overrides the {whose} one"));
        let overrides = overrides.unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {id} ({name}, {category}, {version}{overrides}): {description}");
    }
    let mut text = sanitize(&text).into_owned();
    if let Some(next) = next {
        let _ = writeln!(text, "There are more: call again with cursor \"{next}\".");
        structured["nextCursor"] = json!(next);
    }
    let untrusted: Vec<_> = snapshot.untrusted().map(|shadow| &*shadow.entry.id).collect();
    if !untrusted.is_empty() {
        let ids = untrusted[..untrusted.len().min(UNTRUSTED_MAX)].join(", ");
        let _ = writeln!(
            text,
            "Not in use, because nobody has trusted them: {} files that would override or change {}. A person decides, by \
             `workflowlookup trust`.",
            untrusted.len(),
            spell_out(&ids)
        );
    }
    let instruction = match listing.workflows.is_empty() {
        true => "No workflow matches. Call again with fewer words, or with none to see all.",
        false => "Start one with workflow_start, or resume a session with workflow_status.",
    };
    text.push_str(instruction);
    // The shape of the method's result is a promise.
    if asker == Asker::Call {
        structured["instruction"] = json!(instruction);
    }
    Ok(Outcome::Tool { text: text.into(), structured: structured.to_string() })
}
