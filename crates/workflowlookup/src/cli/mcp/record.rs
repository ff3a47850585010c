//! `mcp record`: sits between a client and a server, hands on every byte, and writes down every message.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use orchestrator::wire::Tap;
use process_guard::{Child, Ended as ChildEnded, GuardProgram};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use super::ad_hoc::{AdHoc, HEADING};
use super::refused::Refused;
use super::running::{Signals, die_of, on_this_thread};
use super::servers::Servers;
use super::{Context, open_log};
use crate::cli::{Ended, Failure, Outcome, Terminal};

/// A message is written down in pieces of this size.
const PIECE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long the last words of a server may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Write down what a client and a server say to each other
///
/// A client starts this in the server's place. Every byte is handed on as it is; every message is appended to the file, as a
/// JSON line without secrets. `mcp replay` plays it. What our own commands say is recorded with `--log-wire`, over HTTP
/// too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp record out.jsonl everything
  workflowlookup mcp record out.jsonl --stdio 'npx -y @modelcontextprotocol/server-everything'")]
pub(crate) struct Arguments {
    /// The file; messages are appended
    file: PathBuf,
    /// The server's id; not with --stdio
    #[arg(value_name = "SERVER", required_unless_present = "stdio")]
    server: Option<String>,
    /// Start this command. It is split into words as a shell does, and no shell is run; `${NAME}` is filled in from the
    /// environment
    #[arg(long, value_name = "COMMAND", conflicts_with = "server", help_heading = HEADING)]
    stdio: Option<String>,
    /// With --stdio: a variable for the command; may be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "stdio", help_heading = HEADING)]
    env: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, context: &Context<'_>, terminal: &mut Terminal) -> Ended {
    let ad_hoc = AdHoc::started(arguments.stdio.clone(), arguments.env.clone());
    let mut servers = Servers::open(&ad_hoc, None, context.sources)?;
    let entry = servers.entry(arguments.server.as_deref())?;
    let Some(spawn) = entry.connect.to_spawn() else {
        let hint = "`--log-wire FILE` with `mcp call` and the others records what goes over HTTP";
        return Err(Refused::invalid(
            "only a server that is started as a command can be recorded so",
            hint,
        )
        .into());
    };
    let tap =
        Tap::new(Some(open_log(&arguments.file)?), Arc::clone(servers.registry.masks()), &entry.id);
    on_this_thread(async {
        let mut signals = Signals::new()?;
        let child = process_guard::spawn(&spawn, &GuardProgram::default()).await;
        let child = child.map_err(|error| {
            Refused::invalid(error.to_string(), "see whether the command is right")
        })?;
        let ended = tokio::select! {
            biased;
            ended = relay(child, &tap) => ended?,
            // Whoever drops a child ends it.
            signal = signals.next() => match die_of(signal)? {},
        };
        match ended {
            ChildEnded::ByItself(status) if !status.success() => {
                let message = format!("`{}` ended with {}", entry.id, process_guard::shown(status));
                terminal.complain(crate::cli::FAILED, "error", &message, None)?;
                Ok(Outcome::Bad)
            }
            ChildEnded::ByItself(_) | ChildEnded::Told(_) | ChildEnded::NotYet => Ok(Outcome::Good),
        }
    })
}

/// Hands everything on until the server has no more to say.
async fn relay(child: Child, tap: &Tap) -> Result<ChildEnded, Failure> {
    let Child { stdin, stdout, stderr, guarded } = child;
    // A server that does not listen any more ends as a rule, and that is seen by what it says. When the client has said all,
    // the server's input is closed.
    let asked = hand_on(tokio::io::stdin(), stdin, |line| tap.sent(line));
    let complained = hand_on(stderr, tokio::io::stderr(), |line| tap.complained(line));
    let answered = hand_on(stdout, tokio::io::stdout(), |line| tap.received(line));
    let mut complained = std::pin::pin!(complained);
    let mut complained_all = None;
    let answered = {
        let (mut asked, mut answered) = (std::pin::pin!(asked), std::pin::pin!(answered));
        let mut asked_all = None;
        loop {
            tokio::select! {
                answered = &mut answered => break answered,
                all = &mut asked, if asked_all.is_none() => asked_all = Some(all),
                all = &mut complained, if complained_all.is_none() => complained_all = Some(all),
            }
        }
    };
    let ended = guarded.end().await;
    if complained_all.is_none() {
        let _ = timeout(LAST_WORDS, complained).await;
    }
    answered.context("the client does not listen any more")?;
    Ok(ended)
}

/// Hands on bytes as they come, and shows each line when it is whole.
async fn hand_on(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut look: impl FnMut(&[u8]),
) -> std::io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        let bytes = from.fill_buf().await?;
        let count = bytes.len();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || line.len() >= PIECE_BYTES_MAX {
                look(&line);
                line.clear();
            }
        }
        if count == 0 {
            if !line.is_empty() {
                look(&line);
            }
            return to.shutdown().await;
        }
        to.write_all(bytes).await?;
        to.flush().await?;
        from.consume(count);
    }
}
