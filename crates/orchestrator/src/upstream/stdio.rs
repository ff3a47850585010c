//! The stdio transport: one message per line. Reading continues after malformed and oversized lines, and the next write
//! finishes one that was cancelled.

use std::io;

use mcp::client::{self, MESSAGE_BYTES_MAX, MessageError};
use process_guard::stderr::LastWords;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::router::{MessageRouter, SentFlag};
use crate::wire::Tap;

/// How much buffer capacity is kept between messages.
const KEPT_BYTES: usize = 1024 * 1024;
/// The size of the read buffer.
const READ_BYTES: usize = 64 * 1024;
/// How much is kept of the beginning and the end of an oversized message, to find its id.
const SAMPLE_BYTES: usize = 1024;

/// How the other side ends a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeerClosed {
    /// The end of its output.
    pub(crate) eof: CancellationToken,
    /// Its input rejects writes.
    pub(crate) broken_input: CancellationToken,
    /// It has forgotten our HTTP session.
    pub(crate) forgotten: CancellationToken,
}

/// Writes messages to the input of a process.
pub(super) struct StdioWriter<W> {
    writer: Mutex<Option<Writer<W>>>,
    closing: CancellationToken,
    broken_input: CancellationToken,
    tap: Tap,
}

struct Writer<W> {
    pipe: W,
    /// Bytes that are not written yet.
    rest: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> StdioWriter<W> {
    pub(super) fn new(pipe: W, tap: Tap, broken_input: CancellationToken) -> Self {
        let writer = Writer { pipe, rest: Vec::new(), written: 0 };
        let (writer, closing) = (Mutex::new(Some(writer)), CancellationToken::new());
        Self { writer, closing, broken_input, tap }
    }

    /// Writes a message. `sent` is the flag of a request.
    pub(super) async fn send(&self, text: String, sent: Option<&SentFlag>) -> io::Result<()> {
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
                // Output may still arrive, but no request can be sent.
                self.broken_input.cancel();
                if let Some(sent) = sent.filter(|_| writer.written <= before) {
                    sent.set(false);
                }
            }
            written
        };
        self.closing.run_until_cancelled(write).await.unwrap_or_else(|| Err(closed()))
    }

    /// Closes the pipe and cancels blocked writes.
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

/// Routes all messages until the end of the output. Lines that are not JSON are kept as last words too.
pub(super) async fn receive(
    pipe: impl AsyncRead + Unpin,
    router: &MessageRouter,
    tap: &Tap,
    stray: &LastWords,
) {
    let mut reader = BufReader::with_capacity(READ_BYTES, pipe);
    let mut line = LineBuffer::default();
    loop {
        let available = match reader.fill_buf().await {
            Ok([]) => return,
            Ok(available) => available,
            Err(error) => {
                return router.log_anomaly(&format!("its output cannot be read: {error}"));
            }
        };
        let newline = memchr::memchr(b'\n', available);
        let taken = newline.map_or(available.len(), |at| at + 1);
        line.add(&available[..taken]);
        reader.consume(taken);
        if newline.is_some() {
            line.end(router, tap, stray);
            // Buffered lines need no waiting, so an endless writer would block this thread.
            tokio::task::consume_budget().await;
        }
    }
}

/// The current line.
#[derive(Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    /// Set if the line is too long. Only its ends are kept.
    overflowing: Option<Sample>,
}

struct Sample {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl LineBuffer {
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

    /// Routes the messages of the line and starts the next one.
    fn end(&mut self, router: &MessageRouter, tap: &Tap, stray: &LastWords) {
        if let Some(Sample { head, tail }) = self.overflowing.take() {
            return router.reject_oversized(&head, &tail, MESSAGE_BYTES_MAX);
        }
        let text = self.bytes.trim_ascii();
        // Some programs start with a byte order mark.
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        if !text.is_empty() {
            tap.received(text);
            match std::str::from_utf8(text) {
                Ok(text) => route_messages(text, router, tap, stray),
                Err(_) => router.log_anomaly("a line that is not UTF-8 was dropped"),
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

fn route_messages(text: &str, router: &MessageRouter, tap: &Tap, stray: &LastWords) {
    for message in client::read(text) {
        if matches!(message, Err(MessageError::NotJson)) {
            stray.add(text.as_bytes());
            let text = tap.excerpt(text);
            router.log_anomaly(&format!("a line that is not JSON was dropped: {text}"));
            continue;
        }
        router.route(message, None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::broadcast;

    use super::*;
    use crate::upstream::notices::Notices;
    use crate::wire::Secrets;

    /// Runs on a single thread, which the endless writer would block.
    #[test]
    fn endless_writer_does_not_block_the_thread() {
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
                let secrets: Secrets = Arc::new(Arc::default);
                let (router, _) = MessageRouter::new(Arc::new(notices), secrets.clone());
                let tap = Tap { log: None, secrets, server: "test".into(), connection: 1 };
                let stray = LastWords::default();
                let received = receive(noise, &router, &tap, &stray);
                let waited = tokio::time::timeout(Duration::from_millis(50), received);
                assert!(waited.await.is_err(), "there is nothing to hear");
            });
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(60)).expect("it does not end");
    }
}
