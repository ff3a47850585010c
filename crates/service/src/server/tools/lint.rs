//! `workflow_lint`: everything that is wrong with a definition, for an agent that writes one.

use catalog::examine_text;
use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;
use workflow::finding::render;

use super::{Carried, bad, read_only};
use crate::error::Refusal;

/// The longest file name. Every finding repeats it.
const FILE_NAME_BYTES_MAX: usize = 255;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    definition: String,
    file_name: Option<String>,
}

pub(super) fn about() -> About {
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
pub(super) fn call(arguments: Arguments) -> Result<Carried, Refusal> {
    let Arguments { definition, file_name } = arguments;
    if file_name.as_ref().is_some_and(|name| name.len() > FILE_NAME_BYTES_MAX) {
        return Err(bad(format!("fileName may have at most {FILE_NAME_BYTES_MAX} bytes")));
    }
    Ok(Carried::Later(Box::new(move || lint(&definition, file_name.as_deref()))))
}

fn lint(text: &str, file_name: Option<&str>) -> Outcome {
    let reading = examine_text(text.as_bytes(), file_name);
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
