//! The children of this process, which has one thread, with those that have ended and were not waited for.

use std::fs;

use rustix::process::{Pid, getpid};

use crate::guard::processes::{all, number, parent};

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
    let us = getpid();
    all().filter(|pid| parent(*pid) == Some(us)).collect()
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
