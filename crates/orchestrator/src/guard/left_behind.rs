//! What a guard leaves behind that was killed: all who are in its session, which has the guard's number. The kernel gives that
//! to nobody else as long as one of them is there; so where a process has it, after the guard was waited for, none of them is.

use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::processes;

/// How often it is looked for those who were just being started.
const LOOKS: usize = 20;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn kill(guard: u32) {
    let Some(session) = i32::try_from(guard).ok().and_then(Pid::from_raw) else { return };
    for _ in 0..LOOKS {
        let killed = tokio::task::spawn_blocking(move || kill_all(session)).await;
        if killed.unwrap_or_default() == 0 {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
    tracing::warn!("the guard {guard} was killed, and some of those that it guarded do not die");
}

/// How many there were.
fn kill_all(session: Pid) -> usize {
    if processes::parent(session).is_some() {
        return 0;
    }
    processes::all().filter(|pid| kill_member(session, *pid).is_some()).count()
}

/// Nothing, where it is not one of them.
fn kill_member(session: Pid, pid: Pid) -> Option<()> {
    let is_member = || processes::session(pid) == Some(session);
    if !is_member() {
        return None;
    }
    let process = pidfd_open(pid, PidfdFlags::empty());
    // It is this process that is signalled, and nobody who got its number since.
    if !is_member() {
        return None;
    }
    match process {
        Ok(process) => pidfd_send_signal(&process, Signal::KILL).ok(),
        // Not every kernel has such a thing, or gives it to us.
        Err(_) => kill_process(pid, Signal::KILL).ok(),
    }
}
