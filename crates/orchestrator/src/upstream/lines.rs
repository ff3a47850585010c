//! The two pipes of a child: a message is a line. Reading goes on after lines that are not JSON and lines that are too long,
//! and a write that was given up half-way is finished by the next one.

use std::io;

use mcp::client::{self, MESSAGE_BYTES_MAX, Unreadable};
use process_guard::stderr::LastWords;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::in_flight::{InFlight, Sent};
use crate::wire::Tap;

/// Room that is kept from one message to the next.
const KEPT_BYTES: usize = 1024 * 1024;
/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;
/// The beginning and the end of a message that is too long, which may tell whom it concerns.
const SAMPLE_BYTES: usize = 1024;

/// How the other side shows that it is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gone {
    /// It has said its last.
    pub(crate) hung_up: CancellationToken,
    /// It hears nothing any more.
    pub(crate) deaf: CancellationToken,
}

/// What goes to a child.
pub(super) struct Lines<W> {
    writer: Mutex<Option<Writer<W>>>,
    closing: CancellationToken,
    deaf: CancellationToken,
    tap: Tap,
}

struct Writer<W> {
    pipe: W,
    /// Not written yet.
    rest: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> Lines<W> {
    pub(super) fn new(pipe: W, tap: Tap, deaf: CancellationToken) -> Self {
        let writer = Writer { pipe, rest: Vec::new(), written: 0 };
        let (writer, closing) = (Mutex::new(Some(writer)), CancellationToken::new());
        Self { writer, closing, deaf, tap }
    }

    /// Writes a message. `sent` is of a request.
    pub(super) async fn send(&self, text: String, sent: Option<&Sent>) -> io::Result<()> {
        let closed = || io::Error::from(io::ErrorKind::NotConnected);
        let write = async {
            let mut writer = self.writer.lock().await;
            let writer = writer.as_mut().ok_or_else(closed)?;
            self.tap.sent(text.as_bytes());
            if let Some(sent) = sent {
                sent.set(true);
            }
            let before = writer.rest.len();
            let mut line = text.into_bytes();
            line.push(b'\n');
            if writer.rest.is_empty() {
                writer.rest = line;
            } else {
                writer.rest.extend_from_slice(&line);
            }
            let written = writer.write().await;
            if written.is_err() {
                // Nothing can be asked any more, whatever is still said.
                self.deaf.cancel();
                if let Some(sent) = sent.filter(|_| writer.written <= before) {
                    sent.set(false);
                }
            }
            written
        };
        self.closing.run_until_cancelled(write).await.unwrap_or_else(|| Err(closed()))
    }

    /// Closes the pipe. Whoever is writing to a child that does not read lets go.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.writer.lock().await.take();
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    async fn write(&mut self) -> io::Result<()> {
        while self.written < self.rest.len() {
            let count = self.pipe.write(&self.rest[self.written..]).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += count;
        }
        self.rest.clear();
        self.rest.shrink_to(KEPT_BYTES);
        self.written = 0;
        self.pipe.flush().await
    }
}

/// Hears everything that a child says, until it has said its last. What is not JSON is among its last words too.
pub(super) async fn hear(
    pipe: impl AsyncRead + Unpin,
    in_flight: &InFlight,
    tap: &Tap,
    stray: &LastWords,
) {
    let mut reader = BufReader::with_capacity(READ_BYTES, pipe);
    let mut line = Line::default();
    loop {
        let available = match reader.fill_buf().await {
            Ok([]) => return,
            Ok(available) => available,
            Err(error) => {
                return in_flight.odd(&format!("its output cannot be read: {error}"));
            }
        };
        let newline = memchr::memchr(b'\n', available);
        let taken = newline.map_or(available.len(), |at| at + 1);
        line.add(&available[..taken]);
        reader.consume(taken);
        if newline.is_some() {
            line.end(in_flight, tap, stray);
            // Lines that are there already cost no waiting: whoever writes without end would have us for itself.
            tokio::task::consume_budget().await;
        }
    }
}

/// What was read of the current line.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// It is too long: only its end is kept.
    overflowing: Option<Sample>,
}

struct Sample {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Line {
    fn add(&mut self, more: &[u8]) {
        if let Some(sample) = &mut self.overflowing {
            sample.tail.extend_from_slice(more);
            let surplus = sample.tail.len().saturating_sub(SAMPLE_BYTES);
            sample.tail.drain(..surplus);
        } else if self.bytes.len() + more.len() > MESSAGE_BYTES_MAX {
            let head = self.bytes[..SAMPLE_BYTES.min(self.bytes.len())].to_vec();
            self.bytes = Vec::new();
            self.overflowing = Some(Sample { head, tail: Vec::new() });
            self.add(more);
        } else {
            self.bytes.extend_from_slice(more);
        }
    }

    /// Takes the line for what it is, and begins the next one.
    fn end(&mut self, in_flight: &InFlight, tap: &Tap, stray: &LastWords) {
        if let Some(Sample { head, tail }) = self.overflowing.take() {
            return in_flight.too_long(&head, &tail, MESSAGE_BYTES_MAX);
        }
        let text = self.bytes.trim_ascii();
        // Some programs begin with a mark of the encoding.
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        if !text.is_empty() {
            tap.received(text);
            match std::str::from_utf8(text) {
                Ok(text) => hear_messages(text, in_flight, tap, stray),
                Err(_) => in_flight.odd("a line that is not UTF-8 was dropped"),
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

fn hear_messages(text: &str, in_flight: &InFlight, tap: &Tap, stray: &LastWords) {
    for message in client::read(text) {
        if matches!(message, Err(Unreadable::NotJson)) {
            stray.add(text.as_bytes());
            let text = tap.excerpt(text);
            in_flight.odd(&format!("a line that is not JSON was dropped: {text}"));
            continue;
        }
        in_flight.hear(message, None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::broadcast;

    use super::*;
    use crate::upstream::notices::Notices;

    /// On the only thread there is: whoever has it for itself is found out by nobody ever coming back.
    #[test]
    fn a_child_that_writes_without_end_leaves_time_for_others() {
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let (noise, mut endless) = tokio::io::duplex(1024 * 1024);
                tokio::spawn(async move {
                    let lines = "y\n".repeat(READ_BYTES);
                    while endless.write_all(lines.as_bytes()).await.is_ok() {}
                });
                let notices = Notices::new("test", broadcast::Sender::new(1));
                let (in_flight, _) = InFlight::new(Arc::new(notices));
                let tap = Tap {
                    log: None,
                    secrets: Arc::new(Arc::default),
                    server: "test".into(),
                    connection: 1,
                };
                let stray = LastWords::default();
                let heard = hear(noise, &in_flight, &tap, &stray);
                let waited = tokio::time::timeout(Duration::from_millis(50), heard);
                assert!(waited.await.is_err(), "there is nothing to hear");
            });
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(60)).expect("it does not end");
    }
}
