//! What a process gives up for good before it runs a program: by limits of the system, by Landlock (files, network) and by a
//! list of the system calls that are left. What a machine does not offer is named, and said loudly.

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::limits::Limits;

#[cfg(target_os = "linux")]
mod linux;

/// What the process itself has in its memory beside the program: its binary, its libraries, what the engine needs.
const BESIDE: u64 = 512 * 1024 * 1024;
/// How much longer than its time a program's processor time may be.
const SECONDS_MORE: u64 = 2;

/// Before there is another thread. The names of what could not be had.
pub(super) fn before(limits: &Limits, stack: usize) -> Vec<&'static str> {
    let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    let memory = BESIDE.saturating_add(bytes(limits.memory)).saturating_add(bytes(stack));
    let bounds = [
        (Resource::As, memory),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Cpu, limits.time.as_secs().saturating_add(SECONDS_MORE)),
    ];
    let mut missing = Vec::new();
    for (resource, most) in bounds {
        // Who has used up the processor is told so first, and killed only then: so it can be known.
        let last = most + u64::from(resource == Resource::Cpu);
        let limit = Rlimit { current: Some(most), maximum: Some(last) };
        if setrlimit(resource, limit).is_err() {
            missing.push("limits of the system");
        }
    }
    missing.dedup();
    #[cfg(target_os = "linux")]
    missing.extend(linux::landlock());
    #[cfg(not(target_os = "linux"))]
    missing.push("Landlock and seccomp, which only Linux has");
    missing
}

/// Once all threads are there.
pub(super) fn after() -> Vec<&'static str> {
    let mut missing = Vec::new();
    // No file can be opened any more, whatever it is: what is open has the lowest numbers. One has to be left, for nothing can
    // be waited for otherwise.
    for (resource, most) in [(Resource::Nofile, 1), (Resource::Nproc, 0)] {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        if setrlimit(resource, limit).is_err() {
            missing.push("limits of the system");
        }
    }
    missing.dedup();
    #[cfg(target_os = "linux")]
    missing.extend(linux::seccomp());
    missing
}
