//! A child from our side: told to end, waited for, and never forgotten.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Handle;
use tokio::time::timeout;

#[cfg(target_os = "linux")]
use super::orphans::GuardEntry;
use super::watch::{KILL_BOUND, POLITE_GRACE};

/// How long a child may take to end once its input is closed.
const CLOSED_GRACE: Duration = Duration::from_secs(2);
/// How long the guard may take for all it does, on a machine that has much to do.
const GUARD_BOUND: Duration =
    POLITE_GRACE.saturating_add(KILL_BOUND).saturating_add(Duration::from_secs(3));

/// How often a guard is signalled until it exits.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(500);

/// A child that ends when this is dropped, with everything below it.
#[derive(Debug)]
pub struct Guarded {
    /// None only while this is dropped.
    guard: Option<Guard>,
    id: u32,
}

/// The process of a guard, whose status is the command's.
#[derive(Debug)]
struct Guard {
    process: tokio::process::Child,
    /// None once it was waited for.
    #[cfg(target_os = "linux")]
    entry: Option<GuardEntry>,
    /// Whether we have killed what it left behind.
    #[cfg(target_os = "linux")]
    is_cleared: bool,
}

impl Guard {
    async fn exited(&mut self) -> io::Result<ExitStatus> {
        let status = self.process.wait().await?;
        #[cfg(target_os = "linux")]
        {
            self.entry = None;
            // Its status does not tell whether somebody hindered it.
            if !self.is_cleared {
                super::orphans::kill().await;
                self.is_cleared = true;
            }
        }
        Ok(status)
    }

    /// Signals it until it has exited. One signal is not enough: a process inherits what its parent ignores, as SIGHUP
    /// under `nohup`, and a guard that has just been started has no handler yet.
    async fn end(&mut self, signal: Signal) -> io::Result<ExitStatus> {
        loop {
            self.send(signal);
            if let Ok(exited) = timeout(SIGNAL_INTERVAL, self.process.wait()).await {
                exited?;
                return self.exited().await;
            }
        }
    }

    /// Signals the guard. It keeps its id until it is waited for, so no other process can have it.
    fn send(&self, signal: Signal) {
        let pid = self.process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
            // Somebody may have stopped it.
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

/// How a child came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// When its input was closed, or before.
    ByItself(ExitStatus),
    /// When it was told to, or killed.
    Told(ExitStatus),
    /// It was killed and is not dead: it waits for a disk. Its guard stays with it.
    NotYet,
}

impl Guarded {
    /// Takes charge of a guard that was just started.
    pub fn new(guard: tokio::process::Child) -> Self {
        let id = guard.id().unwrap_or_default();
        let guard = Guard {
            process: guard,
            #[cfg(target_os = "linux")]
            entry: Some(GuardEntry::new(id)),
            #[cfg(target_os = "linux")]
            is_cleared: false,
        };
        Self { guard: Some(guard), id }
    }

    /// The guard's process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Waits until the command has ended, and everything below it. The status is the command's: 128 and the signal's
    /// number, where a signal ended it.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        match &mut self.guard {
            Some(guard) => guard.exited().await,
            None => Err(io::Error::other("the guard was dropped")),
        }
    }

    /// Ends it politely. Whoever has its input drops that first: closing it is how a server is told to end. Then it
    /// has a while, then SIGTERM and a while, and then SIGKILL.
    pub async fn end(mut self) -> Ended {
        match timeout(CLOSED_GRACE, self.exited()).await {
            Ok(Ok(status)) => Ended::ByItself(status),
            Ok(Err(_)) => Ended::NotYet,
            Err(_) => self.told(Signal::TERM).await,
        }
    }

    /// Ends it without much waiting: a moment after SIGTERM it is killed. For one that does not answer any more.
    pub async fn end_at_once(mut self) -> Ended {
        self.told(Signal::HUP).await
    }

    async fn told(&mut self, signal: Signal) -> Ended {
        let Some(guard) = &mut self.guard else { return Ended::NotYet };
        match timeout(GUARD_BOUND, guard.end(signal)).await {
            Ok(Ok(status)) => Ended::Told(status),
            Ok(Err(_)) | Err(_) => Ended::NotYet,
        }
    }
}

impl Drop for Guarded {
    /// As if we had died. A task waits for it then.
    fn drop(&mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        guard.send(Signal::HUP);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { guard.end(Signal::HUP).await });
        }
    }
}

/// A status in words: `status 1`, `status 143 (SIGTERM)`.
pub fn shown(status: ExitStatus) -> String {
    let name = |signal| signal_hook::low_level::signal_name(signal);
    match (status.code(), status.signal()) {
        (Some(code), _) => match code.checked_sub(128).and_then(name) {
            Some(name) => format!("status {code} ({name})"),
            None => format!("status {code}"),
        },
        (None, Some(signal)) => match name(signal) {
            Some(name) => format!("signal {signal} ({name}), sent to its guard"),
            None => format!("signal {signal}, sent to its guard"),
        },
        (None, None) => "a status that is unknown".to_owned(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use tokio::process::Command;

    use super::*;
    use crate::orphans::is_known;

    #[tokio::test]
    async fn ended_guard_keeps_the_entry_of_its_successor() {
        let mut guarded = Guarded::new(Command::new("true").spawn().unwrap());
        let id = guarded.id();
        assert!(is_known(id));
        guarded.exited().await.unwrap();
        assert!(!is_known(id));
        // The kernel gives the number to the next guard.
        let successor = GuardEntry::new(id);
        drop(guarded);
        // Lets the task run that a dropped guard leaves.
        tokio::task::yield_now().await;
        assert!(is_known(id));
        drop(successor);
        assert!(!is_known(id));
    }
}
