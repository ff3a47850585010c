//! `session reject ID`: a person does not confirm what waits.

use clap::Args;

use super::find::SessionId;
use super::ruling::{Verdict, decide};
use crate::cli::{Ended, SourceOptions, Terminal};
use store::Version;

/// Send the output that waits for a person back to the agent, or keep a loop from beginning
///
/// The agent gets the same step again, with the reason. A loop that is rejected goes on waiting: it begins if somebody
/// approves it after all, and the agent may go back to an earlier step. Typed by hand, it shows what waits and asks first.
/// Only what was seen is sent back: a newer output is left to wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session reject 7k2m --reason 'the migration has no way back'
  workflowlookup session reject 7k2m --version 4 --reason 'the migration has no way back'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: SessionId,
    /// Send back the version that you have seen, as `session show` names it, and do not ask
    #[arg(long, value_name = "N")]
    version: Option<Version>,
    /// Why; the agent is told, and it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let Arguments { session, version, reason } = arguments;
    decide(Verdict::Reject, &session.find(sources)?, *version, reason.as_deref(), terminal)
}
