//! The audit log: who decided what, what was refused to whom, who was let in on a session, and which tokens were made.
//! One JSON object a line, each appended by one write, for the owner's eyes only. It never holds a token or an output, and
//! where it cannot be written nothing else fails.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use engine::{Channel, Decision};
use parking_lot::Mutex;
use serde::Serialize;
use untrusted_text::escape;

use crate::access::Right;
use crate::sessions::{now, state_folder};

/// Where the log is, as an option would say it.
const VARIABLE: &str = "WORKFLOWLOOKUP_AUDIT_LOG";
/// How many lines about strangers are written in a second, and how many about what was refused to somebody. The others are
/// counted.
const STRANGERS_MAX: u32 = 10;
const REFUSALS_MAX: u32 = 100;
/// How much of what somebody else wrote is kept.
const TEXT_BYTES_MAX: usize = 500;

#[derive(Debug)]
pub struct Audit {
    place: Place,
    /// Somebody has said where.
    is_named: bool,
    has_warned: AtomicBool,
    bounded: Mutex<Bounded>,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    StandardError,
    /// The platform has no folder for us.
    Nowhere,
}

/// What was written in this second of what anybody could have written.
#[derive(Debug, Default)]
struct Bounded {
    second: u64,
    strangers: u32,
    refusals: u32,
    left_out: u64,
}

/// What is noted. What is absent is left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line<'a> {
    pub event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Right>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// The tool, the method or the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<&'a str>,
    /// An upstream, and the tool of it that was to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
    /// Of the log: what was decided about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ruling: Option<&'static str>,
    /// Whom a session is shared with, or is not any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<&'a str>,
    /// The name of a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
    /// What a token is good for that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_right: Option<Right>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}

/// A log that was asked for, and cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the audit log `{}` cannot be written: {error}", path.display())]
pub struct Unusable {
    path: PathBuf,
    error: io::Error,
}

impl Audit {
    /// Where the option says, or the environment, or in the state folder. `-` is standard error.
    pub fn choose(option: Option<&Path>) -> Self {
        let named = option.map(Path::to_owned).or_else(|| {
            std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
        });
        let is_named = named.is_some();
        let place = match named.or_else(|| state_folder().map(|folder| folder.join("audit.jsonl")))
        {
            Some(path) if path == Path::new("-") => Place::StandardError,
            Some(path) => Place::File(path),
            None => Place::Nowhere,
        };
        Self { place, is_named, has_warned: AtomicBool::new(false), bounded: Mutex::default() }
    }

    /// Whether it can be written where somebody wants it: better known before anything has happened.
    pub fn check(&self) -> Result<(), Unusable> {
        match &self.place {
            Place::File(path) if self.is_named => {
                append_to(path, "").map_err(|error| Unusable { path: path.clone(), error })
            }
            _ => Ok(()),
        }
    }

    pub fn write(&self, line: &Line<'_>) {
        self.say_what_was_left_out(now() / 1000);
        self.append(line);
    }

    /// Something was refused. Nobody can fill the disk: so many in a second are noted, and the others counted.
    pub(crate) fn refused(&self, line: &Line<'_>) {
        let has_room = self.has_room(|bounded| (&mut bounded.refusals, REFUSALS_MAX));
        if has_room {
            let (server, tool) = (line.server.map(cut), line.tool.map(cut));
            let wanted = line.wanted.map(cut);
            self.append(&Line { event: "refused", wanted, server, tool, ..*line });
        }
    }

    fn has_room(&self, budget: impl FnOnce(&mut Bounded) -> (&mut u32, u32)) -> bool {
        let second = now() / 1000;
        self.say_what_was_left_out(second);
        let mut bounded = self.bounded.lock();
        if bounded.second != second {
            *bounded = Bounded { second, ..Bounded::default() };
        }
        let (written, max) = budget(&mut bounded);
        let has_room = *written < max;
        *written += u32::from(has_room);
        bounded.left_out += u64::from(!has_room);
        has_room
    }

    /// Somebody has decided.
    pub(crate) fn decided(
        &self,
        decision: &Decision,
        right: Option<Right>,
        about: &Line<'_>,
        is_approved: bool,
    ) {
        self.write(&Line {
            event: "decided",
            principal: Some(&decision.who),
            right,
            channel: Some(decision.channel),
            ruling: Some(if is_approved { "approved" } else { "rejected" }),
            session: about.session,
            step: about.step,
            version: about.version,
            ..Line::default()
        });
    }

    /// Somebody was not let in.
    pub(crate) fn turned_away(&self, wanted: &str, status: u16, reason: &str) {
        if !self.has_room(|bounded| (&mut bounded.strangers, STRANGERS_MAX)) {
            return;
        }
        let (wanted, reason) = (Some(cut(wanted)), Some(reason));
        let status = Some(status);
        self.append(&Line { event: "turnedAway", wanted, status, reason, ..Line::default() });
    }

    fn say_what_was_left_out(&self, second: u64) {
        let mut bounded = self.bounded.lock();
        if bounded.left_out == 0 || bounded.second == second {
            return;
        }
        let left_out = Some(std::mem::take(&mut bounded.left_out));
        drop(bounded);
        self.append(&Line { event: "leftOut", left_out, ..Line::default() });
    }

    fn append(&self, line: &Line<'_>) {
        #[derive(Serialize)]
        struct Timed<'a> {
            time: String,
            #[serde(flatten)]
            line: &'a Line<'a>,
        }
        let time = UNIX_EPOCH + Duration::from_millis(now());
        let time = humantime::format_rfc3339_millis(time).to_string();
        let Ok(text) = serde_json::to_string(&Timed { time, line }) else { return };
        // People read it in a terminal.
        let mut text = escape(&text).into_owned();
        text.push('\n');
        let written = match &self.place {
            Place::Nowhere => return,
            Place::StandardError => io::stderr().lock().write_all(text.as_bytes()),
            // Opened for each line, so that somebody may move it away.
            Place::File(path) => append_to(path, &text),
        };
        if let (Err(error), Place::File(path)) = (written, &self.place)
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            let path = path.display();
            if tracing::dispatcher::has_been_set() {
                tracing::error!("the audit log `{path}` cannot be written: {error}");
            } else {
                // Nobody may be there to read it either.
                let _ = writeln!(io::stderr(), "the audit log `{path}` cannot be written: {error}");
            }
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.say_what_was_left_out(u64::MAX);
    }
}

fn append_to(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut builder = DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(path.parent().unwrap_or(Path::new(".")))?;
            options.open(path)
        }
        file => file,
    };
    // All of it at once: others append too.
    match file?.write(text.as_bytes())? {
        written if written == text.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bidirectional_controls_are_escaped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let audit = Audit::choose(Some(&path));
        audit.write(&Line { event: "refused", tool: Some("a\u{202e}b"), ..Line::default() });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""tool":"a\u202eb""#), "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["tool"], "a\u{202e}b");
    }
}
