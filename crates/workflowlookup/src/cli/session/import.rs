//! `session import FILE`: takes in what `session export` wrote, here or elsewhere.

use std::path::{Path, PathBuf};

use clap::Args;
use store::ExportedLog;
use store::sessions::Error;

use crate::cli::terminal::GREEN;
use crate::cli::{Ended, Outcome, SourceOptions, Terminal, input};
use service::error::Refusal;
use service::sessions::{Open, Standing, from_store, refusal};

/// The largest file that is read, in bytes. Sessions are far smaller.
const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Take in a session that was exported, here or elsewhere
///
/// It is checked first: a file that was changed since it was exported is refused. That it was honest before, nobody
/// can check.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session import session.json
  ssh build workflowlookup session export 7k2m | workflowlookup session import -")]
pub(crate) struct Arguments {
    /// The exported session; `-` is standard input
    file: PathBuf,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let path = &arguments.file;
    let text = input::read(path, "exported session", FILE_BYTES_MAX)?;
    let log: ExportedLog = serde_json::from_str(&text).map_err(|error| {
        refused(
            format!("{} is no exported session: {error}", name(path)),
            "`workflowlookup session export ID` writes one",
        )
    })?;
    let open = sources.unloaded().sessions().get()?;
    open.sessions.import(&log).map_err(|error| explained(error, path, &log, &open))?;
    let id = &log.session.id;
    let session = open.sessions.open(id).map_err(|error| refusal(id, error))?;
    terminal.styled(
        GREEN,
        &format!("imported session `{id}` of workflow `{}`", log.session.workflow),
    )?;
    terminal.line(&Standing::of(&session).to_string())?;
    Ok(Outcome::Good)
}

/// What is wrong is wrong with the file, and not with the store.
fn explained(error: Error, path: &Path, log: &ExportedLog, open: &Open) -> Refusal {
    let (name, id) = (name(path), &log.session.id);
    let again = "export it again where it came from";
    match error {
        Error::Store(store::Error::Exists) => match open.sessions.store().meta(id) {
            Ok(None) => refused(
                format!("the key that session `{id}` was begun with is taken by another one here"),
                "`workflowlookup session list` shows what there is",
            ),
            _ => refused(
                format!("there is a session `{id}` here already, and it was not touched"),
                &format!("`workflowlookup session show {id}` shows it"),
            ),
        },
        Error::Store(store::Error::Broken(flaws)) => {
            let flaws: Vec<String> = flaws.iter().map(ToString::to_string).collect();
            refused(
                format!("{name} was changed since it was exported: {}", flaws.join(", ")),
                again,
            )
        }
        Error::Store(store::Error::Damaged(why)) => {
            refused(format!("{name} does not hold together: {why}"), again)
        }
        Error::Store(error @ store::Error::Format { .. }) => {
            refused(error.to_string(), "use a version of this program that knows it")
        }
        Error::Store(error) => from_store(&error),
        error => refusal(id, error),
    }
}

fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "what came on standard input".to_owned()
    } else {
        format!("`{}`", path.display())
    }
}

fn refused(details: String, hint: &str) -> Refusal {
    Refusal::InvalidParams { details, hint: Some(hint.to_owned()) }
}
