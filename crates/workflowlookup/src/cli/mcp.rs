//! `mcp …`: other MCP servers, one file per verb. What is asked of a server goes by `mcp/running.rs` to the orchestrator;
//! no workflow is loaded and no session opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use orchestrator::wire::WireLog;
use orchestrator::{Awaited, Credentials, Error};
use registry::entry::Connect;

use super::{Ended, Failure, SourceOptions, Terminal};
use service::error::Refusal;
use service::server::log::{self, Format, Level};

mod ad_hoc;
mod call;
mod content;
mod describe;
mod exec;
mod files;
mod import;
mod json_text;
mod list;
mod login;
mod logout;
mod ping;
mod read;
mod record;
mod refused;
mod replay;
mod resources;
mod running;
mod servers;
mod subscribe;
mod tools;

pub(crate) use refused::Refused;
use servers::Servers;

/// Use other MCP servers: list them, call their tools, read their resources
///
/// They are named in a registry, `mcp.registry.json`, or on the command line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp import --write
  workflowlookup mcp list
  workflowlookup mcp list everything
  workflowlookup mcp call everything.echo message=hello
  workflowlookup mcp call --stdio 'uvx mcp-server-time' get_current_time timezone=UTC")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    log: LogOptions,
}

#[derive(Debug, Args)]
struct LogOptions {
    /// How much to say on standard error; `debug` shows each message to and from a server
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "error", global = true)]
    log_level: Level,
    /// Append each message to and from a server to this file, as JSON lines without secrets; `mcp replay` plays it
    #[arg(long, value_name = "FILE", global = true)]
    log_wire: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::Arguments),
    Describe(describe::Arguments),
    Call(call::Arguments),
    Exec(exec::Arguments),
    Ping(ping::Arguments),
    Login(login::Arguments),
    Logout(logout::Arguments),
    Resources(resources::Arguments),
    Read(read::Arguments),
    Subscribe(subscribe::Arguments),
    Record(record::Arguments),
    Replay(replay::Arguments),
    Import(import::Arguments),
}

/// What all verbs need.
struct Context<'a> {
    sources: &'a SourceOptions,
    wire: Option<WireLog>,
}

impl Arguments {
    pub(crate) fn wants_json(&self) -> bool {
        match &self.verb {
            Verb::List(arguments) => arguments.json,
            Verb::Describe(arguments) => arguments.json,
            Verb::Call(arguments) => arguments.json,
            Verb::Exec(arguments) => arguments.json,
            Verb::Ping(arguments) => arguments.json,
            Verb::Login(arguments) => arguments.json,
            Verb::Logout(arguments) => arguments.json,
            Verb::Resources(arguments) => arguments.json,
            Verb::Read(arguments) => arguments.json,
            Verb::Import(arguments) => arguments.json,
            Verb::Subscribe(arguments) => arguments.json,
            Verb::Record(_) | Verb::Replay(_) => false,
        }
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let LogOptions { log_level, log_wire } = &arguments.log;
    let wire = log_wire.as_deref().map(open_log).transpose()?;
    log::begin(*log_level, Format::Text);
    let context = Context { sources, wire };
    match &arguments.verb {
        Verb::List(arguments) => list::run(arguments, &context, terminal),
        Verb::Describe(arguments) => describe::run(arguments, &context, terminal),
        Verb::Call(arguments) => call::run(arguments, &context, terminal),
        Verb::Exec(arguments) => exec::run(arguments, &context, terminal),
        Verb::Ping(arguments) => ping::run(arguments, &context, terminal),
        Verb::Login(arguments) => login::run(arguments, &context, terminal),
        Verb::Logout(arguments) => logout::run(arguments, &context, terminal),
        Verb::Resources(arguments) => resources::run(arguments, &context, terminal),
        Verb::Read(arguments) => read::run(arguments, &context, terminal),
        Verb::Subscribe(arguments) => subscribe::run(arguments, &context, terminal),
        Verb::Record(arguments) => record::run(arguments, &context, terminal),
        Verb::Replay(arguments) => replay::run(arguments),
        Verb::Import(arguments) => import::run(arguments, sources, terminal),
    }
}

fn open_log(path: &Path) -> Result<WireLog, Refusal> {
    WireLog::open(path).map_err(|error| Refusal::InvalidParams {
        details: format!("`{}` cannot be written: {error}", path.display()),
        hint: Some("name a file that may be created or appended to".to_owned()),
    })
}

/// An error of the orchestrator's, with what to try on a command line.
fn refused(error: Error, servers: &Servers) -> Failure {
    explained(error, servers).into()
}

fn explained(error: Error, servers: &Servers) -> Refused {
    let is_ad_hoc = servers.is_ad_hoc();
    let hint = match &error {
        Error::Timeout { server, what, after } => Some(more_time(servers, server, *what, *after)),
        Error::Connect { .. } => servers.unshelled().map(str::to_owned),
        Error::Unauthorized { sent: Credentials::None | Credentials::Login, .. } if is_ad_hoc => {
            Some(servers.login_to_paste())
        }
        Error::Unauthorized { .. } if is_ad_hoc => {
            Some("see that the token is right and still good, or use another".to_owned())
        }
        Error::NoTool(missing) if missing.nearest.is_empty() && !servers.is_ad_hoc() => {
            Some(format!("`workflowlookup mcp list {}` shows its tools", missing.server))
        }
        _ => None,
    };
    let masks = servers.registry.masks().clone();
    Refused { hint, masks, is_ad_hoc, ..Refused::from(error) }
}

/// Programs that fetch what they start, where they do not have it yet.
const FETCHING: &[&str] = &["npx", "bunx", "pnpx", "uvx", "uv", "pipx", "docker", "podman", "deno"];

/// How a server gets longer than it had.
fn more_time(servers: &Servers, server: &str, what: Awaited, after: Duration) -> String {
    let program = servers.registry.get(server).and_then(|entry| match &entry.connect {
        Connect::Stdio { command, .. } => Path::new(command).file_name()?.to_str(),
        Connect::Http { .. } => None,
    });
    let longer = match after.as_secs() {
        0..30 => "60s",
        30..90 => "2m",
        _ => "10m",
    };
    match program.filter(|program| what == Awaited::Connection && FETCHING.contains(program)) {
        Some(program) => {
            let longer = if longer == "60s" { "2m" } else { longer };
            format!(
                "`{program}` may have to fetch what it starts, which takes long the first time: `--timeout {longer}`"
            )
        }
        None => format!("`--timeout {longer}` gives it longer"),
    }
}
