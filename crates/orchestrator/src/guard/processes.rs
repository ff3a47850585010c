//! The processes there are, as the kernel shows them.

use std::fs;

use rustix::process::Pid;

/// Everybody.
pub(super) fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| number(entry.ok()?.file_name().to_str()?))
}

pub(super) fn parent(pid: Pid) -> Option<Pid> {
    number(&stat(pid, 1)?)
}

/// Of a process that is not dead. Nothing, where it has none that we can see, as threads of the kernel.
pub(super) fn session(pid: Pid) -> Option<Pid> {
    let is_dead = matches!(stat(pid, 0)?.as_str(), "Z" | "X");
    number(&stat(pid, 3)?).filter(|_| !is_dead)
}

pub(super) fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

/// A word of `pid (name) state parent group session …`, counted from the state. A name can have anything in it, and no
/// number after it can.
fn stat(pid: Pid, at: usize) -> Option<String> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_whitespace().nth(at).map(str::to_owned)
}
