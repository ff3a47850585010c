//! `session reject ID`: a person does not confirm what waits.

use clap::Args;

use super::find::SessionId;
use super::ruling::{ruling, waiting};
use super::story::step_name;
use crate::cli::terminal::YELLOW;
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::sessions::{Standing, refusal};

/// Send the output that waits for a person back to the agent
///
/// The agent gets the same step again, with the reason.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  workflowlookup session reject 7k2m --reason 'the migration has no way back'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: SessionId,
    /// Why; the agent is told, and it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let found = arguments.session.find(sources)?;
    let session = found.session()?;
    let submission = waiting(&session)?;
    let ruling = ruling(&found, session.version, arguments.reason.as_ref(), false);
    let after = found.open.rule(ruling).map_err(|error| refusal(&found.id, error))?;
    let step = step_name(&session, &submission.step);
    terminal.styled(YELLOW, &format!("rejected the output of {step}"))?;
    terminal.line(&Standing::of(&after).to_string())?;
    Ok(Outcome::Good)
}
