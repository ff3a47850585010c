//! `session backup FILE`: a copy of the store while servers run.

use std::path::PathBuf;

use clap::Args;

use super::open_if_any;
use crate::cli::terminal::{GREEN, YELLOW};
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::error::Refusal;
use service::sessions::{StoreUrl, from_store};
use service::words::plural;

/// Copy the store into a file while servers run
///
/// The copy holds the sessions as they were at one moment. It is verified and on disk before it gets its name, and never
/// replaces a file. Open it with `--store sqlite:FILE` and the same key.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session backup sessions-monday.db
  workflowlookup session verify --store sqlite:sessions-monday.db")]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    file: PathBuf,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let Some(open) = open_if_any(sources)? else {
        let details = "there is no store of sessions yet, so nothing was written".to_owned();
        return Err(Refusal::InvalidParams { details, hint: None }.into());
    };
    let backup = open.sessions.store().backup(&arguments.file);
    let Some(backup) = backup.map_err(|error| from_store(&error))? else {
        return Err(server_tools(sources).into());
    };
    let sessions = plural(usize::try_from(backup.sessions).unwrap_or(usize::MAX), "session");
    let events = plural(usize::try_from(backup.events).unwrap_or(usize::MAX), "event");
    let file = arguments.file.display();
    terminal.styled(GREEN, &format!("copied {sessions} with {events} to {file}"))?;
    if backup.flaws.is_empty() {
        return Ok(Outcome::Good);
    }
    let hint = "`workflowlookup session verify` says the same of the store itself";
    terminal.complain(
        YELLOW,
        "warning",
        "the copy is not sound, as the store is not",
        Some(hint),
    )?;
    backup.flaws.iter().try_for_each(|flaw| terminal.line(&format!("  - {flaw}")))?;
    Ok(Outcome::Bad)
}

/// A database server makes better copies of itself than a client can.
fn server_tools(sources: &SourceOptions) -> Refusal {
    let place = sources.unloaded();
    let place = place.sessions().place();
    let address = match place.map(|place| &place.store) {
        Some(StoreUrl::Postgres(address)) => address.to_string(),
        _ => "ADDRESS".to_owned(),
    };
    Refusal::InvalidParams {
        details: "sessions in PostgreSQL are backed up with its own tools; nothing was written"
            .to_owned(),
        hint: Some(format!(
            "`pg_dump --format=custom --schema=workflowlookup --file=sessions.dump '{address}'`, and keep a copy of the \
             key in another place"
        )),
    }
}
