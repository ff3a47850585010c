//! `mcp ping`: whether servers answer, and how fast. All at the same time; a line for each as soon as it is known.

use std::time::{Duration, Instant};

use clap::Args;
use orchestrator::upstream::info::Info;
use orchestrator::{Error, Orchestrator};
use serde::Serialize;
use tokio::task::{JoinSet, LocalSet};

use super::refused::{Object, Refused};
use super::servers::{HOW_TO_ADD, Reaching, Servers};
use super::tools::{millis, time, who};
use super::{Context, explained, running};
use crate::cli::terminal::{GREEN, RED, YELLOW};
use crate::cli::{Ended, Failure, Outcome, Terminal};
use service::words::one_line;

/// See whether servers answer, and how fast
///
/// All servers of the registry, or those that are named. The exit status is 1 where one does not answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp ping
  workflowlookup mcp ping everything github --timeout 30s
  workflowlookup mcp ping --http http://127.0.0.1:8080/mcp")]
pub(crate) struct Arguments {
    /// Only these, by their ids
    #[arg(value_name = "SERVER", conflicts_with_all = ["stdio", "http"])]
    servers: Vec<String>,
    /// Print as JSON, once all are known
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    reaching: Reaching,
}

/// What came of one.
struct Pinged {
    id: String,
    result: Result<(Info, Duration, Duration), Refused>,
}

#[derive(Debug, Serialize)]
struct Listing<'a> {
    servers: Vec<Line<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    id: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    connected_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<&'a Info>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Object>,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let mut servers = arguments.reaching.open(context)?;
    let ids = chosen(arguments, &mut servers)?;
    let unusable = match arguments.servers.is_empty() {
        true => servers.all_unusable(),
        false => Vec::new(),
    };
    if ids.is_empty() && unusable.is_empty() && !arguments.json {
        terminal.complain(YELLOW, "warning", "no registry names a server", Some(HOW_TO_ADD))?;
        return Ok(Outcome::Good);
    }
    let all = ids.iter().chain(unusable.iter().map(|(id, _)| id));
    let width = all.map(|id| id.chars().count()).max().unwrap_or(0);
    running::with(&servers, context.wire.clone(), async |orchestrator| {
        let asking = async {
            let mut asked = JoinSet::new();
            for id in &ids {
                asked.spawn_local(ping(orchestrator.clone(), id.clone()));
            }
            let mut all = Vec::new();
            // Nothing need be asked to know about these.
            for (id, refused) in unusable {
                let pinged = Pinged { id, result: Err(refused) };
                if !arguments.json {
                    print(&pinged, width, terminal)?;
                }
                all.push(pinged);
            }
            while let Some(pinged) = asked.join_next().await {
                let (id, result) = pinged.map_err(anyhow::Error::new)?;
                let result = result.map_err(|error| explained(error, &servers));
                let pinged = Pinged { id, result };
                if !arguments.json {
                    print(&pinged, width, terminal)?;
                }
                all.push(pinged);
            }
            Ok::<_, Failure>(all)
        };
        let mut all = LocalSet::new().run_until(asking).await?;
        all.sort_by_key(|pinged| ids.iter().position(|id| *id == pinged.id).unwrap_or(usize::MAX));
        let is_good = all.iter().all(|pinged| pinged.result.is_ok());
        if arguments.json {
            terminal.json(&Listing { servers: all.iter().map(Line::of).collect() })?;
        }
        Ok(if is_good { Outcome::Good } else { Outcome::Bad })
    })
}

/// The ids to ask, each once.
fn chosen(arguments: &Arguments, servers: &mut Servers) -> Result<Vec<String>, Failure> {
    if arguments.servers.is_empty() || servers.is_ad_hoc() {
        return Ok(servers.registry.entries.iter().map(|entry| entry.id.clone()).collect());
    }
    let mut ids = Vec::new();
    for id in &arguments.servers {
        let entry = servers.entry(Some(id))?;
        if !ids.contains(&entry.id) {
            ids.push(entry.id.clone());
        }
    }
    Ok(ids)
}

type Asked = (String, Result<(Info, Duration, Duration), Error>);

async fn ping(orchestrator: Orchestrator, id: String) -> Asked {
    let result = async {
        let began = Instant::now();
        let info = orchestrator.info(&id).await?;
        let connected = began.elapsed();
        let answered = orchestrator.ping(&id).await?;
        Ok((info, connected, answered))
    };
    let result = result.await;
    (id, result)
}

fn print(pinged: &Pinged, width: usize, terminal: &mut Terminal) -> Result<(), Failure> {
    let (style, word, text) = match &pinged.result {
        Ok((info, connected, answered)) => {
            let times =
                format!("connected in {}, answered in {}", time(*connected), time(*answered));
            (GREEN, "ok", format!("{times} ({})", who(info)))
        }
        Err(refused) => {
            let hint = refused.hint_text().map(|hint| format!("; {hint}")).unwrap_or_default();
            (RED, "failed", format!("{}{hint}", refused.message()))
        }
    };
    if terminal.is_terminal() {
        let id = format!("{:width$}  ", pinged.id);
        let plain = anstyle::Style::new();
        terminal.pieces(&[
            (plain, &id),
            (style, &format!("{word:6}")),
            (plain, &format!("  {text}")),
        ])?;
    } else {
        let text = one_line(&text, usize::MAX);
        terminal.line(&[&pinged.id, word, &text].join("\t"))?;
    }
    // The others may take long.
    Ok(terminal.flush()?)
}

impl<'a> Line<'a> {
    fn of(pinged: &'a Pinged) -> Self {
        let good = pinged.result.as_ref().ok();
        Self {
            id: &pinged.id,
            ok: good.is_some(),
            connected_ms: good.map(|(_, connected, _)| millis(*connected)),
            answered_ms: good.map(|(_, _, answered)| millis(*answered)),
            info: good.map(|(info, ..)| info),
            error: pinged.result.as_ref().err().map(Refused::to_object),
        }
    }
}
