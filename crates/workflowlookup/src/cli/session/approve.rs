//! `session approve ID`: a person confirms what waits.

use clap::Args;

use super::find::SessionId;
use super::ruling::{Verdict, decide};
use crate::cli::{Ended, SourceOptions, Terminal};
use store::Version;

/// Confirm the output, or the loop, that waits for a person
///
/// Typed by hand, it shows what waits and asks first. Only what was seen is confirmed: a newer output is left to wait.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session approve 7k2m
  workflowlookup session approve 7k2m --version 4 --reason 'the plan is sound'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: SessionId,
    /// Confirm the version that you have seen, as `session show` names it, and do not ask
    #[arg(long, value_name = "N")]
    version: Option<Version>,
    /// Why; it is kept with the decision
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let Arguments { session, version, reason } = arguments;
    decide(Verdict::Approve, &session.find(sources)?, *version, reason.as_deref(), terminal)
}
