//! `check ID STEP --output FILE`: whether what a step produced is good.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::context::ContextOption;
use super::terminal::{DIM, GREEN, RED};
use super::{Ended, Failure, Outcome, SourceOptions, Terminal};
use crate::error::Refusal;

/// The largest output that is read, in bytes.
const OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

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
    /// Print what the tool `workflow_validate` returns
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
    let output = read_output(&arguments.output)?;
    let verdict = app.check(&snapshot, &arguments.id, &arguments.step, &output, &context)?;
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
    terminal.styled(DIM, "what to change:")?;
    for suggestion in &verdict.suggestions {
        terminal.line(&format!("  - {suggestion}"))?;
    }
    Ok(outcome)
}

fn read_output(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        let read = io::stdin().lock().take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.context("cannot read standard input")?;
    } else {
        let file = File::open(path);
        let read = file.and_then(|file| file.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| Refusal::InvalidParams {
            details: format!("the output `{}` cannot be read: {error}", path.display()),
            hint: Some("name a file, or `-` for standard input".to_owned()),
        })?;
    }
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(refused(format!("the output is larger than {OUTPUT_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refused("the output is not UTF-8 text".to_owned()))
}

fn refused(details: String) -> Failure {
    Refusal::InvalidParams { details, hint: None }.into()
}
