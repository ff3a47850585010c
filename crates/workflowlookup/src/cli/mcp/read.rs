//! `mcp read`: what a resource holds.

use std::path::PathBuf;

use clap::Args;

use super::files::Folder;
use super::refused::Refused;
use super::servers::Reaching;
use super::{Context, content, json_text, refused, running};
use crate::cli::{Ended, Outcome, Terminal};

/// Read a resource of a server
///
/// A text is printed as it is. What is none goes to a pipe as it is, and into a file otherwise.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp read everything demo://resource/static/document/features.md
  workflowlookup mcp read files file:///logo.png > logo.png
  workflowlookup mcp read --http http://127.0.0.1:8080/mcp workflow://investigate-bug")]
pub(crate) struct Arguments {
    /// The server's id, and the resource's address; with --stdio or --http only the address
    #[arg(value_name = "SERVER URI", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Where what is no text goes; otherwise to a pipe, or into the current folder. No file is overwritten
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    save: Option<PathBuf>,
    #[command(flatten)]
    reaching: Reaching,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let mut servers = arguments.reaching.open(context)?;
    let (server, uri) = match (arguments.words.as_slice(), servers.is_ad_hoc()) {
        ([uri], true) => (None, uri),
        ([server, uri], false) => (Some(server.as_str()), uri),
        (_, true) => {
            return Err(
                Refused::invalid("only an address is wanted here", "leave the server out").into()
            );
        }
        (_, false) => {
            let hint =
                "`workflowlookup mcp read SERVER URI`; `mcp resources SERVER` shows addresses";
            return Err(Refused::invalid("a server and an address are wanted", hint).into());
        }
    };
    let id = servers.entry(server)?.id.clone();
    let name = uri.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or(uri);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let mut folder = Folder::open(arguments.save.as_deref(), stem)?;
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        let result = orchestrator.read_sent(&id, uri).await;
        let (result, sent) = result.map_err(|error| refused(error, &servers))?;
        if arguments.json {
            json_text::print(sent.get(), terminal)?;
        } else {
            content::print_resource(&result, &mut folder, terminal)?;
        }
        terminal.flush()?;
        Ok(Outcome::Good)
    })
}
