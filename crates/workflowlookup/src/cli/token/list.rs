//! `token list`: the tokens that there are, without what is secret about them.

use clap::Args;
use serde::Serialize;

use crate::cli::terminal::YELLOW;
use crate::cli::{Ended, Outcome, Terminal};
use service::access::Right;
use service::auth::{Record, TokenList};
use service::sessions::{now, time_text};

/// List the tokens, in the order in which they were made
///
/// The tokens themselves are not kept. The id is what stands in a token between the two `_`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup token list
  workflowlookup token list --json")]
pub(crate) struct Arguments {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Listing<'a> {
    tokens: Vec<Line<'a>>,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    id: &'a str,
    status: &'static str,
    made: String,
    expires: Option<String>,
    right: Right,
}

pub(super) fn run(arguments: &Arguments, file: &TokenList, terminal: &mut Terminal) -> Ended {
    let (records, now) = (file.list()?, now());
    let lines: Vec<Line<'_>> = records.iter().map(|record| Line::of(record, now)).collect();
    if arguments.json {
        terminal.json(&Listing { tokens: lines })?;
    } else if lines.is_empty() {
        let hint = "`workflowlookup token new NAME` makes one";
        terminal.complain(YELLOW, "warning", "there are no tokens", Some(hint))?;
    } else {
        let rows: Vec<Vec<String>> = lines.into_iter().map(Line::row).collect();
        terminal.table(&["NAME", "ID", "STATUS", "MADE", "EXPIRES", "RIGHT"], &rows)?;
    }
    Ok(Outcome::Good)
}

impl<'a> Line<'a> {
    fn of(record: &'a Record, now: u64) -> Self {
        Self {
            name: &record.name,
            id: &record.id,
            status: if record.is_expired(now) { "expired" } else { "good" },
            made: time_text(record.made),
            expires: record.until.map(time_text),
            right: record.right,
        }
    }

    fn row(self) -> Vec<String> {
        let expires = self.expires.unwrap_or_else(|| "never".to_owned());
        let (name, id, status) = (self.name.to_owned(), self.id.to_owned(), self.status.to_owned());
        vec![name, id, status, self.made, expires, self.right.name().to_owned()]
    }
}
