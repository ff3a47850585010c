//! Cuts what is read into lines, and bounds them.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, retry_on_intr};

/// The longest line that is read.
pub(super) const LINE_MAX: usize = 16 * 1024 * 1024;
/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

/// Cuts what is read into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the line begins that was not handed out yet.
    start: usize,
    /// Where the search for its end goes on.
    searched: usize,
    /// The rest of a line that was too long is thrown away.
    is_skipping: bool,
}

impl Lines {
    /// Reads what is there, or waits for it. Nothing is the end.
    pub(super) fn read(&mut self, input: BorrowedFd<'_>) -> io::Result<usize> {
        // What was handed out makes room.
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        // What a long line needed is not kept, and no more is read at once than otherwise.
        if self.buffer.is_empty() {
            self.buffer.shrink_to(READ_BYTES);
        }
        self.buffer.reserve(READ_BYTES);
        match retry_on_intr(|| rustix::io::read(input, spare_capacity(&mut self.buffer))) {
            // A socket's way to end.
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(0),
            read => Ok(read?),
        }
    }

    /// Whether a whole line is here.
    pub(super) fn has_next(&self) -> bool {
        memchr::memchr(b'\n', &self.buffer[self.start..]).is_some()
    }

    /// Whether the next line, as far as it is here, has this text in it.
    pub(super) fn next_mentions(&self, text: &[u8]) -> bool {
        let rest = &self.buffer[self.start..];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        memchr::memmem::find(line, text).is_some()
    }

    /// The next complete line; at the end of the input, what is left of one.
    pub(super) fn next(&mut self, is_end: bool) -> Option<Line<'_>> {
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
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
