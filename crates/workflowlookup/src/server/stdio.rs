//! The server on standard input and output: one thread, one poll. Calls answer from memory and are carried
//! out inline; replies are written together as long as a complete line is already here. A client that
//! does not read makes us wait, never grow.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel};

use mcp::{Action, Connection, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Host;
use super::host::changed;

/// The longest line that is read.
const LINE_MAX: usize = 16 * 1024 * 1024;
/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;
/// A pipe that polls as writable takes this much without blocking.
const WRITE_BYTES: usize = 4096;
/// Replies are written when this much has come together, whatever else is here.
const REPLIES_BYTES: usize = 256 * 1024;
/// How long a client that does not read can keep us once we are told to go.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How a closed reader shows: an error on a pipe, a hang-up on a socket, which is what some clients
/// give us for a pipe.
const GONE: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

/// Serves until the input ends, the client shuts us down, it goes away, or a signal comes.
pub(crate) fn serve(host: &Host) -> io::Result<()> {
    let (wake, waker) = rustix::pipe::pipe()?;
    let waker = std::sync::Arc::new(waker);
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
    }
    // The watcher wakes us by a byte of its own, told apart from a signal's by the change that it sends.
    let (changes, inbox) = channel();
    let watch_waker = std::sync::Arc::clone(&waker);
    let watch = host.app().watch(move |change| {
        // We are gone only when the process ends.
        let _ = changes.send(changed(change));
        let _ = rustix::io::write(&*watch_waker, b"w");
    })?;
    let mut session = Session {
        host,
        connection: Connection::new(host.server(), Transport::Stdio),
        out: take_stdout()?,
        wake,
        inbox,
        replies: Vec::new(),
        actions: Vec::new(),
        is_over: false,
        is_told: false,
    };
    let served = session.run();
    if served.is_err() {
        // The client may be gone too; the caller reports what went wrong.
        session.connection.fail(&mut session.actions);
        session.act();
        let _ = session.write();
    }
    drop(watch);
    served
}

/// Takes the real standard output for ourselves and points descriptor 1 at standard error, so that
/// nothing that a library prints can get into the protocol.
fn take_stdout() -> io::Result<OwnedFd> {
    let real = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(real)
}

struct Session<'a> {
    host: &'a Host,
    connection: Connection,
    out: OwnedFd,
    wake: OwnedFd,
    inbox: Receiver<mcp::Changed>,
    /// What is to be written.
    replies: Vec<u8>,
    actions: Vec<Action>,
    is_over: bool,
    /// A signal has told us to go.
    is_told: bool,
}

/// What woke us.
struct Awake {
    input: bool,
    /// The client has closed its end.
    is_gone: bool,
    woken: bool,
}

