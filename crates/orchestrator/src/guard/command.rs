//! The command below a guard: how it is started, and what is said where it cannot be.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::Pid;

use super::open_files;
use super::task::Task;

/// As shells have it.
const CANNOT_RUN: u8 = 126;
const NOT_THERE: u8 = 127;

/// In a group of its own. It has our input and outputs; we have them no more. Where it cannot be started, that is said,
/// and this is the status.
pub(super) fn start(task: &Task) -> io::Result<Result<Pid, u8>> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    // For us too, who need few.
    open_files::allow(task.open_files);
    let mut command = Command::new(&task.program);
    command.args(&task.arguments).current_dir(&task.folder).process_group(0);
    let child = match command.spawn() {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            let _ = writeln!(io::stderr(), "{}", reason(task, &error));
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(Err(if is_missing { NOT_THERE } else { CANNOT_RUN }));
        }
    };
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(Ok(child))
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
