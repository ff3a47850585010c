//! A command that is still running: written to and waited for, and ended with the test at the latest.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::bad_lines::tell;

/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Live {
    child: Child,
    input: Option<Box<dyn Write>>,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// How much of that was waited for already.
    passed: usize,
}

impl Live {
    /// By pipes.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self::of(child, Box::new(input), output)
    }

    /// The same, with what it complains about among what it says.
    pub(crate) fn with_complaints(mut command: Command) -> Self {
        let (output, theirs) = std::io::pipe().unwrap();
        command.stdin(Stdio::piped()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let mut child = command.spawn().unwrap();
        // Otherwise our own copies of the pipe's other end would keep it open.
        drop(command);
        let input = child.stdin.take().unwrap();
        Self::of(child, Box::new(input), output)
    }

    /// At a terminal of so many columns.
    pub(crate) fn at_terminal(command: Command, columns: u16) -> Self {
        Self::at_terminal_called(command, columns, "dumb")
    }

    /// The same, at one of this kind.
    pub(crate) fn at_terminal_called(mut command: Command, columns: u16, kind: &str) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        let size =
            rustix::termios::Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&theirs, size).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", kind);
        let child = command.spawn().unwrap();
        let ours = File::from(ours);
        Self::of(child, Box::new(ours.try_clone().unwrap()), ours)
    }

    fn of(child: Child, input: Box<dyn Write>, mut output: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal that nobody is at any more fails to be read.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let (seen, passed) = (Vec::new(), 0);
        Self { child, input: Some(input), output: receiver, seen, passed }
    }

    pub(crate) fn write(&mut self, text: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits until this is shown, after all that was waited for before, and returns everything up to then.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if let Some(at) = shown[self.passed..].find(text) {
                self.passed += at + text.len();
                return shown;
            }
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(RecvTimeoutError::Timeout) => panic!("no `{text}` in time: {shown}"),
                Err(RecvTimeoutError::Disconnected) => panic!("no `{text}` to the end: {shown}"),
            }
        }
    }

    /// Everything so far. What a terminal adds to the ends of lines is left out.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.seen).replace("\r\n", "\n")
    }

    pub(crate) fn signal(&self, name: &str) {
        tell(&self.child, name);
    }

    /// Ended by SIGKILL: it cannot do anything about it.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.shown()
    }

    /// The exit status, once it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(RecvTimeoutError::Timeout) => panic!("does not end: {}", self.shown()),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().code(),
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
