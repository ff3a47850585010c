//! `session prune --older-than DURATION`: removes finished sessions that nobody has touched for long.

use std::time::Duration;

use clap::Args;

use super::{open_if_any, say_none};
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::sessions::{from_store, now};
use service::words::plural;

/// Remove complete sessions that were last touched long ago
///
/// Running sessions and those that wait for a person are never removed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session prune --older-than 30d --dry-run
  workflowlookup session prune --older-than '1year 6months'")]
pub(crate) struct Arguments {
    /// How long ago: `90min`, `36h`, `30d`, `2weeks`, `6months`
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    older_than: Duration,
    /// Only say how many would go
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let Some(open) = open_if_any(sources)? else { return say_none(terminal) };
    let age = u64::try_from(arguments.older_than.as_millis()).unwrap_or(u64::MAX);
    let before = now().saturating_sub(age);
    let store = open.sessions.store();
    let (counted, done) = if arguments.dry_run {
        (store.prunable(before), "would be removed")
    } else {
        (store.prune(before, usize::MAX), "removed")
    };
    let count = counted.map_err(|error| from_store(&error))?;
    terminal.line(&format!("{} {done}", plural(count, "complete session")))?;
    Ok(Outcome::Good)
}
