//! The two pipes of a child as the protocol's library wants them: a message is a line. Reading goes on after lines that are
//! not JSON and lines that are too long, and a write that was given up half-way is finished by the next one.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::info::Era;
use super::ledger::{self, Ledger};
use super::message::{self, Unreadable};
use crate::wire::Tap;
use process_guard::stderr::LastWords;

/// The longest message: room for a file of 50 MiB in base64, and what is around it.
pub(crate) const MESSAGE_BYTES_MAX: usize = 72 * 1024 * 1024;
/// Room that is kept from one message to the next.
const KEPT_BYTES: usize = 1024 * 1024;
/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;
/// The beginning and the end of a message that is too long, which may tell whom it concerns.
const SAMPLE_BYTES: usize = 1024;
/// After this a server that does not answer `server/discover` is spoken to in the old way.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(3);

/// How the other side shows that it is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gone {
    /// It has said its last.
    pub(crate) hung_up: CancellationToken,
    /// It hears nothing any more.
    pub(crate) deaf: CancellationToken,
}

pub(crate) struct Lines<R, W> {
    reader: BufReader<R>,
    line: Line,
    /// Messages of a line that had several, and what is to be heard next.
    next: std::collections::VecDeque<ServerJsonRpcMessage>,
    writer: Arc<Mutex<Option<Writer<W>>>>,
    closing: CancellationToken,
    gone: Gone,
    ledger: Arc<Ledger>,
    tap: Tap,
    /// Lines that are no messages: who only prints something and ends has said it here.
    stray: LastWords,
    /// Until when `server/discover` may be answered.
    discovery: Option<Instant>,
    patience: Duration,
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

struct Writer<W> {
    pipe: W,
    /// Not written yet.
    rest: Vec<u8>,
    written: usize,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    pub(crate) fn new(reader: R, writer: W, ledger: Arc<Ledger>, tap: Tap, gone: Gone) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_BYTES, reader),
            line: Line::default(),
            next: Default::default(),
            writer: Arc::new(Mutex::new(Some(Writer {
                pipe: writer,
                rest: Vec::new(),
                written: 0,
            }))),
            closing: CancellationToken::new(),
            gone,
            ledger,
            tap,
            stray: LastWords::default(),
            discovery: None,
            patience: DISCOVERY_PATIENCE,
        }
    }

    /// What is no message is among these last words too.
    pub(crate) fn with_last_words(self, last_words: LastWords) -> Self {
        Self { stray: last_words, ..self }
    }

    /// Waits for one line, or its end. Can be given up at any point, and goes on there.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let newline = memchr::memchr(b'\n', available);
            let taken = newline.map_or(available.len(), |at| at + 1);
            self.line.add(&available[..taken]);
            self.reader.consume(taken);
            if newline.is_some() {
                return Ok(true);
            }
        }
    }

    /// What the line means to the library.
    fn hear_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if let Some(Sample { head, tail }) = line.overflowing {
            self.next.extend(self.ledger.too_long(&head, &tail, MESSAGE_BYTES_MAX));
            return;
        }
        let mut bytes = line.bytes;
        let text = bytes.trim_ascii();
        // Some programs begin with a mark of the encoding.
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        if !text.is_empty() {
            self.tap.received(text);
            match std::str::from_utf8(text) {
                Ok(text) => {
                    for message in message::read(text) {
                        if matches!(message, Err(Unreadable::NotJson)) {
                            self.stray.add(text.as_bytes());
                            let text = self.tap.excerpt(text);
                            self.ledger
                                .odd(&format!("a line that is not JSON was dropped: {text}"));
                            continue;
                        }
                        self.next.extend(self.ledger.hear(message));
                    }
                }
                Err(_) => self.ledger.odd("a line that is not UTF-8 was dropped"),
            }
        }
        bytes.clear();
        bytes.shrink_to(KEPT_BYTES);
        self.line.bytes = bytes;
    }
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

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let ticket = self.ledger.going(&message);
        if ticket.is_none() && is_discovery(&message) {
            self.discovery = Some(Instant::now() + self.patience);
        }
        // A modern server knows nothing of handshakes, even where we believed in one.
        let is_modern = || matches!(self.ledger.handshake().said(), Some((Era::Modern, _)));
        let is_needless = is_initialized(&message) && is_modern();
        let line = serde_json::to_vec(&message);
        let (writer, closing, tap) = (self.writer.clone(), self.closing.clone(), self.tap.clone());
        let (ledger, answers) = (self.ledger.clone(), ledger::answers(&message));
        let deaf = self.gone.deaf.clone();
        async move {
            if is_needless {
                return Ok(());
            }
            let mut line = line?;
            let write = async {
                let mut writer = writer.lock().await;
                let Some(writer) = writer.as_mut() else {
                    return Err(io::ErrorKind::NotConnected.into());
                };
                tap.sent(&line);
                if let Some(ticket) = &ticket {
                    ticket.mark_sent();
                }
                line.push(b'\n');
                let before = writer.rest.len();
                if writer.rest.is_empty() {
                    writer.rest = line;
                } else {
                    writer.rest.extend_from_slice(&line);
                }
                let written = writer.write().await;
                if written.is_err() {
                    // Nothing can be asked any more, whatever is still said.
                    deaf.cancel();
                    if let Some(ticket) = ticket.as_ref().filter(|_| writer.written <= before) {
                        ticket.mark_unsent();
                    }
                }
                written
            };
            let written = tokio::select! {
                biased;
                () = closing.cancelled() => Err(io::ErrorKind::NotConnected.into()),
                written = write => written,
            };
            ledger.gone(answers.as_ref());
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.next.pop_front() {
                if !matches!(
                    message,
                    ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_)
                ) {
                    self.discovery = None;
                }
                return Some(message);
            }
            let discovery = self.discovery;
            let read = tokio::select! {
                read = self.read_line() => read,
                () = tokio::time::sleep_until(discovery.unwrap_or_else(Instant::now)), if discovery.is_some() => {
                    self.discovery = None;
                    self.next.extend(self.ledger.give_up_discovery());
                    continue;
                }
            };
            match read {
                Ok(true) => {
                    self.hear_line();
                    // Lines that are there already cost no waiting: whoever writes without end would have us for itself.
                    tokio::task::consume_budget().await;
                    continue;
                }
                Ok(false) => {}
                Err(error) => self.ledger.odd(&format!("its output cannot be read: {error}")),
            }
            self.gone.hung_up.cancel();
            return None;
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // Whoever is writing to a child that does not read lets go.
        self.closing.cancel();
        self.writer.lock().await.take();
        Ok(())
    }
}

fn is_discovery(message: &ClientJsonRpcMessage) -> bool {
    match message {
        ClientJsonRpcMessage::Request(request) => {
            matches!(request.request, ClientRequest::DiscoverRequest(_))
        }
        _ => false,
    }
}

fn is_initialized(message: &ClientJsonRpcMessage) -> bool {
    match message {
        ClientJsonRpcMessage::Notification(notification) => {
            matches!(notification.notification, ClientNotification::InitializedNotification(_))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
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
                let ledger = Arc::new(Ledger::new(Arc::new(notices)));
                let tap = Tap {
                    log: None,
                    secrets: Arc::new(Arc::default),
                    server: "test".into(),
                    connection: 1,
                };
                let mut lines = Lines::new(noise, tokio::io::sink(), ledger, tap, Gone::default());
                let waited = tokio::time::timeout(Duration::from_millis(50), lines.receive());
                assert!(waited.await.is_err(), "there is nothing to hear");
            });
            done.send(()).unwrap();
        });
        is_done.recv_timeout(Duration::from_secs(60)).expect("it does not end");
    }
}
