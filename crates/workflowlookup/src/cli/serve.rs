//! `serve`: the MCP server, over standard input and output.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use super::terminal::DIM;
use super::{Ended, Outcome, SourceOptions, Terminal};
use crate::error::Refusal;
use crate::server::Host;
use crate::server::log::{self, Format, Level};
use crate::server::stdio::{self, WireLog};

/// Serve agents over MCP, on standard input and output
///
/// Ends when its input ends, on `shutdown`, and on SIGTERM or SIGINT. Edits of workflow files are picked
/// up while it runs.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  workflowlookup connect claude-code     how to add it to an agent's configuration
  workflowlookup serve --log-level info --log-wire messages.log")]
pub(crate) struct Arguments {
    /// Speak on standard input and output; there is no other way yet
    #[arg(long)]
    stdio: bool,
    /// How much to say on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: Level,
    /// In which form to say it
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: Format,
    /// Append every message, both ways, to this file
    #[arg(long, value_name = "FILE")]
    log_wire: Option<PathBuf>,
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let wire_log = arguments.log_wire.as_ref().map(|path| {
        WireLog::open(path).map_err(|error| Refusal::InvalidParams {
            details: format!("`{}` cannot be written: {error}", path.display()),
            hint: Some("name a file for --log-wire that may be created or appended to".to_owned()),
        })
    });
    let wire_log = wire_log.transpose()?;
    log::begin(arguments.log_level, arguments.log_format);
    if io::stdin().is_terminal() {
        let message =
            "this is an MCP server; an agent starts it and speaks to it on standard input";
        let hint =
            "`workflowlookup connect CLIENT` prints an agent's configuration; end with Ctrl-D";
        terminal.complain(DIM, "workflowlookup", message, Some(hint))?;
    }
    stdio::serve(&Host::new(sources.unloaded()), wire_log)?;
    Ok(Outcome::Good)
}
