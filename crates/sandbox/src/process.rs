//! A program in a process of its own: our own binary, which gives up what it could do before it is given the program. It can be ended
//! at any time, whatever it does.

use std::fmt::Display;
use std::future::poll_fn;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::Signal;
use serde::Serialize;
use tokio::io::{
    AsyncBufRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::border::{In, Out, Room};
use crate::child::WORD;
use crate::outcome::{Failure, Kind};
use crate::program::Program;

/// What it is called in a list of processes.
const NAME: &str = "workflowlookup";
/// A message can have all the memory of the program, as JSON; more is none.
const BESIDE: usize = 1024 * 1024;
/// How much of its last words is told.
const LAST_WORDS_MAX: u64 = 2_000;
/// How long it may take to be gone: to end once it has closed its output, or to die once it is killed.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// Where processes come from.
pub(crate) struct Processes {
    /// Our own program.
    program: PathBuf,
    /// One for the next program.
    waiting: Mutex<Option<Waiting>>,
    /// Whoever starts it.
    starting: tokio::sync::Mutex<()>,
}

impl Processes {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, waiting: Mutex::default(), starting: tokio::sync::Mutex::default() }
    }

    pub(crate) async fn run(&self, room: Room, program: &Program) -> Result<Running, Failure> {
        let waiting = self.waiting().take_if(|waiting| waiting.is_for(&room));
        let waiting = match waiting {
            Some(waiting) => waiting,
            None => Waiting::start(&self.program, room).await?,
        };
        Ok(waiting.run(program))
    }

    /// Gets the process of the next program ready; whether it was not.
    pub(crate) async fn prepare(&self, room: Room) -> bool {
        // Programs that end together have one that comes next.
        let Ok(_starting) = self.starting.try_lock() else { return false };
        if self.waiting().as_mut().is_some_and(|waiting| waiting.is_for(&room)) {
            return false;
        }
        let Ok(started) = Waiting::start(&self.program, room).await else { return false };
        self.waiting().replace(started);
        true
    }

    /// Lets go of one that nothing has come for in this long; whether there is none any more.
    pub(crate) fn forget(&self, after: Duration) -> bool {
        let mut waiting = self.waiting();
        waiting.take_if(|waiting| waiting.since.elapsed() >= after);
        waiting.is_none()
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock()
    }
}

/// One that has no program yet.
struct Waiting {
    room: Room,
    since: Instant,
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
}

pub(crate) struct Running {
    child: Child,
    /// None when it does not listen any more.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What it is to be told, and how much of that it has been told.
    unsent: Vec<u8>,
    sent: usize,
    line: Vec<u8>,
    line_max: usize,
}

impl Waiting {
    async fn start(program: &Path, room: Room) -> Result<Self, Failure> {
        let failed = |error: &dyn Display| {
            Failure::new(Kind::Memory, format!("there is no process for the program: {error}"))
        };
        let mut command = Command::new(program);
        command.arg0(NAME).arg(WORD).env_clear().kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = process_guard::spawn_tethered(command).await;
        let mut child = child.map_err(|error| failed(&error))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), stderr) = pipes else {
            return Err(failed(&"it has no pipes"));
        };
        // There is room for it in every pipe. Where it is gone already, it says so later.
        let _ = stdin.write_all(&line(&room)).await;
        Ok(Self { room, since: Instant::now(), child, stdin, stdout, stderr })
    }

    /// Whether a program can have it that needs such a room.
    fn is_for(&mut self, room: &Room) -> bool {
        self.room.does_for(room) && matches!(self.child.try_wait(), Ok(None))
    }

    fn run(self, program: &Program) -> Running {
        let Self { room, since: _, child, stdin, stdout, stderr } = self;
        Running {
            child,
            stdin: Some(stdin),
            stdout: BufReader::new(stdout),
            stderr,
            unsent: line(program),
            sent: 0,
            line: Vec::new(),
            line_max: room.limits.memory.saturating_add(BESIDE),
        }
    }
}

/// As it is sent.
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::new();
    write_line(&mut line, message);
    line
}

