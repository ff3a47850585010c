//! `schema`: the JSON Schema of a workflow.

use clap::Args;

use super::{Ended, Outcome, Terminal};

/// Print the JSON Schema of a workflow, for editors and other tools
#[derive(Debug, Args)]
#[command(after_help = "Example:
  workflowlookup schema > workflow.schema.json")]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments, terminal: &mut Terminal) -> Ended {
    terminal.text(&workflow::schema_text())?;
    Ok(Outcome::Good)
}
