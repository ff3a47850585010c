//! What this process has, and that it does not have more of it after something than before.

use std::fs;

use crate::processes::{Mark, until};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Has {
    descriptors: usize,
    threads: usize,
    memory: u64,
}

impl Has {
    pub(crate) fn now() -> Self {
        Self {
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            memory: status("VmRSS:"),
        }
    }

    /// From here on the peak is counted anew.
    pub(crate) fn before() -> Self {
        fs::write("/proc/self/clear_refs", "5").unwrap();
        Self::now()
    }

    pub(crate) fn assert_nothing_is_left(self, mark: &Mark, kept_max: u64, peak_max: u64) {
        assert_eq!(mark.processes(), [], "processes are left");
        let has_left = || format!("{self:?} before, and {:?} after", Self::now());
        until(has_left, || {
            let now = Self::now();
            now.descriptors <= self.descriptors && now.threads <= self.threads
        });
        // No dead child waits to be waited for.
        let error = rustix::process::wait(rustix::process::WaitOptions::NOHANG).unwrap_err();
        assert_eq!(error, rustix::io::Errno::CHILD);
        let kept = status("VmRSS:").saturating_sub(self.memory);
        let peak = status("VmHWM:").saturating_sub(self.memory);
        eprintln!("memory: {} MiB at most, {} MiB kept", peak >> 20, kept >> 20);
        assert!(kept <= kept_max, "{kept} bytes are kept");
        assert!(peak <= peak_max, "{peak} bytes at most");
    }
}

fn count(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Bytes, as the kernel tells them.
fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    let kibibytes: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    kibibytes * 1024
}
