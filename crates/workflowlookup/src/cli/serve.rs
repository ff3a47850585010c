//! `serve`: the MCP server, over standard input and output, over HTTP, or both.

use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use transport::Allowed;

use super::terminal::DIM;
use super::{Ended, Outcome, SourceOptions, Terminal};
use crate::error::Refusal;
use crate::server::Host;
use crate::server::http::{self, HttpOptions};
use crate::server::log::{self, Format, Level};
use crate::server::stdio::{self, Catalogue, WireLog};

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
    /// Speak over HTTP: a port of this machine, or an address and a port
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    http: Option<SocketAddr>,
    /// A name that clients may call us by over HTTP, besides addresses and `localhost`; may be given several times
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// An origin whose pages may call us over HTTP, as `https://example.com`; may be given several times
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// Let anybody in who can reach the address
    #[arg(long, requires = "http")]
    insecure: bool,
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
    let open_log = || {
        let log = arguments.log_wire.as_ref().map(|path| {
            WireLog::open(path).map_err(|error| Refusal::InvalidParams {
                details: format!("`{}` cannot be written: {error}", path.display()),
                hint: Some(
                    "name a file for --log-wire that may be created or appended to".to_owned(),
                ),
            })
        });
        log.transpose()
    };
    let wire_log = open_log()?;
    log::begin(arguments.log_level, arguments.log_format);
    let host = Arc::new(Host::new(sources.unloaded()));
    let Some(address) = arguments.http else {
        hint_at_terminal(terminal)?;
        stdio::serve(&host, Catalogue::Ours, wire_log)?;
        return Ok(Outcome::Good);
    };
    if !address.ip().is_loopback() && !arguments.insecure {
        return Err(open_to_all(address).into());
    }
    let allowed =
        Allowed { hosts: arguments.allow_host.clone(), origins: arguments.allow_origin.clone() };
    let serving = http::begin(&host, HttpOptions { address, allowed }, wire_log)?;
    let message = format!("listening on http://{}/mcp", serving.address);
    terminal.complain(DIM, "workflowlookup", &message, None)?;
    if arguments.stdio {
        let served = stdio::serve(&host, Catalogue::Loaded, open_log()?);
        serving.end();
        served?;
    } else {
        serving.until_signal()?;
    }
    Ok(Outcome::Good)
}

fn hint_at_terminal(terminal: &mut Terminal) -> io::Result<()> {
    if !io::stdin().is_terminal() {
        return Ok(());
    }
    let message = "this is an MCP server; an agent starts it and speaks to it on standard input";
    let hint = "`workflowlookup connect CLIENT` prints an agent's configuration; end with Ctrl-D";
    terminal.complain(DIM, "workflowlookup", message, Some(hint))
}

/// A port alone is one of this machine's, for nobody else.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let mut addresses = text.to_socket_addrs().map_err(|error| {
        format!("neither a port, as in `8080`, nor an address and a port, as in `127.0.0.1:8080`: {error}")
    })?;
    addresses.next().ok_or_else(|| "this name has no address".to_owned())
}

fn open_to_all(address: SocketAddr) -> Refusal {
    Refusal::InvalidParams {
        details: format!(
            "`{address}` can be reached from other machines, and nobody would have to say who they are"
        ),
        hint: Some(
            "make a token with `workflowlookup token new NAME`, or say that it is meant with `--insecure`"
                .to_owned(),
        ),
    }
}
