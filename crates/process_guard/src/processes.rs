//! The processes of the system, as the kernel shows them.

use std::{fs, io};

use rustix::io::Errno;
use rustix::process::Pid;

pub(super) fn all() -> io::Result<impl Iterator<Item = Pid>> {
    let entries = fs::read_dir("/proc")?;
    Ok(entries.filter_map(|entry| number(entry.ok()?.file_name().to_str()?)))
}

/// None if the process is gone.
pub(super) fn parent(pid: Pid) -> io::Result<Option<Pid>> {
    stat(pid, 1)
}

/// None if the process is gone, or has no session that we can see: a thread of the kernel, or the leader is outside our
/// PID namespace.
pub(super) fn session(pid: Pid) -> io::Result<Option<Pid>> {
    stat(pid, 3)
}

pub(super) fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// A number of `pid (name) state parent group session …`, counted from the state. A name can have anything in it, and no
/// number after it can.
fn stat(pid: Pid, at: usize) -> io::Result<Option<Pid>> {
    let stat = match fs::read(format!("/proc/{}/stat", pid.as_raw_pid())) {
        Ok(stat) => stat,
        Err(error) => {
            let is_gone = matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::SRCH));
            return if is_gone { Ok(None) } else { Err(error) };
        }
    };
    let end = stat.iter().rposition(|byte| *byte == b')');
    let rest = end.and_then(|end| std::str::from_utf8(stat.get(end + 1..)?).ok());
    Ok(rest.and_then(|rest| number(rest.split_whitespace().nth(at)?)))
}
