//! What a guard leaves behind. Our process is a subreaper above its guards: when one ends, the kernel makes us the
//! parent of whatever is still below it, in whichever session that is. We kill that until nothing is left. A guard
//! that does its work leaves nothing, so this is for one that was killed or hindered.
//!
//! Our children are guards, processes in our own session, those that we had before the first guard, and such orphans.
//! No process below a guard can be in our session, because the guard has left it before it starts its command.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

use super::{children, processes, spawner};

/// How often we look for processes that were just being started.
const LOOKS: usize = 400;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Children that are not orphans, with the number of their entry: a process number comes back in time.
static KNOWN: Mutex<Option<HashMap<u32, u64>>> = Mutex::new(None);

/// Keeps a guard from being taken for an orphan, until it was waited for.
#[derive(Debug)]
pub(super) struct GuardEntry {
    pid: u32,
    number: u64,
}

impl GuardEntry {
    /// Called on the spawner thread, like [`kill_once`], so that no guard is without an entry.
    pub(super) fn new(pid: u32) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        KNOWN.lock().get_or_insert_default().insert(pid, number);
        Self { pid, number }
    }
}

impl Drop for GuardEntry {
    fn drop(&mut self) {
        let mut known = KNOWN.lock();
        let known = known.get_or_insert_default();
        // A new guard may have the process number by now.
        if known.get(&self.pid) == Some(&self.number) {
            known.remove(&self.pid);
        }
    }
}

/// Spares the children that we have before the first guard: a program that became ours by `exec` may have started some.
pub(super) fn spare_present() -> io::Result<()> {
    for pid in orphans()? {
        std::mem::forget(GuardEntry::new(pid.as_raw_pid().unsigned_abs()));
    }
    Ok(())
}

/// Kills all orphans, after a guard has ended.
pub(super) async fn kill() {
    for _ in 0..LOOKS {
        match spawner::on_thread(kill_once).await {
            Ok(0) => return,
            // As long as no more files can be opened, nobody knows whether there are any.
            Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    tracing::warn!("processes below a guard that has ended do not die, or cannot be listed");
}

/// Returns how many there were, also if all of them are dead by now: their children became ours when they died, and are
/// seen by the next look only.
fn kill_once() -> io::Result<usize> {
    let orphans = orphans()?;
    for pid in &orphans {
        // A child keeps its number until it is waited for, which for orphans nobody else does.
        let _ = kill_process(*pid, Signal::KILL);
        let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
    }
    Ok(orphans.len())
}

fn orphans() -> io::Result<Vec<Pid>> {
    // None if its leader is outside our PID namespace, as in a container that was given one. A guard makes its session
    // inside, so an orphan has one that we can see. `getsid` of rustix takes it that there always is one.
    let ours = processes::session(getpid())?;
    let mut orphans = children::of_process()?;
    let known = KNOWN.lock().clone().unwrap_or_default();
    orphans.retain(|pid| !known.contains_key(&pid.as_raw_pid().unsigned_abs()));
    let mut elsewhere = Vec::new();
    for pid in orphans {
        let session = processes::session(pid)?;
        if session.is_some() && session != ours {
            elsewhere.push(pid);
        }
    }
    Ok(elsewhere)
}

#[cfg(test)]
pub(super) fn is_known(pid: u32) -> bool {
    KNOWN.lock().get_or_insert_default().contains_key(&pid)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    /// The children of an orphan that is dead and reaped at once become ours after the look that found it.
    #[test]
    #[expect(clippy::zombie_processes, reason = "`kill_once` reaps it")]
    fn orphan_that_is_reaped_at_once_calls_for_another_look() {
        let orphan = Command::new("setsid").arg("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&orphan);
        while !orphans().unwrap().contains(&pid) {
            std::thread::sleep(PAUSE);
        }
        kill_process(pid, Signal::KILL).unwrap();
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert_ne!(kill_once().unwrap(), 0);
        assert!(!orphans().unwrap().contains(&pid));
    }
}
