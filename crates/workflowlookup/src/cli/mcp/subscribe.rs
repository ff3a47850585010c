//! `mcp subscribe`: a line for every change of a resource, until somebody has seen enough.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use clap::Args;
use orchestrator::pool::Event;
use orchestrator::{Error, Orchestrator};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;

use super::refused::Refused;
use super::servers::Reaching;
use super::{Context, refused, running};
use crate::cli::terminal::{DIM, YELLOW};
use crate::cli::{Ended, Failure, Terminal};
use service::words::plural;

/// A server that goes away is looked for again this much later.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(60);

/// Print a line for every change of resources, until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp subscribe everything demo://resource/dynamic/text/1
  workflowlookup mcp subscribe files file:///notes.md file:///todo.md --json
  workflowlookup mcp subscribe --http http://127.0.0.1:8080/mcp workflow://investigate-bug")]
pub(crate) struct Arguments {
    /// The server's id, and the addresses of resources as `mcp resources` lists them; with --stdio or --http only addresses
    #[arg(value_name = "SERVER URI", required = true)]
    words: Vec<String>,
    /// Print each change as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    time: String,
    server: &'a str,
    uri: &'a str,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let mut servers = arguments.reaching.open(context)?;
    let (server, uris) = match arguments.words.split_first() {
        Some((server, uris)) if !servers.is_ad_hoc() => (Some(server.as_str()), uris),
        _ => (None, arguments.words.as_slice()),
    };
    if uris.is_empty() {
        let hint =
            "`workflowlookup mcp subscribe SERVER URI`; `mcp resources SERVER` shows addresses";
        return Err(Refused::invalid("a server and an address are wanted", hint).into());
    }
    let id = servers.entry(server)?.id.clone();
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        // From before the first can come.
        let mut events = orchestrator.events();
        for uri in uris {
            let subscribed = orchestrator.subscribe(&id, uri).await;
            subscribed.map_err(|error| refused(error, &servers))?;
        }
        let watched = plural(uris.len(), "resource");
        terminal.complain(
            DIM,
            "note",
            &format!("watching {watched} of `{id}`; end with Ctrl-C"),
            None,
        )?;
        let mut returning: Option<Returning<'_>> = None;
        let mut pause = AGAIN_AFTER;
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                returned = next(&mut returning) => {
                    returning = None;
                    match returned {
                        Ok(_) => pause = AGAIN_AFTER,
                        // It may well come back.
                        Err(error) => {
                            pause = AGAIN_AFTER_MAX.min(pause * 2);
                            let message = error.what();
                            terminal.complain(YELLOW, "warning", &message, None)?;
                            returning = Some(Box::pin(again(orchestrator, &id, pause)));
                        }
                    }
                    continue;
                }
            };
            match event {
                Ok(Event::Updated { server, uri }) if server == id => {
                    print(&server, &uri, arguments.json, terminal)?;
                }
                Ok(Event::Gone { server }) if server == id => {
                    let message = format!("the connection to `{id}` is gone, and is made again");
                    terminal.complain(YELLOW, "warning", &message, None)?;
                    returning = Some(Box::pin(again(orchestrator, &id, pause)));
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    let message = format!("{missed} messages came too fast and were missed");
                    terminal.complain(YELLOW, "warning", &message, None)?;
                }
                Err(RecvError::Closed) => return Err(refused(Error::Closed, &servers)),
            }
        }
    })
}

type Returning<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

/// Connects. Whatever is subscribed to is, with the new connection; nothing is asked, for a server that has just begun may be
/// slow to answer, and its news are heard meanwhile.
async fn again(orchestrator: &Orchestrator, id: &str, pause: Duration) -> Result<(), Error> {
    tokio::time::sleep(pause).await;
    orchestrator.info(id).await.map(drop)
}

/// Never, where nothing is awaited.
async fn next<F: Future + Unpin>(awaited: &mut Option<F>) -> F::Output {
    match awaited {
        Some(awaited) => awaited.await,
        None => std::future::pending().await,
    }
}

fn print(server: &str, uri: &str, as_json: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    if as_json {
        let line = serde_json::to_string(&Line { time, server, uri })?;
        terminal.line(&crate::cli::terminal::escape(&line))?;
    } else {
        terminal.line(&format!("{time}\t{uri}"))?;
    }
    Ok(terminal.flush()?)
}
