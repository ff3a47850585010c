//! `session share ID NAME…`: lets others see a session over HTTP, or ends that.

use clap::Args;

use super::find::SessionId;
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::access::Who;
use service::sessions::from_store;

/// Let others have to do with a session, over HTTP
///
/// They may do with it what their tokens are good for: work on it, or look at it and decide what waits. What is taken back
/// counts from their next request on. Exported logs say nothing of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session share 7k2m anna
  workflowlookup session share 7k2m anna build-agent
  workflowlookup session share 7k2m anna --remove")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: SessionId,
    /// With whom: the names of their tokens, or `ISSUER#SUBJECT`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Take it back
    #[arg(long)]
    remove: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let found = arguments.session.find(sources)?;
    let (store, is_on) = (found.open.sessions.store(), !arguments.remove);
    for name in &arguments.names {
        store.share(&found.id, name, is_on).map_err(|error| from_store(&error))?;
        found.open.note_share(&Who::Local(None), &found.id, name, is_on);
    }
    let shared = store.shares(&found.id).map_err(|error| from_store(&error))?;
    let with = match &*shared {
        [] => "nobody".to_owned(),
        names => names.join(", "),
    };
    terminal.line(&format!("session `{}` is shared with {with}", found.id))?;
    Ok(Outcome::Good)
}
