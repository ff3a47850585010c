//! Every message to and from upstreams, for whoever wants to look: a file of JSON lines, in the order in which they went and
//! came, and the log at debug level. What is secret in the registry is in neither.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use registry::Masks;
use serde::Serialize;
use serde_json::value::RawValue;
use untrusted_text::cut;

/// At debug level a message is shown up to here; the file has all of it.
const SHOWN_BYTES: usize = 2_000;
/// How much of a line is logged that is no message.
const EXCERPT_CHARS: usize = 200;
/// Under this name the log has the messages, so that they can be chosen or left out.
const TARGET: &str = "orchestrator::wire";

/// A file of messages.
#[derive(Debug, Clone)]
pub struct WireLog(Arc<Mutex<Recording>>);

#[derive(Debug)]
struct Recording {
    file: File,
    /// It was said already.
    has_failed: bool,
}

impl WireLog {
    /// Appends to the file, which is made where it is missing. Only its owner can read a new one.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let recording = Recording { file: options.open(path)?, has_failed: false };
        Ok(Self(Arc::new(Mutex::new(recording))))
    }

    /// One line, in one piece.
    fn write(&self, line: &Line<'_>) {
        let Ok(text) = serde_json::to_string(line) else { return };
        let text = format!("{}\n", untrusted_text::escape(&text));
        let mut recording = self.0.lock();
        if let Err(error) = recording.file.write_all(text.as_bytes())
            && !std::mem::replace(&mut recording.has_failed, true)
        {
            tracing::error!("cannot write down messages, and the recording lacks some: {error}");
        }
    }
}

/// One line of the file.
#[derive(Serialize)]
struct Line<'l> {
    time: String,
    server: &'l str,
    /// Counts connections, so that those of one server can be told apart.
    connection: u64,
    /// `out`, `in`, or `stderr`.
    way: &'static str,
    /// A message that is JSON…
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'l RawValue>,
    /// …or what came in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'l str>,
}

/// What secrets there are at the moment.
pub(crate) type Secrets = Arc<dyn Fn() -> Arc<Masks> + Send + Sync>;

/// Looks on at one connection. Costs nothing where nobody wants to see anything.
#[derive(Clone)]
pub struct Tap {
    pub(crate) log: Option<WireLog>,
    pub(crate) secrets: Secrets,
    pub(crate) server: Arc<str>,
    pub(crate) connection: u64,
}

impl Tap {
    /// For who hands messages on without looking at them.
    pub fn new(log: Option<WireLog>, secrets: Arc<Masks>, server: &str) -> Self {
        Self {
            log,
            secrets: Arc::new(move || secrets.clone()),
            server: server.into(),
            connection: 1,
        }
    }

    pub fn sent(&self, message: &[u8]) {
        self.look("out", "→", message);
    }

    pub fn received(&self, message: &[u8]) {
        self.look("in", "←", message);
    }

    pub fn complained(&self, line: &[u8]) {
        self.look("stderr", "stderr", line);
    }

    /// The beginning of a line of a server's, for the log: without secrets, and nothing that steers a terminal.
    pub(crate) fn excerpt(&self, line: &str) -> String {
        let masks = (self.secrets)();
        let line = masks.hide(&line[..line.floor_char_boundary(SHOWN_BYTES)]);
        let line: String =
            line.chars().filter(|sign| !sign.is_control()).take(EXCERPT_CHARS + 1).collect();
        match line.char_indices().nth(EXCERPT_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    fn look(&self, way: &'static str, sign: &str, bytes: &[u8]) {
        let shown = tracing::enabled!(target: TARGET, tracing::Level::DEBUG);
        if self.log.is_none() && !shown {
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        let masks = (self.secrets)();
        let text = masks.hide(text.trim_end());
        if let Some(log) = &self.log {
            // Nothing may break a line: what is not JSON is written as a text.
            let message = serde_json::from_str::<&RawValue>(&text).ok();
            let message =
                message.filter(|message| way != "stderr" && !message.get().contains('\n'));
            log.write(&Line {
                time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
                server: &self.server,
                connection: self.connection,
                way,
                message,
                text: message.is_none().then_some(&text),
            });
        }
        if shown {
            let text = cut(&text, SHOWN_BYTES);
            tracing::debug!(target: TARGET, "[MCP {sign}] {}: {text}", self.server);
        }
    }
}
