//! Children of ours that never become orphans. Each runs below a guard: our own program, started as `__guard`, which
//! ends everything below it when it is told to, when the command ends, and when we die, however we die. It is not in
//! the way of the data: the command has our pipes, and the guard has no copy of them.
//!
//! ```text
//! us ── one thread that spawns ──> guard (`watch`) ──> the command ──> its own children
//! ```
//!
//! A guard is out of reach of its command (`isolation`), where the system can do that. Whenever a guard has ended, we kill
//! what is left of what it guarded (`orphans`). Where we are killed with it, nobody does: the command's input is closed, which tells a
//! server to end.

#[cfg(target_os = "linux")]
mod children;
mod command;
mod environment;
mod error;
mod family;
mod find;
mod guarded;
mod isolation;
mod open_files;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod processes;
mod signals;
mod spawner;
pub mod stderr;
mod task;
mod tether;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

pub use environment::is_loader;
pub use error::SpawnError;
pub use guarded::{Ended, Guarded, shown};
pub use isolation::{Isolation, best_isolation};
pub use tether::{spawn_tethered, tether};

/// A command, as an entry of the registry has it.
#[derive(Clone, Default)]
pub struct Spawn {
    /// A name to be looked for in `PATH`, or a path, which begins at `cwd` where it is relative.
    pub command: String,
    pub args: Vec<String>,
    /// Beside the few variables of ours that every child has.
    pub env: BTreeMap<String, String>,
    /// Where it runs; nothing is where we do.
    pub cwd: Option<PathBuf>,
    /// Whether it may use setuid programs, and signal, trace and limit processes outside, its guard among them.
    pub unconfined: bool,
}

/// A command that runs.
#[derive(Debug)]
pub struct Child {
    /// Who drops it closes the child's input.
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    /// Must be read, or the child stops at some point: see [`stderr::drain`].
    pub stderr: ChildStderr,
    pub guarded: Guarded,
}

/// The program that guards: one whose `main` begins with [`run_if_asked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardProgram(pub PathBuf);

impl Default for GuardProgram {
    /// The program that runs now.
    fn default() -> Self {
        Self(task::this_program())
    }
}

/// Where this process was started as a guard, it is one until its end, which is the status. The first thing that
/// `main` does: a guard should cost little.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let is_asked = words.next()? == task::GUARD;
    is_asked.then(|| watch::run(words))
}

/// Starts a command below a guard. Must be called where there is a tokio runtime.
///
/// It lives until it ends, until [`Guarded`] is ended or dropped, or until our process is gone; whatever thread or
/// runtime asked for it. What can be known before is known at once: a command that is not there, a folder that is
/// not there. What the kernel does not want to run is told on the child's standard error, and by its status: 126 or
/// 127, as shells have it.
pub async fn spawn(spawn: &Spawn, program: &GuardProgram) -> Result<Child, SpawnError> {
    let wanted = spawn.clone();
    // Folders may be on disks that do not answer.
    let looked = tokio::task::spawn_blocking(move || look(wanted));
    let (variables, task) = looked.await.map_err(|_| SpawnError::Stopped)??;
    let dropped = variables.dropped;
    if !dropped.is_empty() {
        let names = dropped.join("`, `");
        tracing::warn!(
            "`{}` does not get `{names}`: variables that load code into a program are not handed on",
            spawn.command
        );
    }
    spawner::spawn(program, task, variables.kept).await
}

/// What is decided before anything is started.
fn look(spawn: Spawn) -> Result<(environment::Clean, task::Task), SpawnError> {
    let variables = environment::clean(std::env::vars_os(), &spawn.env)?;
    let folder = find::folder(spawn.cwd)?;
    let path = variables.kept.get(std::ffi::OsStr::new("PATH"));
    let program = find::program(&spawn.command, path.map(|path| path.as_os_str()), &folder)?;
    let task = task::Task {
        parent: rustix::process::getpid(),
        open_files: None,
        isolation: match spawn.unconfined || isolation::needs_privileges(&program) {
            true => Isolation::Watched,
            false => Isolation::OutOfReach,
        },
        folder,
        program,
        arguments: spawn.args.into_iter().map(Into::into).collect(),
    };
    Ok((variables, task))
}

/// Arguments and variables may be secret.
impl fmt::Debug for Spawn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Spawn")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("unconfined", &self.unconfined)
            .finish()
    }
}
