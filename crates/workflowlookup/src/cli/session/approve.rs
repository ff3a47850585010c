//! `session approve ID`: a person confirms what waits.

use std::io::{self, BufRead, IsTerminal, Read};

use clap::Args;

use super::find::SessionId;
use super::ruling::{print_waiting, ruling, waiting};
use super::story::step_name;
use crate::cli::terminal::{DIM, GREEN};
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::sessions::{Standing, refusal};

/// Nobody types more than this for yes or no.
const ANSWER_BYTES_MAX: u64 = 1024;

/// Confirm the output that waits for a person
///
/// Typed by hand, it shows the output and asks first. Only what was shown is confirmed: an output that was handed in
/// anew meanwhile is not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session approve 7k2m
  workflowlookup session approve 7k2m --yes --reason 'the plan is sound'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: SessionId,
    /// Why; it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let found = arguments.session.find(sources)?;
    let session = found.session()?;
    let submission = waiting(&session)?;
    if !arguments.yes && io::stdin().is_terminal() {
        print_waiting(&session, submission, terminal)?;
        if !ask(terminal)? {
            terminal.styled(DIM, "nothing was decided")?;
            return Ok(Outcome::Bad);
        }
    }
    let ruling = ruling(&found, session.version, arguments.reason.as_ref(), true);
    let after = found.open.rule(ruling).map_err(|error| refusal(&found.id, error))?;
    let step = step_name(&session, &submission.step);
    terminal.styled(GREEN, &format!("approved the output of {step}"))?;
    terminal.line(&Standing::of(&after).to_string())?;
    Ok(Outcome::Good)
}

fn ask(terminal: &mut Terminal) -> io::Result<bool> {
    terminal.text("Approve? [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer)?;
    Ok(matches!(&*answer.trim().to_lowercase(), "y" | "yes"))
}
