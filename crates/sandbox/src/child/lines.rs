//! The other side, over standard input and output.

use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use serde::de::DeserializeOwned;

use super::say;
use crate::border::{In, Out};
use crate::engine::{Gone, Wire};

/// How much is read at once.
const READ: usize = 64 * 1024;

pub(super) struct Lines {
    /// What is read into.
    buffer: Box<[u8]>,
    bytes: Vec<u8>,
    /// How much of them was taken, and how much has no end of a line beside that.
    taken: usize,
    seen: usize,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; READ].into(), bytes: Vec::new(), taken: 0, seen: 0 }
    }

    /// What the next line says; none where it says something else, or nothing.
    pub(super) fn read<T: DeserializeOwned>(&mut self) -> Option<T> {
        let line = self.line(None).ok()??;
        serde_json::from_slice(line).ok()
    }

    /// The next line; none when this time has come.
    fn line(&mut self, until: Option<Instant>) -> Result<Option<&[u8]>, Gone> {
        loop {
            let end = self.bytes[self.seen..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| self.seen + end + 1) {
                let line = self.taken..end;
                (self.taken, self.seen) = (end, end);
                return Ok(Some(&self.bytes[line]));
            }
            if self.taken > 0 {
                self.bytes.drain(..self.taken);
                // One large answer is no reason to keep so much. The room of one that is coming stays.
                self.bytes.shrink_to(READ);
            }
            (self.taken, self.seen) = (0, self.bytes.len());
            if !wait(until)? {
                return Ok(None);
            }
            match read(stdin(), &mut *self.buffer) {
                Ok(0) => return Err(Gone),
                Ok(count) => self.bytes.extend_from_slice(&self.buffer[..count]),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Gone),
            }
        }
    }
}

/// Whether there is something to read; not when this time has come.
fn wait(until: Option<Instant>) -> Result<bool, Gone> {
    let Some(until) = until else { return Ok(true) };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Gone)?;
        let stdin = stdin();
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&left)) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::INTR) => {}
            Err(_) => return Err(Gone),
        }
    }
}

impl Wire for Lines {
    fn send(&mut self, out: &mut Vec<Out>) -> Result<(), Gone> {
        let said = say(out);
        out.clear();
        said.map_err(|_| Gone)
    }

    fn receive(&mut self, until: Option<Instant>) -> Result<Option<In>, Gone> {
        let Some(line) = self.line(until)? else { return Ok(None) };
        serde_json::from_slice(line).map(Some).map_err(|_| Gone)
    }
}
