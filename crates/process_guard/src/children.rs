//! The children of this process, including those that have ended and were not waited for.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::process::{Pid, getpid};

use super::processes::{all, number, parent};

/// The children of one thread. The file stays open, so that a limit of open files that somebody lowers
/// later does not hide them.
#[derive(Debug)]
pub(super) struct ThreadChildren {
    /// The kernel's own list, whose cost is that of its entries. Not every kernel is built with it.
    file: Option<File>,
}

impl ThreadChildren {
    /// Those of the calling thread.
    pub(super) fn open() -> Self {
        Self { file: File::open("/proc/thread-self/children").ok() }
    }

    /// May miss one that starts meanwhile. An error does not mean that there are none.
    pub(super) fn list(&self) -> io::Result<Vec<Pid>> {
        let Some(file) = &self.file else { return among_all() };
        let (mut text, mut bytes) = (Vec::new(), [0; 1024]);
        loop {
            let count = file.read_at(&mut bytes, u64::try_from(text.len()).unwrap_or(u64::MAX))?;
            match bytes.get(..count) {
                Some(read) if count > 0 => text.extend_from_slice(read),
                _ => return Ok(numbers(&String::from_utf8_lossy(&text))),
            }
        }
    }
}

/// Those of all threads of this process.
pub(super) fn of_process() -> io::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for thread in fs::read_dir("/proc/self/task")? {
        match fs::read_to_string(thread?.path().join("children")) {
            Ok(text) => children.extend(numbers(&text)),
            // The thread has ended, or the kernel has no such list.
            Err(_) => return among_all(),
        }
    }
    Ok(children)
}

fn numbers(text: &str) -> Vec<Pid> {
    text.split_whitespace().filter_map(number).collect()
}

/// Looks at every process of the system.
fn among_all() -> io::Result<Vec<Pid>> {
    let us = getpid();
    let mut children = Vec::new();
    for pid in all()? {
        if parent(pid)? == Some(us) {
            children.push(pid);
        }
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn all_lists_have_the_same_children() {
        let mut sleep = Command::new("sleep");
        sleep.arg("100").stdin(Stdio::null());
        let thread = ThreadChildren::open();
        let mut children: Vec<_> = (0..3).map(|_| sleep.spawn().unwrap()).collect();
        let pids: Vec<Pid> = children.iter().map(Pid::from_child).collect();
        let lists = [thread.list().unwrap(), of_process().unwrap(), among_all().unwrap()];
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for pid in pids {
            assert!(lists.iter().all(|list| list.contains(&pid)), "{lists:?}");
            assert!(!thread.list().unwrap().contains(&pid));
        }
    }
}
