//! The guard itself: a process that starts a command, waits for it without doing anything, and ends all that is below
//! it when the command ends, when it is told to, and when whoever started it is gone.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{getppid, setsid};

use super::command;
use super::family::Family;
use super::signals::{Asked, Signals};
use super::task::{self, Task};

/// How long everything may take to end when it is asked to, before it is killed.
pub(super) const POLITE_GRACE: Duration = Duration::from_secs(2);
/// The same when nobody is there any more who could wait.
const SHORT_GRACE: Duration = Duration::from_millis(200);
/// How long it is killed again and again. What is still there then waits for a disk, and dies when that answers.
pub(super) const KILL_BOUND: Duration = Duration::from_secs(10);
/// Between two looks at what was killed, where no signal comes.
const KILL_PAUSE: Duration = Duration::from_millis(5);
/// How often a guard looks whether it is an orphan, where the kernel does not tell it.
const LOOK: Option<Duration> =
    if cfg!(target_os = "linux") { None } else { Some(Duration::from_millis(500)) };

/// Where the guard itself failed.
const FAILED: u8 = 125;
/// Of a command that was killed and is not dead yet.
const KILLED: u8 = 137;

pub(super) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(task) = Task::read(words) else {
        let _ = writeln!(io::stderr(), "`{}` is not to be called by hand", task::GUARD);
        return ExitCode::from(FAILED);
    };
    match guard(&task) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let _ = writeln!(io::stderr(), "the guard of a command failed: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn guard(task: &Task) -> io::Result<u8> {
    let parent = task.parent;
    let signals = Signals::new()?;
    prepare()?;
    // Whoever died before we asked for a signal sends none any more.
    if getppid() != Some(parent) || signals.asked().is_some() {
        return Ok(FAILED);
    }
    let mut family = match Family::start(task) {
        Ok(family) => family,
        Err(status) => return Ok(status),
    };
    if let Err(error) = command::let_go() {
        end(&mut family, &signals, Some(Asked::AtOnce));
        return Err(error);
    }
    let asked = loop {
        if family.status().is_some() {
            break None;
        }
        if getppid() != Some(parent) {
            break Some(Asked::AtOnce);
        }
        if let Some(asked) = signals.asked() {
            break Some(asked);
        }
        // Those that stay dead are found again at the end.
        let _ = family.reap();
        signals.wait(LOOK);
    };
    end(&mut family, &signals, asked);
    Ok(family.status().unwrap_or(KILLED))
}

/// Orphans of ours come to us, and the end of our parent does.
#[cfg(target_os = "linux")]
fn prepare() -> io::Result<()> {
    use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};

    leave_session();
    // Only for those who look at a list of processes.
    let _ = rustix::thread::set_name(c"mcp-guard");
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::HUP))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn prepare() -> io::Result<()> {
    leave_session();
    Ok(())
}

/// What a user types at a terminal is for us and not for children of ours, who cannot ask there either: they have no
/// terminal any more, instead of being stopped when they use it.
fn leave_session() {
    // Who leads a group already, started by hand, stays where it is.
    let _ = setsid();
}

/// Until nothing is left. Where the command ended by itself, what it left behind has a moment.
fn end(family: &mut Family, signals: &Signals, asked: Option<Asked>) {
    let start = Instant::now();
    let mut is_polite = asked == Some(Asked::Politely);
    while !family.is_gone() {
        is_polite &= signals.asked() != Some(Asked::AtOnce);
        let grace = if is_polite { POLITE_GRACE } else { SHORT_GRACE };
        let Some(left) = grace.checked_sub(start.elapsed()) else { break };
        family.tell();
        signals.wait(Some(left));
    }
    let start = Instant::now();
    while !family.is_gone() && start.elapsed() < KILL_BOUND {
        family.kill();
        signals.wait(Some(KILL_PAUSE));
    }
}
