//! Waits until something happens: a line, a client that is gone, or news. The kernel is told once what to
//! look at, where it can be; a file in place of a pipe, and other systems, are polled.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use crate::server::wake::Wake;

/// How a closed reader shows: an error on a pipe, a hang-up on a socket, which is what some clients
/// give us for a pipe.
pub(super) const GONE: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);

/// What is looked at.
pub(super) struct Ready<'a> {
    pub(super) input: BorrowedFd<'a>,
    pub(super) output: OwnedFd,
    pub(super) wake: Wake,
    told: Option<Told>,
}

/// What has happened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Awake {
    /// There is something to read, be it the end.
    pub(super) input: bool,
    /// The client has closed its end.
    pub(super) is_gone: bool,
    pub(super) woken: bool,
    /// Nothing, for as long as we wanted to wait.
    pub(super) is_silent: bool,
}

impl<'a> Ready<'a> {
    pub(super) fn new(input: BorrowedFd<'a>, output: OwnedFd, wake: Wake) -> Self {
        let told = Told::new(input, output.as_fd(), wake.as_fd());
        Self { input, output, wake, told: told.ok() }
    }

    /// Waits for anything; for a line only where it may be read.
    pub(super) fn wait(&self, may_read: bool, patience: Option<&Timespec>) -> io::Result<Awake> {
        if let Some(told) = self.told.as_ref().filter(|_| may_read) {
            return told.wait(patience);
        }
        let mut descriptors = [
            // Asked for nothing: a closed reader is reported all the same.
            PollFd::new(&self.output, PollFlags::empty()),
            PollFd::new(&self.wake, PollFlags::IN),
            PollFd::new(&self.input, PollFlags::IN),
        ];
        let count = if may_read { 3 } else { 2 };
        let happened = retry_on_intr(|| poll(&mut descriptors[..count], patience))?;
        let [output, wake, input] = descriptors.map(|descriptor| descriptor.revents());
        Ok(Awake {
            input: !input.is_empty(),
            is_gone: output.intersects(GONE),
            woken: wake.contains(PollFlags::IN),
            is_silent: happened == 0,
        })
    }

    /// Waits until another thread or a signal wakes us; false at the deadline.
    pub(super) fn wait_to_be_woken(&self, deadline: Instant) -> io::Result<bool> {
        let rest = deadline.saturating_duration_since(Instant::now());
        let patience = Timespec::try_from(rest).unwrap_or_default();
        let mut wake = [PollFd::new(&self.wake, PollFlags::IN)];
        Ok(retry_on_intr(|| poll(&mut wake, Some(&patience)))? > 0)
    }
}

/// The kernel, told what to look at: a third of a poll's cost.
#[cfg(target_os = "linux")]
struct Told(OwnedFd);

#[cfg(target_os = "linux")]
impl Told {
    const INPUT: u64 = 0;
    const OUTPUT: u64 = 1;
    const WAKE: u64 = 2;

    fn new(
        input: BorrowedFd<'_>,
        output: BorrowedFd<'_>,
        wake: BorrowedFd<'_>,
    ) -> io::Result<Self> {
        use rustix::event::epoll::{CreateFlags, EventData, EventFlags, add, create};
        let epoll = create(CreateFlags::CLOEXEC)?;
        add(&epoll, input, EventData::new_u64(Self::INPUT), EventFlags::IN)?;
        add(&epoll, output, EventData::new_u64(Self::OUTPUT), EventFlags::empty())?;
        add(&epoll, wake, EventData::new_u64(Self::WAKE), EventFlags::IN)?;
        Ok(Self(epoll))
    }

    fn wait(&self, patience: Option<&Timespec>) -> io::Result<Awake> {
        use rustix::event::epoll::{Event, EventData, EventFlags, wait};
        let none = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; 3];
        let count = retry_on_intr(|| wait(&self.0, &mut events[..], patience))?;
        let mut awake = Awake { is_silent: count == 0, ..Awake::default() };
        for event in &events[..count] {
            match event.data.u64() {
                Self::INPUT => awake.input = true,
                // It was asked for nothing, so this is an error or a hang-up.
                Self::OUTPUT => awake.is_gone = true,
                _ => awake.woken = true,
            }
        }
        Ok(awake)
    }
}

#[cfg(not(target_os = "linux"))]
struct Told;

#[cfg(not(target_os = "linux"))]
impl Told {
    fn new(_: BorrowedFd<'_>, _: BorrowedFd<'_>, _: BorrowedFd<'_>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn wait(&self, _: Option<&Timespec>) -> io::Result<Awake> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