fn write_line(lines: &mut Vec<u8>, message: &impl Serialize) {
    // None of ours has anything in it that is no JSON.
    let _ = serde_json::to_writer(&mut *lines, message);
    lines.push(b'\n');
}

impl Running {
    /// What is no message is taken for its end: it is not ours any more. Meanwhile it is told what it has not been told yet.
    pub(crate) async fn next(&mut self) -> Option<Out> {
        poll_fn(|context| {
            self.tell(context);
            self.hear(context)
        })
        .await
    }

    /// As much as it takes now. It may take its time to read; nobody waits for that.
    fn tell(&mut self, context: &mut Context<'_>) {
        while let Some(stdin) = self.stdin.as_mut().filter(|_| self.sent < self.unsent.len()) {
            match Pin::new(stdin).poll_write(context, &self.unsent[self.sent..]) {
                Poll::Ready(Ok(count)) if count > 0 => self.sent += count,
                // Why it is gone is seen where it is heard.
                Poll::Ready(_) => self.stdin = None,
                Poll::Pending => return,
            }
        }
        self.unsent.clear();
        self.sent = 0;
        // One large answer is no reason to keep so much.
        self.unsent.shrink_to(BESIDE);
    }

    fn hear(&mut self, context: &mut Context<'_>) -> Poll<Option<Out>> {
        // Kept over calls: this one may be given up in the middle of a line.
        loop {
            let read = match Pin::new(&mut self.stdout).poll_fill_buf(context) {
                Poll::Ready(Ok(read)) if !read.is_empty() => read,
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(read.len(), |end| end + 1);
            self.line.extend_from_slice(&read[..taken]);
            Pin::new(&mut self.stdout).consume(taken);
            if self.line.len() > self.line_max {
                return Poll::Ready(None);
            }
            if end.is_some() {
                let message = serde_json::from_slice(&self.line);
                self.line.clear();
                return Poll::Ready(message.ok());
            }
        }
    }

    pub(crate) fn has_next(&self) -> bool {
        self.line.is_empty() && self.stdout.buffer().contains(&b'\n')
    }

    /// It is told when it is heard next, or by `flush`.
    pub(crate) fn send(&mut self, message: In) {
        if self.stdin.is_none() {
            return;
        }
        if self.sent > BESIDE {
            self.unsent.drain(..std::mem::take(&mut self.sent));
        }
        write_line(&mut self.unsent, &message);
    }

    /// Tells it as much as it takes now.
    pub(crate) fn flush(&mut self) {
        // Whoever waits for what it says next is woken for the rest.
        self.tell(&mut Context::from_waker(Waker::noop()));
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.start_kill();
    }

    pub(crate) async fn gone(mut self) {
        // Where the kernel does not let go of it, it is waited for in the background.
        let _ = timeout(GONE_WITHIN, self.child.wait()).await;
    }

    /// Why it says nothing any more.
    pub(crate) async fn lost(&mut self) -> Failure {
        let ended = timeout(GONE_WITHIN, self.child.wait()).await;
        let Ok(status) = ended else {
            let _ = self.child.start_kill();
            tracing::warn!("a program's process said what nobody understands, and was killed");
            return Failure::new(Kind::Exception, "the program broke its engine");
        };
        let mut said = Vec::new();
        if let Some(stderr) = self.stderr.take() {
            let reading = stderr.take(LAST_WORDS_MAX);
            tokio::pin!(reading);
            let _ = timeout(GONE_WITHIN, reading.read_to_end(&mut said)).await;
        }
        let said = String::from_utf8_lossy(&said);
        let status = match status {
            Ok(status) => status,
            Err(error) => return Failure::new(Kind::Exception, error.to_string()),
        };
        tracing::warn!(
            "a program's process ended without a word ({status}): {}",
            said.trim().escape_debug()
        );
        of_status(status)
    }
}

fn of_status(status: ExitStatus) -> Failure {
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::XCPU) => Failure::new(
            Kind::Timeout,
            "the program used the processor for longer than it may run at all",
        ),
        Some(Signal::KILL) => Failure::new(
            Kind::Memory,
            "the program's process was killed, as a system does that has no memory left",
        ),
        _ => Failure::new(Kind::Exception, format!("the program broke its engine ({status})")),
    }
}
