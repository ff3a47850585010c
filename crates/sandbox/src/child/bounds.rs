//! What a process gives up for good before it runs a program: by limits of the system, by Landlock (files, network) and by a
//! list of the system calls that are left. If Landlock or seccomp is missing, no program may run unconfined unless
//! the operator has allowed it.

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::limits::Limits;
use crate::outcome::{Failure, Kind};

#[cfg(target_os = "linux")]
mod linux;

/// What the process itself has in its memory beside the program: its binary, its libraries, what the engine needs.
const BESIDE: u64 = 512 * 1024 * 1024;
/// How much longer than its time a program's processor time may be.
const SECONDS_MORE: u64 = 2;

/// A protection that this machine does not offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    ResourceLimits,
    /// The kernel has Landlock, and not all of what we use of it.
    NewerLandlock,
    Landlock,
    Seccomp,
}

impl Gap {
    fn name(self) -> &'static str {
        match self {
            Self::ResourceLimits => "resource limits",
            Self::NewerLandlock => "a newer Landlock",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
        }
    }

    /// Whether a program without it is not confined.
    fn is_confinement(self) -> bool {
        matches!(self, Self::Landlock | Self::Seccomp)
    }
}

pub(super) fn names(gaps: &[Gap]) -> String {
    gaps.iter().map(|gap| gap.name()).collect::<Vec<_>>().join(", ")
}

/// Why no program may run here, unless the operator allows it.
pub(super) fn refusal(gaps: &[Gap]) -> Option<Failure> {
    let missing: Vec<Gap> = gaps.iter().copied().filter(|gap| gap.is_confinement()).collect();
    let message = format!(
        "programs are not run here: the system cannot confine them without {}; use Linux 5.13 or later with Landlock \
         and seccomp enabled, or accept unconfined programs with `--sandbox-unconfined`",
        names(&missing).replace(", ", " and ")
    );
    (!missing.is_empty()).then(|| Failure::new(Kind::Unconfined, message))
}

/// Before there is another thread. Returns what could not be had.
pub(super) fn before(limits: &Limits, stack: usize) -> Vec<Gap> {
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
            missing.push(Gap::ResourceLimits);
        }
    }
    missing.dedup();
    #[cfg(target_os = "linux")]
    missing.extend(linux::landlock());
    #[cfg(not(target_os = "linux"))]
    missing.extend([Gap::Landlock, Gap::Seccomp]);
    missing
}

/// Once all threads are there.
pub(super) fn after() -> Vec<Gap> {
    let mut missing = Vec::new();
    // No file can be opened any more, whatever it is: what is open has the lowest numbers. One has to be left, for nothing can
    // be waited for otherwise.
    for (resource, most) in [(Resource::Nofile, 1), (Resource::Nproc, 0)] {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        if setrlimit(resource, limit).is_err() {
            missing.push(Gap::ResourceLimits);
        }
    }
    missing.dedup();
    #[cfg(target_os = "linux")]
    missing.extend(linux::seccomp());
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_confinement_refuses_programs() {
        assert_eq!(refusal(&[]), None);
        assert_eq!(refusal(&[Gap::ResourceLimits, Gap::NewerLandlock]), None);
        for gap in [Gap::Landlock, Gap::Seccomp] {
            let failure = refusal(&[Gap::ResourceLimits, gap]).unwrap();
            assert_eq!(failure.kind, Kind::Unconfined);
            assert!(failure.message.contains(&format!("without {};", gap.name())), "{failure:?}");
        }
    }
}
