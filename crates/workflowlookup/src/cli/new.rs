//! `new ID`: a small, valid workflow to start from, with a schema beside it for the editor.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use workflow::limits::{ID_MAX, ID_MIN, is_id};

use super::terminal::GREEN;
use super::{Ended, Failure, Outcome, Terminal};
use service::error::Refusal;

const FOLDER: &str = "workflows";
const SCHEMA_FOLDER: &str = ".workflowlookup";
const SCHEMA_FILE: &str = "workflow.schema.json";

/// Write a small workflow to start from, to ./workflows/ID.json
#[derive(Debug, Args)]
#[command(after_help = "Example:
  workflowlookup new tidy-the-garage")]
pub(crate) struct Arguments {
    /// The new workflow's id: lower-case letters, digits and `-`
    id: String,
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> Ended {
    let id = &arguments.id;
    if !is_id(id) {
        let details = format!("`{id}` cannot be an id");
        let hint = format!("use {ID_MIN} to {ID_MAX} lower-case letters, digits and `-`");
        return Err(Refusal::InvalidParams { details, hint: Some(hint) }.into());
    }
    let path = Path::new(FOLDER).join(format!("{id}.json"));
    fs::create_dir_all(FOLDER).with_context(|| format!("cannot create the folder `{FOLDER}`"))?;
    write_new(&path, &definition(id))?;
    let schema = Path::new(SCHEMA_FOLDER).join(SCHEMA_FILE);
    fs::create_dir_all(SCHEMA_FOLDER)
        .and_then(|()| fs::write(&schema, workflow::schema_text()))
        .with_context(|| format!("cannot write `{}`", schema.display()))?;
    terminal.styled(GREEN, &format!("wrote {}", path.display()))?;
    terminal.line(&format!("  edit it, then: workflowlookup validate {}", path.display()))?;
    terminal.line(&format!("  walk it: workflowlookup run {id}"))?;
    Ok(Outcome::Good)
}

/// Never overwrites.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let created = fs::OpenOptions::new().write(true).create_new(true).open(path);
    match created {
        Ok(mut file) => {
            let written = file.write_all(text.as_bytes());
            Ok(written.with_context(|| format!("cannot write `{}`", path.display()))?)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let details = format!("`{}` is there already and was not touched", path.display());
            let hint = Some("choose another id, or remove the file first".to_owned());
            Err(Refusal::InvalidParams { details, hint }.into())
        }
        Err(error) => Err(anyhow::Error::new(error)
            .context(format!("cannot write `{}`", path.display()))
            .into()),
    }
}

fn definition(id: &str) -> String {
    // Written by hand and not from the types, so that the fields stand in the order of reading.
    let name = json!(title(id)).to_string();
    let id = json!(id).to_string();
    format!(
        r#"{{
  "$schema": "../{SCHEMA_FOLDER}/{SCHEMA_FILE}",
  "id": {id},
  "name": {name},
  "description": "Say in a sentence what this workflow accomplishes and when to choose it.",
  "version": "0.1.0",
  "category": "general",
  "variables": {{
    "size": {{
      "type": "string",
      "values": ["small", "large"],
      "description": "how large the task is"
    }}
  }},
  "steps": [
    {{
      "id": "understand",
      "title": "Understand the task",
      "prompt": "Say in your own words what is wanted, and what is not.",
      "reports": ["size"]
    }},
    {{
      "id": "plan",
      "title": "Plan the work",
      "prompt": "List the steps that you will take, one a line.",
      "runCondition": {{ "var": "size", "equals": "large" }},
      "requireConfirmation": true
    }},
    {{
      "id": "do-it",
      "title": "Do it",
      "prompt": "Do the work. Report what you did, and how you know that it is right.",
      "validationCriteria": [
        {{ "type": "length", "min": 40, "message": "Report in a sentence or two what was done" }}
      ]
    }}
  ]
}}
"#
    )
}

/// `tidy-the-garage` becomes `Tidy the garage`.
fn title(id: &str) -> String {
    let words = id.replace(['-', '_', '.'], " ");
    let words = words.trim();
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => id.to_owned(),
    }
}
