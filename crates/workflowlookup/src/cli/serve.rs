//! `serve`: the MCP server, over standard input and output, over HTTP, or both.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use orchestrator::wire;
use sandbox::Sandbox;
use store::limits::CONNECTIONS;

mod http_options;
mod limit_option;

use http_options::{Chosen, HttpArguments};

use super::code_options::CodeOptions;
use super::terminal::DIM;
use super::{Ended, Failure, Outcome, SourceOptions, Terminal};
use service::error::Refusal;
use service::server::http::{self, Door, HttpOptions};
use service::server::log::{self, Format, Level};
use service::server::observer::Observer;
use service::server::stdio::{self, Catalogue, WireLog};
use service::server::traces::{Endpoint, Tracer};
use service::server::upstreams::Upstreams;
use service::server::{Host, Toolset};
use service::sessions::Serving;

/// Serve agents over MCP, on standard input and output or over HTTP
///
/// On standard input and output it ends when its input ends, on `shutdown`, and on SIGTERM or SIGINT; over HTTP on
/// these signals, once what is under way is answered. Edits of workflow files are picked up while it runs.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  workflowlookup connect claude-code     how to add it to an agent's configuration
  workflowlookup serve --http 8080       for agents on this machine, at http://127.0.0.1:8080/mcp
  workflowlookup serve --log-level info --log-wire messages.log")]
pub(crate) struct Arguments {
    /// Speak on standard input and output, as it does without `--http`
    #[arg(long)]
    stdio: bool,
    /// Which workflow tools agents see
    #[arg(long, value_name = "TOOLS", value_enum, default_value_t)]
    tools: Toolset,
    /// How much to say on standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: Level,
    /// In which form to say it
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: Format,
    /// Append every message, both ways, to this file
    #[arg(long, value_name = "FILE")]
    log_wire: Option<PathBuf>,
    /// Append every message to and from other servers to this file, as JSON lines without secrets
    #[arg(long, value_name = "FILE")]
    log_upstreams: Option<PathBuf>,
    /// How many connections to a PostgreSQL there are at most; otherwise 16
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000))]
    store_connections: Option<u16>,
    /// Send a span of every call to this collector, by OTLP over HTTP, as `http://127.0.0.1:4318`
    #[arg(long, value_name = "URL")]
    otlp: Option<Endpoint>,
    #[command(flatten)]
    http: HttpArguments,
    #[command(flatten)]
    code: CodeOptions,
}

impl Arguments {
    pub(crate) fn with_tools(tools: Toolset) -> Self {
        Self { tools, ..Self::default() }
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let unwritable = |option: &str, path: &Path, error: io::Error| Refusal::InvalidParams {
        details: format!("`{}` cannot be written: {error}", path.display()),
        hint: Some(format!("name a file for {option} that may be created or appended to")),
    };
    let open_log = || {
        let path = arguments.log_wire.as_deref();
        let log = path
            .map(|path| WireLog::open(path).map_err(|error| unwritable("--log-wire", path, error)));
        log.transpose()
    };
    let wire_log = open_log()?;
    let upstream_log = arguments.log_upstreams.as_deref().map(|path| {
        wire::WireLog::open(path).map_err(|error| unwritable("--log-upstreams", path, error))
    });
    let upstream_log = upstream_log.transpose()?;
    log::begin(arguments.log_level, arguments.log_format);
    let connections = arguments.store_connections.map_or(CONNECTIONS, usize::from);
    let serving = Serving { connections, gates: arguments.http.gates };
    let app = sources.serving(serving);
    app.sessions().audit().check().map_err(|unusable| Refusal::InvalidParams {
        details: unusable.to_string(),
        hint: Some(
            "name a file for --audit-log that may be created or appended to, or `-`".to_owned(),
        ),
    })?;
    let chosen = arguments.http.choose(&app, sources.unloaded())?;
    let tracer = arguments.otlp.clone().map(Tracer::start).transpose()?;
    let observer = Observer::new(tracer, chosen.is_some());
    let upstreams =
        Upstreams::new(sources.registry(), upstream_log, arguments.code.code(Sandbox::ready));
    let host = Arc::new(Host::new(app, observer, upstreams, arguments.tools));
    let served = match chosen {
        Some(chosen) => over_http(arguments, &host, chosen, wire_log, open_log, terminal),
        None => {
            hint_at_terminal(terminal)?;
            stdio::serve(&host, Catalogue::Ours, wire_log).map_err(Failure::from)
        }
    };
    host.finish();
    served.map(|()| Outcome::Good)
}

fn over_http(
    arguments: &Arguments,
    host: &Arc<Host>,
    chosen: Chosen,
    wire_log: Option<WireLog>,
    open_log: impl Fn() -> Result<Option<WireLog>, Refusal>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let needs = matches!(chosen.door, Door::Asks(_));
    let options = HttpOptions {
        address: chosen.address,
        allowed: chosen.allowed,
        door: chosen.door,
        metadata_url: chosen.metadata_url,
        documents: chosen.documents,
        limits: chosen.limits,
    };
    let serving = http::begin(host, options, wire_log)?;
    // With standard input, it listens to signals itself.
    let signals = if arguments.stdio { None } else { Some(serving.signals()?) };
    let message = format!("listening on http://{}/mcp", serving.address);
    terminal.complain(DIM, "workflowlookup", &message, None)?;
    if needs {
        let message = "every request needs a token: `Authorization: Bearer TOKEN`";
        terminal.complain(DIM, "workflowlookup", message, None)?;
    }
    match signals {
        Some(signals) => serving.until(signals),
        None => {
            let served = stdio::serve(host, Catalogue::Loaded, open_log()?);
            serving.end();
            served?;
        }
    }
    Ok(())
}

fn hint_at_terminal(terminal: &mut Terminal) -> io::Result<()> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    let message = "this is an MCP server; an agent starts it and speaks to it on standard input";
    let hint = "`workflowlookup connect CLIENT` prints an agent's configuration; end with Ctrl-D";
    terminal.complain(DIM, "workflowlookup", message, Some(hint))
}
