//! Child processes that need no guard: they run our own binary and start no processes, so the kernel's
//! death signal alone ends them with us.
//!
//! The signal follows the thread that started the child, so the spawner thread starts it.

use std::ffi::OsStr;
use std::io;

use rustix::process::{Pid, getppid};
use tokio::process::{Child, Command};

use super::spawner;

/// Starts a command of our own binary with low priority, whose `main` calls [`tether`] with its last argument, which this
/// function appends. Must be called in a tokio runtime; with `kill_on_drop` an abandoned call leaves no
/// child.
pub async fn spawn_tethered(mut command: Command) -> io::Result<Child> {
    command.arg(std::process::id().to_string());
    spawner::on_background_thread(move || command.spawn()).await
}

/// Ties this process to the one that started it: the kernel kills it when that one dies. Fails if the
/// parent is gone already, because then no signal will come.
///
/// Only Linux has such a signal. Elsewhere the process ends when it reads the end of its input.
pub fn tether(parent: &OsStr) -> io::Result<()> {
    // Elsewhere a thread has no priority that the process could have inherited.
    #[cfg(not(target_os = "linux"))]
    let _ = rustix::process::nice(spawner::NICENESS);
    let parent = parent.to_str().and_then(|text| Pid::from_raw(text.parse().ok()?));
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    if parent.is_none() || getppid() != parent {
        return Err(io::Error::other("the parent process is gone"));
    }
    Ok(())
}
