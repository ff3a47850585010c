//! `check ID STEP --output FILE`: whether what a step produced is good.

use std::path::PathBuf;

use clap::Args;
use engine::{Budget, INPUT_BYTES_MAX};

use super::context::ContextOption;
use super::input;
use super::terminal::{DIM, GREEN, RED};
use super::{Ended, Outcome, SourceOptions, Terminal};

/// The largest output that is read, in bytes.
pub(super) const OUTPUT_BYTES_MAX: u64 = INPUT_BYTES_MAX as u64;

/// Check the output of a step
///
/// The exit status is 0 where the output is valid, 1 where it is not, and 2 where we failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup check investigate-bug reproduce --output notes.md
  git log -1 | workflowlookup check prepare-release publish --output - --context kind=minor")]
pub(crate) struct Arguments {
    /// The workflow's id, as `list` shows it
    id: String,
    /// The step's id, as `show` shows it
    step: String,
    /// The file with the output; `-` is standard input
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    context: ContextOption,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let app = sources.open(terminal)?;
    let snapshot = app.snapshot();
    let context = arguments.context.read()?;
    let output = input::read(&arguments.output, "output", OUTPUT_BYTES_MAX)?;
    let verdict = app.check(
        &snapshot,
        &arguments.id,
        &arguments.step,
        &output,
        Some(&context).filter(|context| !context.is_empty()),
        &Budget::for_call(),
    )?;
    let outcome = if verdict.valid { Outcome::Good } else { Outcome::Bad };
    if arguments.json {
        terminal.json(&verdict)?;
        return Ok(outcome);
    }
    if verdict.valid {
        terminal.styled(GREEN, "valid")?;
        return Ok(outcome);
    }
    terminal.styled(RED, "not valid")?;
    for issue in &verdict.issues {
        terminal.line(&format!("  - {issue}"))?;
    }
    if !verdict.suggestions.is_empty() {
        terminal.styled(DIM, "what to change:")?;
    }
    for suggestion in &verdict.suggestions {
        terminal.line(&format!("  - {suggestion}"))?;
    }
    Ok(outcome)
}
