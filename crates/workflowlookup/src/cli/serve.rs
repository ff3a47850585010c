//! `serve`: the MCP server, over standard input and output.

use std::io::{self, IsTerminal};

use clap::Args;

use super::terminal::DIM;
use super::{Ended, Outcome, SourceOptions, Terminal};
use crate::server::{Host, stdio};

/// Serve agents over MCP, on standard input and output
///
/// Ends when its input ends, on `shutdown`, and on SIGTERM or SIGINT. Edits of workflow files are picked
/// up while it runs.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  an agent's MCP configuration: {\"command\": \"workflowlookup\", \"args\": [\"serve\"]}")]
pub(crate) struct Arguments {}

pub(crate) fn run(_: &Arguments, sources: &SourceOptions, terminal: &mut Terminal) -> Ended {
    let app = sources.open(terminal)?;
    if io::stdin().is_terminal() {
        let message =
            "this is an MCP server; an agent starts it and speaks to it on standard input";
        terminal.complain(DIM, "workflowlookup", message, Some("end with Ctrl-D"))?;
    }
    stdio::serve(&Host::new(app))?;
    Ok(Outcome::Good)
}
