//! A record of every message both ways, one line each: when, `>` for what came in or `<` for what went
//! out, and the message. Characters that would deceive a reader are escaped as JSON escapes them.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

#[derive(Debug)]
pub struct WireLog {
    /// Absent once it could not be written: the log ends, the server does not.
    file: Option<BufWriter<File>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Direction {
    In,
    Out,
}

impl WireLog {
    /// Goes on at the end of a file that is there already. Messages are nobody else's business.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self { file: Some(BufWriter::new(options.open(path)?)) })
    }

    pub(in crate::server) fn record(&mut self, direction: Direction, message: &[u8]) {
        let mut line = String::new();
        // Writing to a string does not fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut line));
        line.push_str(match direction {
            Direction::In => " > ",
            Direction::Out => " < ",
        });
        // What is no text is shown as well as can be.
        let message = String::from_utf8_lossy(message);
        // A body may have lines; in JSON their ends are white space.
        let message = message.replace(['\n', '\r'], " ");
        line.push_str(&untrusted_text::escape(&message));
        line.push('\n');
        self.attempt(|file| file.write_all(line.as_bytes()));
    }

    pub(in crate::server) fn flush(&mut self) {
        self.attempt(BufWriter::flush);
    }

    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let Some(Err(error)) = self.file.as_mut().map(write) {
            tracing::warn!("messages are no longer recorded: {error}");
            self.file = None;
        }
    }
}
