//! `session import FILE`: takes in what `session export` wrote, here or elsewhere.

use std::path::{Path, PathBuf};

use clap::Args;
use engine::ImportOrigin;
use store::limits::IMPORT_BYTES_MAX;
use store::sessions::{Error, Importer};
use store::{ExportedLog, ImportFile};

use crate::cli::terminal::{GREEN, YELLOW};
use crate::cli::{Ended, Outcome, SourceOptions, Terminal, input};
use service::error::Refusal;
use service::sessions::{Standing, from_store, now, refusal};
use service::words::plural;

/// Take in a session that was exported, here or elsewhere
///
/// Every event is decided again, and the file is refused where it says something else. People's decisions, and the start
/// of a copy, cannot be decided again: they are marked as unverified. The session becomes yours; the key that it was
/// started with and whom it was shared with are left behind.
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
    let text = input::read(path, "exported session", IMPORT_BYTES_MAX as u64)?;
    let file = ImportFile::read(&text).map_err(|error| unreadable(error, path))?;
    drop(text);
    let open = sources.unloaded().sessions().get()?;
    let importer = Importer { owner: open.user.clone(), time: now() };
    let log = &file.log;
    let imported = open.sessions.import(&file, &importer);
    let ImportOrigin { unverified, .. } = imported.map_err(|error| explained(error, path, log))?;
    let id = &log.session.id;
    let session = open.sessions.open(id).map_err(|error| refusal(id, error))?;
    terminal.styled(
        GREEN,
        &format!("imported session `{id}` of workflow `{}`", log.session.workflow),
    )?;
    terminal.line(&Standing::of(&session).to_string())?;
    if unverified > 0 {
        let count = plural(usize::try_from(unverified).unwrap_or(usize::MAX), "event");
        let note =
            format!("{count} could not be decided again: what people decided, or a copy's start");
        let hint = format!("`workflowlookup session show {id}` marks what is unverified");
        terminal.complain(YELLOW, "note", &note, Some(&hint))?;
    }
    Ok(Outcome::Good)
}

/// What is wrong is wrong with the file, and not with the store.
fn explained(error: Error, path: &Path, log: &ExportedLog) -> Refusal {
    let (name, id) = (name(path), &log.session.id);
    let again = "export it again where it came from";
    match error {
        Error::Store(store::Error::Exists) => refused(
            format!("there is a session `{id}` here already, and it was not touched"),
            &format!("`workflowlookup session show {id}` shows it"),
        ),
        Error::Mismatch(mismatch) => {
            refused(format!("{name} is not what would have happened: {mismatch}"), again)
        }
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
        Error::Store(error) => from_store(&error),
        error => refusal(id, error),
    }
}

fn unreadable(error: store::Error, path: &Path) -> Refusal {
    match error {
        store::Error::NotExported(why) => refused(
            format!("{} is no exported session: {why}", name(path)),
            "`workflowlookup session export ID` writes one",
        ),
        error @ store::Error::Format { .. } => {
            refused(error.to_string(), "use a version of this program that knows it")
        }
        error => from_store(&error),
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
