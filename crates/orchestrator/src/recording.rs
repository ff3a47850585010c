//! What was written down of exchanges with a server, to be served again by a server that is none. The file is the one that
//! `wire` writes: a line for each message, in order. Nothing here reads or writes anything but that file.

mod exchanges;
mod play;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use exchanges::{Exchange, Gathering};
pub use play::Player;

/// The longest line that is read.
pub const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The largest file that is read.
pub const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// All requests that were made of one server, and what it said.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    exchanges: Vec<Exchange>,
}

/// Why a file cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error(
        "it is larger than {FILE_BYTES_MAX} bytes, or has a line of more than {LINE_BYTES_MAX}"
    )]
    TooLarge,
    #[error("line {0} is none of a recording, which has `server`, `way` and `message`")]
    Line(usize),
    #[error("there are several servers in it, `{}`; choose one", .0.join("`, `"))]
    Several(Vec<String>),
    #[error("there is no server `{0}` in it")]
    NoServer(String),
    #[error("there are no requests in it")]
    Empty,
}

/// A line of the file.
#[derive(Debug, Deserialize)]
struct Line {
    server: String,
    #[serde(default)]
    connection: u64,
    way: Way,
    /// Nothing where what came was no JSON.
    message: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Out,
    In,
    Stderr,
}

impl Recording {
    /// Reads a file. Where there are several servers in it, one must be chosen.
    pub fn read(path: &Path, server: Option<&str>) -> Result<Self, Unreadable> {
        let file = File::open(path)?;
        if file.metadata()?.len() > FILE_BYTES_MAX {
            return Err(Unreadable::TooLarge);
        }
        let mut reader = BufReader::new(file);
        let mut servers = BTreeSet::new();
        let mut gathering = Gathering::default();
        let mut text = Vec::new();
        for number in 1.. {
            text.clear();
            (&mut reader).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut text)?;
            if text.is_empty() {
                break;
            }
            if text.len() as u64 > LINE_BYTES_MAX {
                return Err(Unreadable::TooLarge);
            }
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line: Line = serde_json::from_slice(&text).map_err(|_| Unreadable::Line(number))?;
            if server.is_none_or(|server| server == line.server)
                && let Some(message) = line.message
            {
                // A batch is several messages.
                let messages = match message {
                    Value::Array(messages) => messages,
                    one => vec![one],
                };
                let place = (line.server.clone(), line.connection);
                messages.into_iter().for_each(|message| gathering.add(&place, line.way, message));
            }
            servers.insert(line.server);
        }
        if let Some(server) = server.filter(|server| !servers.contains(*server)) {
            return Err(Unreadable::NoServer(server.to_owned()));
        }
        if server.is_none() && servers.len() > 1 {
            return Err(Unreadable::Several(servers.into_iter().collect()));
        }
        let exchanges = gathering.done();
        if exchanges.is_empty() {
            return Err(Unreadable::Empty);
        }
        Ok(Self { exchanges })
    }
}
