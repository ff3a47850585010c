//! A server as a child process: started, asked, measured and ended. Nobody waits for one for ever: it is
//! ended after a time, and then whoever reads from it fails.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::contestants::Contestant;

/// The longest that any server runs.
const LIFE_MAX: Duration = Duration::from_secs(300);
/// What fits into a pipe that nobody reads from yet, for sure.
const PIPE_BYTES: usize = 32 * 1024;
/// How long one may take to end once its input has.
const END_MAX: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 64 * 1024;
const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0.0.0"}}}
"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// Where the four times of a process are behind its name: its own and those of its children, for itself and in the kernel.
const TIMES: Range<usize> = 11..15;
/// How a message begins that nobody asked for.
const NOTIFICATION: &[u8] = br#"{"jsonrpc":"2.0","method""#;

pub struct Server {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    watchdog: Watchdog,
    buffer: Vec<u8>,
    /// The beginning of a line that is not whole yet.
    rest: Vec<u8>,
}

/// Binds this thread, and the threads and processes that it starts, to the last core that it may use.
pub fn pin_to_one_core() {
    let allowed = sched_getaffinity(None).expect("the cores that we may use");
    let core = (0..CpuSet::MAX_CPU).rfind(|core| allowed.is_set(*core)).expect("a core");
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).expect("binding to one core");
    eprintln!("bench: servers and their client share core {core}");
}

impl Server {
    pub fn start(contestant: &Contestant) -> Self {
        Self::start_timed(contestant).0
    }

    /// Starts a server; the clock runs from just before.
    pub fn start_timed(contestant: &Contestant) -> (Self, Instant) {
        let watchdog = Watchdog::new();
        let mut command = Command::new(&contestant.program);
        command
            .args(&contestant.arguments)
            .current_dir(&contestant.folder)
            .env_clear()
            .env("HOME", &contestant.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let buffer = vec![0; READ_BYTES];
        let start = Instant::now();
        let mut child = command.spawn().expect(contestant.name);
        watchdog.watch(&child);
        let input = child.stdin.take().expect("its input");
        let output = child.stdout.take().expect("its output");
        (Self { child, input, output, watchdog, buffer, rest: Vec::new() }, start)
    }

    /// Sends `initialize` and reads its answer.
    pub fn initialize(&mut self) {
        let answer = self.ask(INITIALIZE);
        assert!(answer.starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\""), "no handshake");
    }

    /// The whole handshake.
    pub fn shake_hands(&mut self) {
        self.initialize();
        self.input.write_all(INITIALIZED).expect("a server that listens");
    }

    /// Sends one line, and returns the line that comes back.
    pub fn ask(&mut self, line: &[u8]) -> &[u8] {
        self.input.write_all(line).expect("a server that listens");
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(length * 2, 0);
            }
            let count = self.output.read(&mut self.buffer[length..]).expect("an answer");
            assert!(count > 0, "the server ended instead of answering");
            length += count;
            if self.buffer[length - 1] == b'\n' {
                return &self.buffer[..length];
            }
        }
    }

    /// Sends lines, and returns as many answers. Notifications are not answers.
    pub fn ask_many(&mut self, lines: &[u8], count: usize) -> Vec<Vec<u8>> {
        let Self { input, output, buffer, rest, .. } = self;
        std::thread::scope(|scope| {
            let mut write = || input.write_all(lines).expect("a server that listens");
            // What does not fit into the pipe would have both sides wait for each other.
            if lines.len() <= PIPE_BYTES {
                write();
            } else {
                scope.spawn(write);
            }
            let mut answers = Vec::with_capacity(count);
            while answers.len() < count {
                let length = output.read(buffer).expect("answers");
                assert!(length > 0, "the server ended after {} answers", answers.len());
                rest.extend_from_slice(&buffer[..length]);
                let mut begin = 0;
                while let Some(end) = rest[begin..].iter().position(|byte| *byte == b'\n') {
                    let line = &rest[begin..=begin + end];
                    begin += end + 1;
                    if !line.starts_with(NOTIFICATION) {
                        answers.push(line.to_vec());
                    }
                }
                rest.drain(..begin);
            }
            answers
        })
    }

    /// Sends everything on a thread of its own, while as many bytes of answers are read. They are not
    /// looked at: whoever reads long answers closely would slow down those who write them.
    pub fn pipeline(&mut self, lines: &[u8], wanted: usize) {
        let Self { input, output, buffer, .. } = self;
        std::thread::scope(|scope| {
            scope.spawn(|| input.write_all(lines).expect("a server that listens"));
            let (mut bytes, mut last) = (0, None);
            while bytes < wanted {
                let length = output.read(buffer).expect("answers");
                assert!(length > 0, "the server ended after {bytes} bytes of {wanted}");
                bytes += length;
                last = Some(buffer[length - 1]);
            }
            assert_eq!((bytes, last), (wanted, Some(b'\n')), "one answer for each request");
        });
    }

    /// A field of the process's status that is a size, in MiB.
    pub fn memory(&self, field: &str) -> f64 {
        let mut status = String::new();
        let path = format!("/proc/{}/status", self.child.id());
        let file = File::open(path).and_then(|mut file| file.read_to_string(&mut status));
        file.expect("the process's status");
        let size = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let kibibytes = size.and_then(|size| size.trim().strip_suffix(" kB"));
        kibibytes.and_then(|size| size.parse::<f64>().ok()).expect("a size") / 1024.0
    }

    /// Milliseconds of the processor that the server has taken, with its threads and children that have ended.
    pub fn processor_time(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.expect("the process's figures");
        // The name may have spaces; what follows it has none.
        let (_, figures) = stat.rsplit_once(')').expect("a name");
        let times = figures.split_whitespace().skip(TIMES.start).take(TIMES.len());
        let ticks: f64 = times.map(|time| time.parse::<f64>().expect("a time")).sum();
        ticks * 1e3 / clock_ticks_per_second() as f64
    }

    /// Closes the server's input and waits for its end.
    pub fn end(self) {
        let Self { mut child, input, output, watchdog, .. } = self;
        drop((input, output));
        watchdog.stop();
        let start = Instant::now();
        while child.try_wait().expect("the server's state").is_none() {
            if start.elapsed() > END_MAX {
                eprintln!("bench: server {} does not end by itself", child.id());
                child.kill().expect("ending the server");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Ends a server that has lived too long. Made before its server is, so that no start is measured with
/// the making of a thread in it.
struct Watchdog {
    pid: Arc<AtomicI32>,
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    fn new() -> Self {
        let pid = Arc::new(AtomicI32::new(0));
        let (alive, gone) = channel();
        let watched = Arc::clone(&pid);
        let thread = std::thread::spawn(move || {
            if gone.recv_timeout(LIFE_MAX) == Err(RecvTimeoutError::Timeout)
                && let Some(pid) = Pid::from_raw(watched.load(Ordering::Relaxed))
            {
                eprintln!("bench: server {pid:?} takes too long and is ended");
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { pid, alive, thread }
    }

    fn watch(&self, child: &Child) {
        self.pid.store(child.id().cast_signed(), Ordering::Relaxed);
    }

    /// From here on nobody is ended, so that the id can be given to somebody else.
    fn stop(self) {
        drop(self.alive);
        self.thread.join().expect("the watchdog");
    }
}
