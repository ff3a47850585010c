//! What this process has.

use std::fs;
use std::time::{Duration, Instant};

use sandbox::Sandbox;

use crate::world::{BOUND, children};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Has {
    threads: usize,
    processes: usize,
    descriptors: usize,
    /// In bytes.
    memory: u64,
}

impl Has {
    /// Once all that is about to end has ended.
    pub(crate) fn settled(sandbox: &Sandbox) -> Self {
        let began = Instant::now();
        while !sandbox.is_idle() || children() > 0 || has_programs() {
            assert!(began.elapsed() < BOUND, "programs go on");
            std::thread::sleep(Duration::from_millis(5));
        }
        // What tasks had open is closed when they are next looked at.
        let open = || count("/proc/self/fd");
        let mut least = open();
        let mut same = 0;
        while same < 20 {
            std::thread::sleep(Duration::from_millis(5));
            same = if open() < least { 0 } else { same + 1 };
            least = least.min(open());
        }
        Self {
            threads: count("/proc/self/task"),
            processes: children(),
            descriptors: least,
            memory: resident(),
        }
    }

    pub(crate) fn assert_no_more_than(self, before: Self, kept_max: u64) {
        assert!(self.threads <= before.threads, "threads are left");
        assert!(self.processes <= before.processes, "processes are left");
        assert!(self.descriptors <= before.descriptors, "descriptors are left");
        let kept = self.memory.saturating_sub(before.memory);
        assert!(kept <= kept_max, "{} MiB are kept", kept >> 20);
    }
}

/// Threads that are at their very end are still there.
fn has_programs() -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.into_iter().any(|name| name.trim() == "program")
}

fn count(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    kibibytes * 1024
}
