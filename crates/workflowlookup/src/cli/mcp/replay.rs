//! `mcp replay`: a recording as a server, over standard input and output. It knows what was recorded and nothing else.

use std::io::{self, BufRead as _, BufWriter, Read as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use orchestrator::recording::{LINE_BYTES_MAX, Player, Recording, Unreadable};

use crate::cli::{Ended, Outcome};
use service::error::Refusal;

/// Serve a recording, as if it were the server
///
/// Every request that was recorded gets its recorded answer, with everything that the server said before; ids, progress
/// tokens and `_meta` need not be the same. Where the same was asked several times, the answers come in their order, and the
/// last one for ever. Anything else is refused, with what was recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup mcp --log-wire out.jsonl call everything.echo message=hello
  workflowlookup mcp call --stdio 'workflowlookup mcp replay out.jsonl' echo message=hello")]
pub(crate) struct Arguments {
    /// The file, as `--log-wire` and `mcp record` write it
    file: PathBuf,
    /// Whose messages are played, where the file has those of several servers
    #[arg(long, value_name = "ID")]
    server: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Ended {
    let recording = Recording::read(&arguments.file, arguments.server.as_deref());
    let recording = recording.map_err(|why| Refusal::InvalidParams {
        details: format!("`{}` cannot be played: {why}", arguments.file.display()),
        hint: Some(match why {
            Unreadable::Several(_) | Unreadable::NoServer(_) => {
                "choose one with `--server ID`".to_owned()
            }
            _ => "`workflowlookup mcp record FILE SERVER` makes one".to_owned(),
        }),
    })?;
    let mut player = Player::new(recording);
    let (mut input, mut output) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(Outcome::Good);
        }
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            continue;
        }
        for message in player.hear(&line) {
            serde_json::to_writer(&mut output, &message)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
    }
}
