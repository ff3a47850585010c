//! `session verify [ID]`: is what the store holds what was written? Computes the chains anew and replays the events.

use std::io;

use clap::Args;
use serde::Serialize;
use store::sessions::Error;
use store::{Filter, Meta};

use super::find::SessionId;
use super::{open_if_any, say_none};
use crate::cli::terminal::{GREEN, RED};
use crate::cli::words::{one_line, plural};
use crate::cli::{Ended, Failure, Outcome, SourceOptions, Terminal};
use crate::error::Refusal;
use crate::sessions::{Open, from_store, refusal};

/// How many sessions are listed at once; each is read by itself.
const PAGE: usize = 100;
const NAME_CHARS_MAX: usize = 60;

/// Check that sessions are as they were written
///
/// The chain of hashes is computed anew and the events are replayed. The exit status is 1 where a session is not as
/// it was written.
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
struct Tally {
    sessions: usize,
    events: u64,
    /// Those that are not sound.
    flawed: Vec<Flawed>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Flawed {
    session_id: String,
    workflow_id: String,
    flaws: Vec<String>,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let tally = match &arguments.id {
        Some(id) => {
            let found = SessionId { id: id.clone() }.find(sources)?;
            let meta = found.open.sessions.store().meta(&found.id);
            let mut tally = Tally::default();
            if let Some(meta) = meta.map_err(|error| from_store(&error))? {
                tally.add(&found.open, meta)?;
            }
            tally
        }
        None => match open_if_any(sources)? {
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
    Ok(if tally.flawed.is_empty() { Outcome::Good } else { Outcome::Bad })
}

fn all(open: &Open) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let mut filter = Filter { limit: PAGE, ..Filter::default() };
    loop {
        let page = open.sessions.store().list(&filter).map_err(|error| from_store(&error))?;
        for meta in page.sessions {
            tally.add(open, meta)?;
        }
        if page.next.is_none() {
            return Ok(tally);
        }
        filter.before = page.next;
    }
}

impl Tally {
    fn add(&mut self, open: &Open, meta: Meta) -> Result<(), Refusal> {
        let flaws = match open.sessions.verify(&meta.id) {
            // Pruned since it was listed.
            Err(Error::NotFound) => return Ok(()),
            // That one cannot be read must not hide the others.
            Err(Error::Store(store::Error::Damaged(flaw))) => vec![flaw],
            flaws => flaws.map_err(|error| refusal(&meta.id, error))?,
        };
        self.sessions += 1;
        self.events += meta.version;
        if !flaws.is_empty() {
            let (session_id, workflow_id) = (meta.id, meta.workflow);
            self.flawed.push(Flawed { session_id, workflow_id, flaws });
        }
        Ok(())
    }

    fn print(&self, terminal: &mut Terminal) -> io::Result<()> {
        for Flawed { session_id, workflow_id, flaws } in &self.flawed {
            let workflow = one_line(workflow_id, NAME_CHARS_MAX);
            terminal.styled(RED, &format!("session `{session_id}` ({workflow}) is not sound"))?;
            for flaw in flaws {
                terminal.line(&format!("  - {flaw}"))?;
            }
        }
        let sessions = plural(self.sessions, "session");
        let events = plural(usize::try_from(self.events).unwrap_or(usize::MAX), "event");
        match self.flawed.len() {
            0 => terminal.styled(GREEN, &format!("{sessions}, {events}: all sound")),
            1 => terminal.styled(RED, &format!("{sessions}, {events}: 1 session is not sound")),
            many => terminal
                .styled(RED, &format!("{sessions}, {events}: {many} sessions are not sound")),
        }
    }
}
