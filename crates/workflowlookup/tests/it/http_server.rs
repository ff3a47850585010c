//! The server over HTTP, as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::Place;
use super::bad_lines::tell;
use super::transcripts::PATIENCE;

/// A process that accepts connections. It is gone when this is.
pub(super) struct Listening {
    pub(super) child: Child,
    pub(super) address: SocketAddr,
    /// What it writes to standard error after the line that says where it is.
    pub(super) complaints: Receiver<String>,
}

impl Listening {
    /// Serves a place's workflows, on a port that nobody else has.
    pub(super) fn start(place: &Place) -> Self {
        Self::spawn(place.command(&["serve", "--http", "127.0.0.1:0"]))
    }

    /// Starts it as the command says, in a place that outlives it.
    pub(super) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, complaints) = channel();
        // Read to its end, so that it never has to wait for us.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let address = loop {
            let Ok(line) = complaints.recv_timeout(PATIENCE) else {
                let _ = child.kill();
                panic!("it does not listen: {:?}", child.wait());
            };
            if let Some((_, url)) = line.split_once("listening on http://") {
                break url.strip_suffix("/mcp").unwrap().parse().unwrap();
            }
        };
        Self { child, address, complaints }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Tells it to end.
    pub(super) fn terminate(&self) {
        tell(&self.child, "TERM");
    }

    /// Its exit status, once it is gone.
    pub(super) fn wait(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "the process does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends it as a service manager does: the end is a good one. What it had to complain about is left.
    pub(super) fn end(mut self) -> Vec<String> {
        self.terminate();
        assert_eq!(self.wait(), Some(0));
        self.complaints.iter().collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Only one that a failing test leaves behind is still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
