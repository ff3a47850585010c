//! The command below a guard: how it is started, and what is said where it cannot be.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::process::Pid;

use super::Isolation;
use super::isolation::isolated;
use super::open_files;
use super::task::Task;

/// As shells have it.
const CANNOT_RUN: u8 = 126;
const NOT_THERE: u8 = 127;

/// Runs what has no line `#!` at its start, as shells do it, and most who start servers.
const SHELL: &str = "/bin/sh";

/// In a group of its own. Where it cannot be started, that is said, and this is the status.
///
/// Nothing else is heard meanwhile: where the program is on a disk that does not answer, we wait with it.
pub(super) fn start(task: &Task) -> Result<Pid, u8> {
    // For us too, who need few.
    open_files::allow(task.open_files);
    let started = match spawn(task, task.program.as_os_str(), None) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOEXEC) => {
            spawn(task, SHELL.as_ref(), Some(task.program.as_os_str()))
        }
        started => started,
    };
    started.map(|child| Pid::from_child(&child)).map_err(|error| {
        let _ = writeln!(io::stderr(), "{}", reason(task, &error));
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        if is_missing { NOT_THERE } else { CANNOT_RUN }
    })
}

fn spawn(task: &Task, program: &OsStr, first: Option<&OsStr>) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(first).args(&task.arguments).current_dir(&task.folder).process_group(0);
    match task.isolation {
        Isolation::OutOfReach => isolated(|| command.spawn()),
        Isolation::Watched => command.spawn(),
    }
}

/// The command has our input and outputs; we have them no more.
pub(super) fn let_go() -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

fn reason(task: &Task, error: &io::Error) -> String {
    let program = task.program.display();
    let hint = match Errno::from_io_error(error) {
        // The file itself was looked at before.
        Some(Errno::NOENT) if task.folder.is_dir() => {
            "the interpreter in its first line is not there, or it is for another system"
        }
        Some(Errno::ACCESS) => "it may not be executed where it is",
        Some(Errno::TOOBIG) => "its arguments and variables are too long",
        _ => {
            return format!(
                "`{program}` could not be started in `{}`: {error}",
                task.folder.display()
            );
        }
    };
    format!("`{program}` could not be started: {hint}")
}
