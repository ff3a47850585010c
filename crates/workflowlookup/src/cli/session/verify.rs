//! `session verify [ID]`: is what the store holds what was written? Computes the chains anew and replays the events.

use std::io;

use clap::Args;
use engine::ImportOrigin;
use serde::Serialize;
use store::sessions::{Error, Verification};

use super::find::SessionId;
use super::say_none;
use crate::cli::terminal::{GREEN, RED, YELLOW};
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::error::Refusal;
use service::sessions::{Open, from_store, refusal};
use service::words::{one_line, plural};

/// How many sessions are listed at once; each is read by itself.
const PAGE: usize = 100;
const NAME_CHARS_MAX: usize = 60;
const ID_CHARS_MAX: usize = store::limits::ID_BYTES_MAX;
/// What is wrong with a session that the table has and nobody finds.
const LOST: &str = "it cannot be found by its id: the id or its index was changed";

/// Check that sessions are as they were written
///
/// The chain of hashes is computed anew and the events are replayed; without an id, the file itself is checked too,
/// its counter, and with `--anchor` whether it was rolled back. The exit status is 1 where something is not as it was
/// written.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session verify
  workflowlookup session verify 7k2m --json")]
pub(crate) struct Arguments {
    /// The session's id, or its first letters (at least 4); without it, all sessions
    id: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tally {
    sessions: usize,
    events: u64,
    /// Those that are not sound.
    flawed: Vec<Flawed>,
    /// Those whose logs, or whose originals' logs, came from a file.
    imported: Vec<ImportedRow>,
    /// What is wrong with the file and with no session in particular.
    store_flaws: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Flawed {
    session_id: String,
    /// None where it cannot be read any more.
    workflow_id: Option<String>,
    flaws: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ImportedRow {
    session_id: String,
    /// Where it came from, and how much of it nobody has verified.
    origin: ImportOrigin,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let tally = match &arguments.id {
        Some(id) => {
            let found = SessionId { id: id.clone() }.find(sources)?;
            let mut tally = Tally::default();
            // None: pruned since it was found.
            if let Some(verification) = verify(&found.open, &found.id)? {
                tally.add(&found.open, &found.id, verification)?;
            }
            tally
        }
        None => match sources.unloaded().sessions().get_unanchored()? {
            Some(open) => all(&open)?,
            None if arguments.json => Tally::default(),
            None => return say_none(terminal),
        },
    };
    if arguments.json {
        terminal.json(&tally)?;
    } else {
        tally.print(terminal)?;
    }
    let is_sound = tally.flawed.is_empty() && tally.store_flaws.is_empty();
    Ok(if is_sound { Outcome::Good } else { Outcome::Bad })
}

/// Takes the sessions from the table itself, and trusts neither its ids nor its indexes.
fn all(open: &Open) -> Result<Tally, Refusal> {
    let store = open.sessions.store();
    let mut store_flaws = readable(store.file_flaws())?.unwrap_or_else(|flaw| vec![flaw]);
    store_flaws.extend(readable(store.counter_flaws())?.unwrap_or_else(|flaw| vec![flaw]));
    store_flaws.extend(open.rollback().map(str::to_owned));
    store_flaws.dedup();
    let mut tally = Tally { store_flaws, ..Tally::default() };
    let mut after = None;
    loop {
        let page = match readable(store.ids(after, PAGE))? {
            Ok(page) => page,
            Err(flaw) => {
                tally.store_flaws.push(flaw);
                return Ok(tally);
            }
        };
        let Some((last, _)) = page.last() else { return Ok(tally) };
        after = Some(*last);
        for (at, id) in page {
            let Ok(id) = str::from_utf8(&id) else {
                let flaws = vec!["its id is not text any more".to_owned()];
                tally.add_unreadable(&String::from_utf8_lossy(&id), flaws);
                continue;
            };
            match verify(open, id)? {
                Some(verification) => tally.add(open, id, verification)?,
                None => match readable(store.is_there(at))? {
                    Ok(true) => tally.add_unreadable(id, vec![LOST.to_owned()]),
                    Ok(false) => {}
                    Err(flaw) => tally.add_unreadable(id, vec![flaw]),
                },
            }
        }
    }
}

/// What is not as it was written; nothing where there is no such session.
fn verify(open: &Open, id: &str) -> Result<Option<Verification>, Refusal> {
    match open.sessions.verify(id) {
        Ok(verification) => Ok(Some(verification)),
        Err(Error::NotFound | Error::Store(store::Error::NotFound)) => Ok(None),
        // That one cannot be read must not hide the others.
        Err(Error::Store(store::Error::Damaged(why))) => {
            let flaws = vec![format!("it cannot be read: {why}")];
            Ok(Some(Verification { flaws, imported: None }))
        }
        Err(error) => Err(refusal(id, error)),
    }
}

/// That something cannot be read is what we are here to find out.
fn readable<T>(read: Result<T, store::Error>) -> Result<Result<T, String>, Refusal> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(store::Error::Damaged(flaw)) => Ok(Err(flaw)),
        Err(error) => Err(from_store(&error)),
    }
}

impl Tally {
    fn add(&mut self, open: &Open, id: &str, verification: Verification) -> Result<(), Refusal> {
        let Verification { flaws, imported } = verification;
        self.imported
            .extend(imported.map(|origin| ImportedRow { session_id: id.to_owned(), origin }));
        let meta = readable(open.sessions.store().meta(id))?.ok().flatten();
        self.sessions += 1;
        self.events += meta.as_ref().map_or(0, |meta| meta.version);
        if !flaws.is_empty() {
            let workflow_id = meta.map(|meta| meta.workflow);
            self.flawed.push(Flawed { session_id: id.to_owned(), workflow_id, flaws });
        }
        Ok(())
    }

