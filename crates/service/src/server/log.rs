//! The log, on standard error, and what a panic leaves in it.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Level {
    Off,
    Error,
    #[default]
    Warn,
    Info,
    Debug,
}

/// For people, or for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// Standard error, as long as somebody reads it: a log that nobody takes is dropped and keeps nobody waiting.
struct Stderr;

/// What a pipe with room takes without waiting. No line is longer.
const LINE_BYTES_MAX: usize = 4096;

impl Write for Stderr {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        let line = &*without_deception(written);
        let stderr = rustix::stdio::stderr();
        let mut descriptors = [PollFd::new(&stderr, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_room = retry_on_intr(|| poll(&mut descriptors, Some(&now)))? > 0;
        if has_room && line.len() <= LINE_BYTES_MAX {
            rustix::io::write(stderr, line)?;
        } else if has_room {
            rustix::io::write(stderr, &line[..LINE_BYTES_MAX - 1])?;
            rustix::io::write(stderr, b"\n")?;
        }
        Ok(written.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line without what would deceive its reader. The subscriber escapes control characters in what is logged; those that are
/// left are its own, for colors.
fn without_deception(line: &[u8]) -> Cow<'_, [u8]> {
    if line.is_ascii() {
        return Cow::Borrowed(line);
    }
    let text = String::from_utf8_lossy(line);
    let parts: Vec<_> = text.split(ESCAPE).map(untrusted_text::escape).collect();
    Cow::Owned(parts.join(ESCAPE).into_bytes())
}

/// Begins a color.
const ESCAPE: &str = "\u{1b}";

/// Our crates. What libraries log is for those who write them: they show what we hide, messages, codes and headers as they
/// are, and complain about what we tell better.
const OURS: &[&str] = &[
    "catalog",
    "engine",
    "mcp",
    "orchestrator",
    "registry",
    "process_guard",
    "sandbox",
    "service",
    "store",
    "transport",
    "workflow",
    "workflowlookup",
];

/// From here on, everything that is logged goes to standard error.
pub fn begin(level: Level, format: Format) {
    let filter = match level {
        Level::Off => LevelFilter::OFF,
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    };
    let filter = Targets::new().with_targets(OURS.iter().map(|name| (*name, filter)));
    let builder = tracing_subscriber::fmt()
        .with_writer(|| Stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(LevelFilter::TRACE);
    match format {
        Format::Text => builder.finish().with(filter).init(),
        Format::Json => builder.json().flatten_event(true).finish().with(filter).init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic: {message}");
    }));
}

#[cfg(test)]
mod tests {
    use super::{OURS, without_deception};

    #[test]
    fn bidirectional_controls_are_escaped_and_colors_stay() {
        let line = "\u{1b}[33m WARN\u{1b}[0m `a\u{202e}b\u{9b}` is odd: é\n";
        assert_eq!(
            without_deception(line.as_bytes()),
            "\u{1b}[33m WARN\u{1b}[0m `a\\u202eb\\u009b` is odd: é\n".as_bytes()
        );
    }

    #[test]
    fn all_our_crates_that_log_are_heard() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let logs = |folder: &std::path::Path| {
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            manifest.lines().any(|line| line.starts_with("tracing"))
        };
        for folder in std::fs::read_dir(crates).unwrap() {
            let folder = folder.unwrap().path();
            let name = folder.file_name().unwrap().to_str().unwrap();
            assert!(!logs(&folder) || OURS.contains(&name), "{name} is not in the list");
        }
    }
}
