//! `workflow_lint`: everything that is wrong with a definition, for an agent that writes one.

use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;
use workflow::finding::render;
use workflow::limits::FILE_BYTES_MAX;
use workflow::{Format, Scrutiny, read};

use super::{Carried, read_only};
use crate::error::Refusal;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    definition: String,
}

pub(super) fn about() -> About {
    About {
        title: "Check a definition",
        description: "Checks the text of a workflow definition, JSON or YAML, while you write one: every problem \
            with its place and what to try.",
        input_schema: json!({
            "type": "object",
            "properties": {"definition": {"type": "string"}},
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
pub(super) fn call(arguments: Arguments) -> Result<Carried, Refusal> {
    let text = arguments.definition;
    if text.len() > FILE_BYTES_MAX {
        return Err(Refusal::InvalidParams {
            details: format!("a definition may have {FILE_BYTES_MAX} bytes"),
            hint: None,
        });
    }
    Ok(Carried::Later(Box::new(move || lint(&text))))
}

fn lint(text: &str) -> Outcome {
    // A JSON object begins with a brace, and no block of YAML does.
    let format = if text.trim_start().starts_with('{') { Format::Json } else { Format::Yaml };
    let reading = read(text.as_bytes(), format, Scrutiny::Compile);
    let usable = reading.workflow.is_some();
    let rendered: Vec<String> =
        reading.findings.iter().map(|finding| render(finding, Some(text))).collect();
    let summary = match (usable, rendered.is_empty()) {
        (true, true) => "Nothing is wrong.",
        (true, false) => "It can be used, but:",
        (false, _) => "It cannot be used:",
    };
    let structured = json!({"usable": usable, "findings": reading.findings});
    let text = format!("{summary}\n{}", rendered.join("\n"));
    Outcome::Tool { text: text.trim_end().into(), structured: structured.to_string() }
}
