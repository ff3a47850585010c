//! `session export ID`: one session as one readable JSON file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::find::SessionId;
use crate::cli::terminal::GREEN;
use crate::cli::{Ended, Failure, Outcome, SourceOptions, Terminal};
use service::error::Refusal;
use service::sessions::from_store;

/// Write a session as one readable JSON file, which `session import` takes elsewhere
///
/// Its definition and everything that was produced are in it. A session that was changed by hand is not exported.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session export 7k2m > session.json
  workflowlookup session export 7k2m --output session.json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    session: SessionId,
    /// Write to this file, which only you can read, instead of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "output")]
    force: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let found = arguments.session.find(sources)?;
    let log = found.open.sessions.store().export(&found.id);
    let text = log.and_then(|log| log.to_text()).map_err(|error| from_store(&error))?;
    let Some(path) = &arguments.output else {
        terminal.verbatim(&text)?;
        return Ok(Outcome::Good);
    };
    if arguments.force {
        replace(path, &text)?
    } else {
        create(path, &text)?
    }
    terminal.styled(GREEN, &format!("wrote session `{}` to {}", found.id, path.display()))?;
    Ok(Outcome::Good)
}

fn create(path: &Path, text: &str) -> Result<(), Failure> {
    match write_new(path, text) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let details = format!("`{}` is there already and was not touched", path.display());
            let hint = Some("choose another name, or replace it with `--force`".to_owned());
            Err(Refusal::InvalidParams { details, hint }.into())
        }
        written => Ok(written.with_context(|| format!("cannot write `{}`", path.display()))?),
    }
}

/// The old file stays until the new one is whole.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}.tmp", std::process::id()));
    let draft = PathBuf::from(draft);
    let written = write_new(&draft, text).and_then(|()| {
        fs::rename(&draft, path).inspect_err(|_| {
            // It is of no use to anybody, and the error says enough.
            let _ = fs::remove_file(&draft);
        })
    });
    Ok(written.with_context(|| format!("cannot write `{}`", path.display()))?)
}

/// Goals and outputs are for their owner only, as in the store.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).inspect_err(|_| {
        // Half of a session is worse than none.
        let _ = fs::remove_file(path);
    })
}
