//! The signals of a guard: each wakes it, and two of them ask it to end what it guards.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// How the end is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Politely,
    /// There is nobody any more who would wait.
    AtOnce,
}

#[derive(Debug)]
pub(super) struct Signals {
    wake: UnixStream,
    politely: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let signals = Self { wake, politely: Arc::default(), at_once: Arc::default() };
        let flags = [
            (SIGTERM, Some(&signals.politely)),
            (SIGINT, Some(&signals.politely)),
            (SIGHUP, Some(&signals.at_once)),
            (SIGQUIT, Some(&signals.at_once)),
            (SIGCHLD, None),
        ];
        for (signal, flag) in flags {
            // What it means is noted before anybody is woken by it.
            if let Some(flag) = flag {
                signal_hook::flag::register(signal, Arc::clone(flag))?;
            }
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(signals)
    }

    pub(super) fn asked(&self) -> Option<Asked> {
        if self.at_once.load(Ordering::SeqCst) {
            return Some(Asked::AtOnce);
        }
        self.politely.load(Ordering::SeqCst).then_some(Asked::Politely)
    }

    /// Until a signal comes, or has come since the last time; at most this long, where it is said.
    pub(super) fn wait(&self, at_most: Option<Duration>) {
        let at_most = at_most.and_then(|duration| Timespec::try_from(duration).ok());
        let mut polled = [PollFd::new(&self.wake, PollFlags::IN)];
        // An error is an interruption: whoever waits looks around and comes back.
        let _ = poll(&mut polled, at_most.as_ref());
        let mut bytes = [0; 64];
        while matches!((&self.wake).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }
}
