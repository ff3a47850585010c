//! `mcp login`: a person says in a browser that we may use a server, and a token is kept from then on.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use orchestrator::oauth::{Error, LoggedIn, Logins};
use serde::Serialize;

use super::ad_hoc::{AdHoc, HEADING};
use super::refused::Refused;
use super::servers::{Servers, patience};
use super::{Context, running};
use crate::cli::terminal::{DIM, GREEN};
use crate::cli::{Ended, Failure, Outcome, Terminal};

/// Log in to a server that wants it, in a browser
///
/// The address to open is printed, and opened where there is a browser. The token is kept in a file that only you can read,
/// and renewed by itself where the server allows it. A server that registers nobody needs `clientId` in `mcp.auth` of its
/// entry, and `callbackPort` where the client was registered with `http://localhost:PORT/callback`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp login linear
  workflowlookup mcp login linear --no-browser
  workflowlookup mcp login --http https://mcp.example.com/mcp")]
pub(crate) struct Arguments {
    /// The server's id
    #[arg(value_name = "SERVER", required_unless_present = "http", conflicts_with = "http")]
    server: Option<String>,
    /// Only print the address
    #[arg(long)]
    no_browser: bool,
    /// How long to wait for the browser
    #[arg(long, value_name = "DURATION", value_parser = patience, default_value = "5m")]
    timeout: Duration,
    /// Print what came of it as JSON, and the address on standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Log in to the server at this address; `${NAME}` is filled in from the environment
    #[arg(long, value_name = "URL", help_heading = HEADING)]
    http: Option<String>,
    /// With --http: a header for every request; may be given several times
    #[arg(long, value_name = "'NAME: VALUE'", requires = "http", help_heading = HEADING)]
    header: Vec<String>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a str>,
    scopes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    is_renewable: bool,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let ad_hoc = AdHoc::at(arguments.http.clone(), arguments.header.clone());
    let mut servers = Servers::open(&ad_hoc, None, context.sources)?;
    let entry = servers.entry(arguments.server.as_deref())?;
    let logins = kept()?;
    running::on_this_thread(async {
        let begun = logins.begin(&entry.id, &entry.connect, None).await.map_err(failed)?;
        let at = begun.issuer().map(|issuer| format!(" at `{issuer}`")).unwrap_or_default();
        let invitation = format!("log in{at} to use `{}`, and open this address for it:", entry.id);
        if arguments.json {
            terminal.complain(DIM, "note", &format!("{invitation} {}", begun.url()), None)?;
        } else {
            terminal.line(&invitation)?;
            terminal.line(begun.url())?;
            terminal.flush()?;
        }
        if !arguments.no_browser && has_display() {
            open(begun.url());
        }
        let done = begun.finish(arguments.timeout).await.map_err(failed)?;
        report(&entry.id, &done, arguments, terminal)?;
        Ok(Outcome::Good)
    })
}

fn report(
    server: &str,
    done: &LoggedIn,
    arguments: &Arguments,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let LoggedIn { issuer, scopes, good_for, is_renewable } = done;
    if arguments.json {
        let report = Report {
            server,
            issuer: issuer.as_deref(),
            scopes,
            seconds_left: good_for.map(|time| time.as_secs()),
            is_renewable: *is_renewable,
        };
        return Ok(terminal.json(&report)?);
    }
    let for_what = match scopes.as_slice() {
        [] => String::new(),
        scopes => format!(" for `{}`", scopes.join("`, `")),
    };
    terminal.styled(GREEN, &format!("logged in to `{server}`{for_what}"))?;
    if let (Some(time), false) = (good_for, is_renewable) {
        let time = humantime::format_duration(*time);
        terminal.line(&format!(
            "the login ends in {time}, since the server gives nothing to renew it with"
        ))?;
    }
    Ok(())
}

/// Where logins are.
pub(super) fn kept() -> Result<Logins, Failure> {
    let none = || anyhow!("there is no folder to keep a login in; set `HOME`, or `XDG_STATE_HOME`");
    service::logins::logins().ok_or_else(|| Failure::Fault(none()))
}

/// Whose fault it is that there is no login.
pub(super) fn failed(error: Error) -> Failure {
    match error {
        Error::Unkept(_) | Error::Listen { .. } => Failure::Fault(anyhow!(error)),
        error => Refused::security(error.to_string()).into(),
    }
}

/// Whether a browser that we start could be seen.
fn has_display() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match std::env::consts::OS {
        "macos" => !is_set("SSH_CONNECTION"),
        _ => is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"),
    }
}

/// Opens an address, which is HTTPS or on this machine. No shell sees it. Whether it works or not, it is on the screen.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        // It ends when it likes.
        Ok(mut browser) => drop(std::thread::spawn(move || browser.wait())),
        Err(error) => tracing::debug!("no browser: {error}"),
    }
}