    /// One of which only the id is known, if that.
    fn add_unreadable(&mut self, id: &str, flaws: Vec<String>) {
        self.sessions += 1;
        self.flawed.push(Flawed { session_id: id.to_owned(), workflow_id: None, flaws });
    }

    fn print(&self, terminal: &mut Terminal) -> io::Result<()> {
        for Flawed { session_id, workflow_id, flaws } in &self.flawed {
            let id = one_line(session_id, ID_CHARS_MAX);
            let workflow = match workflow_id {
                Some(workflow) => format!(" ({})", one_line(workflow, NAME_CHARS_MAX)),
                None => String::new(),
            };
            terminal.styled(RED, &format!("session `{id}`{workflow} is not sound"))?;
            print_flaws(flaws, terminal)?;
        }
        if !self.store_flaws.is_empty() {
            terminal.styled(RED, "the file of the store is not sound")?;
            print_flaws(&self.store_flaws, terminal)?;
        }
        for ImportedRow { session_id, origin } in &self.imported {
            let id = one_line(session_id, ID_CHARS_MAX);
            let count = usize::try_from(origin.unverified).unwrap_or(usize::MAX);
            let unverified = plural(count, "event");
            terminal.styled(
                YELLOW,
                &format!("session `{id}` came from a file; {unverified} of it unverified"),
            )?;
        }
        let sessions = plural(self.sessions, "session");
        let events = plural(usize::try_from(self.events).unwrap_or(usize::MAX), "event");
        let (style, verdict) = match self.flawed.len() {
            0 if self.store_flaws.is_empty() => (GREEN, "all sound".to_owned()),
            0 => (RED, "sound by themselves, in a file that is not".to_owned()),
            1 => (RED, "1 session is not sound".to_owned()),
            many => (RED, format!("{many} sessions are not sound")),
        };
        terminal.styled(style, &format!("{sessions}, {events}: {verdict}"))
    }
}

fn print_flaws(flaws: &[String], terminal: &mut Terminal) -> io::Result<()> {
    flaws.iter().try_for_each(|flaw| terminal.line(&format!("  - {flaw}")))
}
