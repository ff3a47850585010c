//! Processes by their numbers: who is whose child, who still runs, and signals to them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use crate::bounded;

const PATIENCE: Duration = Duration::from_secs(30);

struct Process {
    id: u32,
    parent: u32,
    /// `T`: stopped; `Z`: ended, and only its number is kept.
    state: char,
}

/// Whether there is such a process, and it has not ended.
pub fn is_running(id: u32) -> bool {
    state(id).is_some_and(|state| state != 'Z')
}

pub(crate) fn is_stopped(id: u32) -> bool {
    state(id).is_none_or(|state| matches!(state, 'T' | 'Z'))
}

pub(crate) fn children(of: u32) -> Vec<u32> {
    let children = all().into_iter().filter(|process| process.parent == of);
    children.map(|process| process.id).collect()
}

/// One that has ended already needs no signal.
pub(crate) fn signal(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn state(id: u32) -> Option<char> {
    if has_proc() {
        return read(&Path::new("/proc").join(id.to_string())).map(|process| process.state);
    }
    all().into_iter().find(|process| process.id == id).map(|process| process.state)
}

fn all() -> Vec<Process> {
    if has_proc() {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        return entries.filter_map(|entry| read(&entry.path())).collect();
    }
    let arguments = ["-A", "-o", "pid=,ppid=,stat="];
    let table = bounded::run(Command::new("ps").args(arguments), PATIENCE).unwrap_or_default();
    let rows = table.lines().filter_map(|row| {
        let mut fields = row.split_whitespace();
        Some(Process {
            id: fields.next()?.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
            state: fields.next()?.chars().next()?,
        })
    });
    rows.collect()
}

fn has_proc() -> bool {
    Path::new("/proc/self/stat").exists()
}

/// `12 (a name (of any) kind) S 1 …`
fn read(folder: &Path) -> Option<Process> {
    let id = folder.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read(folder.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some(Process { id, parent: fields.next()?.parse().ok()?, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_seen_stopped_and_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let id = child.id();
        assert!(children(std::process::id()).contains(&id));
        assert!(is_running(id) && !is_stopped(id));
        signal(id, Signal::STOP);
        assert!(bounded::until(PATIENCE, || is_stopped(id)));
        assert!(is_running(id));
        signal(id, Signal::KILL);
        // Nobody has asked yet how it ended, so its number is still there.
        assert!(bounded::until(PATIENCE, || !is_running(id)));
        child.wait().unwrap();
        assert!(!is_running(id));
    }
}