impl Session<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut lines = Lines::default();
        let stdin = rustix::stdio::stdin();
        while !self.is_over {
            let awake = self.wait(stdin)?;
            if awake.is_gone {
                return Ok(());
            }
            if awake.woken {
                self.woken()?;
            }
            if !awake.input || self.is_over {
                self.write()?;
                continue;
            }
            let is_end = lines.read(stdin)? == 0;
            while let Some(line) = lines.next(is_end) {
                match line {
                    Line::Whole(line) => self.line(line),
                    Line::TooLong => {
                        let details = format!("a line may have {LINE_MAX} bytes");
                        self.connection.refuse_line(&details, &mut self.actions);
                    }
                }
                self.act();
                if self.replies.len() >= REPLIES_BYTES {
                    self.write()?;
                }
                if self.is_over {
                    break;
                }
            }
            self.is_over |= is_end;
            self.write()?;
        }
        self.connection.close(&mut self.actions);
        self.act();
        self.write()
    }

    fn wait(&self, stdin: BorrowedFd<'_>) -> io::Result<Awake> {
        let mut descriptors = [
            PollFd::new(&stdin, PollFlags::IN),
            // Asked for nothing: a closed reader is reported all the same.
            PollFd::new(&self.out, PollFlags::empty()),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        retry(|| poll(&mut descriptors, None))?;
        let [input, out, wake] = descriptors.map(|descriptor| descriptor.revents());
        Ok(Awake {
            input: !input.is_empty(),
            is_gone: out.intersects(GONE),
            woken: wake.contains(PollFlags::IN),
        })
    }

    /// Something changed in the catalogue, or a signal tells us to end.
    fn woken(&mut self) -> io::Result<()> {
        let mut bytes = [0; 64];
        let count = retry(|| rustix::io::read(&self.wake, &mut bytes[..]))?;
        while let Ok(changed) = self.inbox.try_recv() {
            self.connection.changed(&changed, &mut self.actions);
        }
        self.act();
        self.is_told |= bytes[..count].iter().any(|byte| *byte != b'w');
        self.is_over |= self.is_told;
        Ok(())
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if !line.is_empty() {
            self.connection.receive(line, &mut self.actions);
        }
    }

    /// Carries out what the connection asks for, and collects what is to be written.
    fn act(&mut self) {
        while !self.actions.is_empty() {
            for action in std::mem::take(&mut self.actions) {
                match action {
                    Action::Reply(text) | Action::Notify(text) | Action::Ask(text) => {
                        self.replies.extend_from_slice(text.as_bytes());
                        self.replies.push(b'\n');
                    }
                    Action::Call { ticket, call, .. } => {
                        let outcome = self.host.carry_out(call);
                        self.connection.finish(ticket, outcome, &mut self.actions);
                    }
                    // Calls end before anything could cancel them.
                    Action::Cancel(_) => {}
                    // A log that cannot be written is no reason to stop.
                    Action::Warn(warning) => {
                        let _ = writeln!(io::stderr(), "warning: {warning}");
                    }
                    Action::Close => self.is_over = true,
                }
            }
        }
    }

    /// Writes everything, and waits for the client to take it. A signal that comes meanwhile ends us.
    fn write(&mut self) -> io::Result<()> {
        let mut written = 0;
        // What a change adds meanwhile is written too.
        while written < self.replies.len() {
            let mut descriptors =
                [PollFd::new(&self.out, PollFlags::OUT), PollFd::new(&self.wake, PollFlags::IN)];
            let patience = self.is_told.then_some(&PATIENCE);
            retry(|| poll(&mut descriptors, patience))?;
            let [out, wake] = descriptors.map(|descriptor| descriptor.revents());
            if wake.contains(PollFlags::IN) {
                self.woken()?;
            } else if out.is_empty() {
                // Nobody takes it, and we are told to go.
                break;
            }
            if out.intersects(GONE) {
                self.is_over = true;
                break;
            }
            if out.contains(PollFlags::OUT) {
                let end = self.replies.len().min(written + WRITE_BYTES);
                let piece = &self.replies[written..end];
                match retry(|| rustix::io::write(&self.out, piece)) {
                    Ok(count) => written += count,
                    Err(error) if is_gone(&error) => {
                        self.is_over = true;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.replies.clear();
        Ok(())
    }
}

/// The client went away between our look and our write.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

/// Cuts what is read into lines.
#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    /// Where the line begins that was not handed out yet.
    start: usize,
    /// Where the search for its end goes on.
    searched: usize,
    /// The rest of a line that was too long is thrown away.
    is_skipping: bool,
}

impl Lines {
    fn read(&mut self, input: BorrowedFd<'_>) -> io::Result<usize> {
        // What was handed out makes room.
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        let mut bytes = [0; READ_BYTES];
        let count = match retry(|| rustix::io::read(input.as_fd(), &mut bytes[..])) {
            // A socket's way to end.
            Err(error) if is_gone(&error) => 0,
            read => read?,
        };
        self.buffer.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    /// The next complete line; at the end of the input, what is left of one.
    fn next(&mut self, is_end: bool) -> Option<Line<'_>> {
        loop {
            let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let end = match found {
                Some(at) => self.searched + at,
                None if is_end && self.start < self.buffer.len() => self.buffer.len(),
                None => return self.unfinished(),
            };
            let line = self.start..end;
            self.start = (end + 1).min(self.buffer.len());
            self.searched = self.start;
            if !std::mem::take(&mut self.is_skipping) {
                return Some(match line.len() {
                    0..=LINE_MAX => Line::Whole(&self.buffer[line]),
                    _ => Line::TooLong,
                });
            }
        }
    }

    /// No line is complete. One that is too long already is refused now, and not kept.
    fn unfinished(&mut self) -> Option<Line<'_>> {
        self.searched = self.buffer.len();
        let is_too_long = self.buffer.len() - self.start > LINE_MAX;
        if self.is_skipping || is_too_long {
            self.buffer = Vec::new();
            (self.start, self.searched) = (0, 0);
        }
        if is_too_long && !self.is_skipping {
            self.is_skipping = true;
            return Some(Line::TooLong);
        }
        None
    }
}
