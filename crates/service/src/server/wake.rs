//! Wakes the thread that waits for its client, from any other thread and from a signal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};

/// The end that is polled.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

/// The end that wakes. What it is about is found elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

/// Our own byte; a signal writes another.
const NEWS: u8 = b'w';

/// What woke us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    News,
    Signal,
}

impl Wake {
    pub(crate) fn new() -> io::Result<(Self, Waker)> {
        let (wake, waker) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok((Self(wake), Waker(Arc::new(waker))))
    }

    /// Takes note of everything that has come. Waits, if nothing has.
    pub(crate) fn read(&self) -> io::Result<Woken> {
        let mut bytes = [0; 256];
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut bytes[..]))?;
        let is_news = bytes[..count].iter().all(|byte| *byte == NEWS);
        Ok(if is_news { Woken::News } else { Woken::Signal })
    }
}

impl std::task::Wake for Waker {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Waker {
    pub(crate) fn wake(&self) {
        // Whoever polls is gone only when the process ends.
        let _ = rustix::io::write(&*self.0, &[NEWS]);
    }

    /// The same for futures.
    pub(crate) fn for_tasks(&self) -> std::task::Waker {
        Arc::new(self.clone()).into()
    }

    /// SIGTERM and SIGINT wake instead of ending the process.
    pub(crate) fn on_signals(&self) -> io::Result<()> {
        for signal in [SIGTERM, SIGINT] {
            signal_hook::low_level::pipe::register(signal, self.0.try_clone()?)?;
        }
        Ok(())
    }
}
