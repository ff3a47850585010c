//! `mcp logout`: the token of a server is forgotten, and whoever gave it hears of that.

use clap::Args;
use orchestrator::oauth::LoggedOut;
use serde::Serialize;

use super::ad_hoc::{AdHoc, HEADING};
use super::login::{failed, kept};
use super::servers::Servers;
use super::{Context, running};
use crate::cli::{Ended, Outcome, Terminal};

/// Forget the login to a server
///
/// Its login server is told that the token must not be used any more, where it can be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp logout linear
  workflowlookup mcp logout --http https://mcp.example.com/mcp")]
pub(crate) struct Arguments {
    /// The server's id, also of one that is in no registry any more
    #[arg(value_name = "SERVER", required_unless_present = "http", conflicts_with = "http")]
    server: Option<String>,
    /// Print what came of it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Log out of the server at this address; `${NAME}` is filled in from the environment
    #[arg(long, value_name = "URL", help_heading = HEADING)]
    http: Option<String>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    server: &'a str,
    was_logged_in: bool,
    /// Whether the login server was told.
    is_revoked: bool,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let servers = Servers::look(&AdHoc::at(arguments.http.clone(), Vec::new()), context.sources)?;
    let entry = servers.find(arguments.server.as_deref()).ok();
    let server = match (&entry, &arguments.server) {
        (Some(entry), _) => entry.id.as_str(),
        (None, Some(server)) => server,
        (None, None) => "",
    };
    let logins = kept()?;
    running::on_this_thread(async {
        let connect = entry.as_ref().map(|entry| &entry.connect);
        let done = logins.logout(server, connect).await.map_err(failed)?;
        if arguments.json {
            let report = Report {
                server,
                was_logged_in: done != LoggedOut::Nothing,
                is_revoked: done == LoggedOut::Revoked,
            };
            terminal.json(&report)?;
            return Ok(Outcome::Good);
        }
        terminal.line(&match done {
            LoggedOut::Nothing => format!("there is no login to `{server}`"),
            LoggedOut::Revoked => format!("logged out of `{server}`; its token was revoked"),
            LoggedOut::Forgotten => {
                format!("logged out of `{server}`; its token is forgotten here, and ends by itself there")
            }
        })?;
        Ok(Outcome::Good)
    })
}
