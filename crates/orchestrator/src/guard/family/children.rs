//! The children of this process, which has one thread, with those that have ended and were not waited for.

use std::fs;

use rustix::process::{Pid, getpid};

/// May miss one that comes while it looks.
pub(super) fn list() -> Vec<Pid> {
    // The kernel's own list costs what there is in it. Not every kernel is built with it.
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(children) => children.split_whitespace().filter_map(number).collect(),
        Err(_) => among_all(),
    }
}

/// Looks at every process there is.
fn among_all() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let us = getpid();
    let names = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| number(&name)).filter(|pid| parent(*pid) == Some(us)).collect()
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // `pid (name) state parent …`; a name can have anything in it, and no number after it can.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    number(rest.split_whitespace().nth(1)?)
}

fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_ways_see_the_same_children() {
        let mut sleep = Command::new("sleep");
        sleep.arg("100").stdin(Stdio::null());
        let mut children: Vec<_> = (0..3).map(|_| sleep.spawn().unwrap()).collect();
        let pids: Vec<Pid> = children.iter().map(Pid::from_child).collect();
        let (listed, among_all) = (list(), among_all());
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for pid in pids {
            assert!(among_all.contains(&pid), "{among_all:?}");
            // Only those of this thread.
            assert!(listed.contains(&pid), "{listed:?}");
            assert!(!list().contains(&pid));
        }
    }
}
