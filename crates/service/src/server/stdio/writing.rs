//! Writing to the client: at once where there is room, and patiently where there is not, without growing and without
//! missing a signal.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};

use super::Session;
use super::ready::{GONE, Ready};

/// A pipe that polls as writable takes this much without blocking.
const WRITE_BYTES: usize = 4096;
/// How long a client that has ended its input, or shut us down, may take nothing at all before we go.
const END_PATIENCE: Duration = Duration::from_millis(800);

impl Session<'_> {
    /// Writes everything, and waits for the client to take it. A signal that comes meanwhile ends us; all
    /// other news waits, so that it cannot pile up.
    pub(super) fn write(&mut self) -> io::Result<()> {
        if let Some(log) = &mut self.wire_log {
            log.flush();
        }
        let mut written = 0;
        while written < self.replies.len() {
            // Mostly there is room, and nothing has to be waited for.
            match self.write_now(written) {
                Ok(count) => {
                    written += count;
                    continue;
                }
                Err(error) if is_gone(error) => {
                    self.is_over = true;
                    break;
                }
                Err(_) => {}
            }
            let Ready { output, wake, input, .. } = &self.ready;
            let mut descriptors = [
                PollFd::new(output, PollFlags::OUT),
                PollFd::new(wake, PollFlags::IN),
                // Asked for nothing: that nobody writes to it any more is reported all the same.
                PollFd::new(input, PollFlags::empty()),
            ];
            let is_ending = self.is_alone || self.has_ended || self.is_over;
            let count = if is_ending { 2 } else { 3 };
            let until_told = self.told.map(|told| told.saturating_duration_since(Instant::now()));
            let patience = until_told.or(is_ending.then_some(END_PATIENCE));
            let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
            retry_on_intr(|| poll(&mut descriptors[..count], patience.as_ref()))?;
            let [output, wake, input] = descriptors.map(|descriptor| descriptor.revents());
            if input.contains(PollFlags::HUP) {
                self.is_alone = true;
                continue;
            }
            if wake.contains(PollFlags::IN) {
                self.hear()?;
            } else if output.is_empty() || until_told == Some(Duration::ZERO) {
                // Nobody takes it in time, and we are to go.
                (self.is_over, self.is_closed) = (true, true);
                break;
            }
            if output.intersects(GONE) {
                self.is_over = true;
                break;
            }
            if output.contains(PollFlags::OUT) {
                let end = self.replies.len().min(written + WRITE_BYTES);
                let piece = &self.replies[written..end];
                match retry_on_intr(|| rustix::io::write(&self.ready.output, piece)) {
                    Ok(count) => written += count,
                    // The client went away between our look and our write.
                    Err(error) if is_gone(error) => {
                        self.is_over = true;
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.replies.clear();
        Ok(())
    }

    /// Writes as much as there is room for, without waiting; an error where that cannot be had.
    #[cfg(target_os = "linux")]
    fn write_now(&self, from: usize) -> Result<usize, Errno> {
        let rest = [io::IoSlice::new(&self.replies[from..])];
        // A pipe has no position.
        rustix::io::pwritev2(
            &self.ready.output,
            &rest,
            u64::MAX,
            rustix::io::ReadWriteFlags::NOWAIT,
        )
    }

    #[cfg(not(target_os = "linux"))]
    fn write_now(&self, _: usize) -> Result<usize, Errno> {
        Err(Errno::OPNOTSUPP)
    }
}

fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::PIPE | Errno::CONNRESET)
}
