//! The process that becomes the command: it asks the kernel to be killed when its guard is gone, which holds for what
//! it becomes too, unless that is a program with rights of its own (setuid).

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::io::Errno;

use super::open_files;
use super::task::Task;

/// As shells have it.
const CANNOT_RUN: u8 = 126;
const NOT_THERE: u8 = 127;

pub(super) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(task) = Task::read(words) else {
        return ExitCode::from(CANNOT_RUN);
    };
    if !dies_with(&task) {
        return ExitCode::from(CANNOT_RUN);
    }
    open_files::allow(task.open_files);
    let mut command = Command::new(&task.program);
    let error = command.args(&task.arguments).current_dir(&task.folder).exec();
    let _ = writeln!(io::stderr(), "{}", reason(&task, &error));
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { NOT_THERE } else { CANNOT_RUN })
}

#[cfg(target_os = "linux")]
fn dies_with(task: &Task) -> bool {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    // A guard that died before we asked sends nothing any more.
    set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == Some(task.parent)
}

#[cfg(not(target_os = "linux"))]
fn dies_with(task: &Task) -> bool {
    rustix::process::getppid() == Some(task.parent)
}

fn reason(task: &Task, error: &io::Error) -> String {
    let program = task.program.display();
    let hint = match Errno::from_io_error(error) {
        // The file itself was looked at before.
        Some(Errno::NOENT) if task.folder.is_dir() => {
            "the interpreter in its first line is not there, or it is for another system"
        }
        Some(Errno::NOEXEC) => "it has no line `#!` at its start, or is for another machine",
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
