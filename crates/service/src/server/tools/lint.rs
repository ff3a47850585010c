//! `workflow_lint`: everything that is wrong with a definition, for an agent that writes one.

use catalog::examine_text;
use mcp::content::About;
use mcp::{Error, Outcome};
use serde::Deserialize;
use serde_json::json;
use workflow::{Budget, Exhausted};

use super::tool::handle;
use super::{Role, Tool, ToolCall, bad, capitalised, read_only};
use crate::error::Refusal;

pub(super) const TOOL: Tool =
    Tool { role: Role::Anyone, ..Tool::new("workflow_lint", about, |it| handle(call(it))) };

/// The longest file name. Every finding repeats it.
const FILE_NAME_BYTES_MAX: usize = 255;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    definition: String,
    file_name: Option<String>,
}

fn about() -> About {
    About {
        title: "Check a definition",
        description: "Checks the text of a workflow definition, JSON or YAML, while you write one: every problem \
            with its place and what to try.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "definition": {"type": "string"},
                "fileName": {"type": "string", "description": "Its ending decides the format; otherwise it is guessed"},
            },
            "required": ["definition"],
            "additionalProperties": false,
        }),
        output_schema: Some(json!({
            "type": "object",
            "properties": {
                "usable": {"type": "boolean"},
                "findings": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["usable", "findings"],
        })),
        annotations: read_only(),
        examples: None,
    }
}

/// Compiling what strangers wrote may take its time, so it does not hold up anybody else.
async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let Arguments { definition, file_name } = call.arguments()?;
    if file_name.as_ref().is_some_and(|name| name.len() > FILE_NAME_BYTES_MAX) {
        return Err(bad(format!("fileName may have at most {FILE_NAME_BYTES_MAX} bytes")));
    }
    let work = move || {
        let outcome = lint(&definition, file_name.as_deref(), &Budget::for_call());
        outcome.unwrap_or_else(|why| refusal(&why))
    };
    Ok(call.context.run(work).await)
}

fn lint(text: &str, file_name: Option<&str>, budget: &Budget) -> Result<Outcome, Exhausted> {
    let reading = examine_text(text.as_bytes(), file_name, budget)?;
    let usable = reading.workflow.is_some();
    let rendered = reading.render(text, budget)?;
    let summary = match (usable, rendered.is_empty()) {
        (true, true) => "Nothing is wrong.",
        (true, false) => "It can be used, but:",
        (false, _) => "It cannot be used:",
    };
    let structured = json!({"usable": usable, "findings": reading.findings});
    let text = format!("{summary}\n{}", rendered.join("\n"));
    Ok(Outcome::Tool { text: text.trim_end().into(), structured: structured.to_string() })
}

/// The answer if checking would take more than one call may.
fn refusal(why: &Exhausted) -> Outcome {
    let details = format!("checking the definition takes {why}");
    let advice = format!(
        "{}. Split the workflow, or shorten its names, and check again.",
        capitalised(&details)
    );
    let error = Error::new(-32004, "Validation error", json!({"details": [details]}));
    Outcome::Refused { advice, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_budget_is_refused_with_its_cause() {
        let definition = r#"{"id": "small-one", "steps": [{}]}"#;
        let outcome = lint(definition, None, &Budget::for_call());
        assert!(matches!(outcome, Ok(Outcome::Tool { .. })));
        let why = lint(definition, None, &Budget::with_steps(100)).unwrap_err();
        let Outcome::Refused { advice, error } = refusal(&why) else { panic!("not refused") };
        assert_eq!(
            advice,
            "Checking the definition takes more than 100 steps of work. Split the workflow, or shorten its names, and \
             check again."
        );
        assert_eq!(error.code, -32004);
    }
}
