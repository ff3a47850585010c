//! The two walls of Linux. Either would do alone for what a program may try; a hole in one is covered by the other.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetStatus, Scope,
};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter_all_threads,
};

use super::Gap;

/// The newest that we know; an older kernel gives what it has.
const NEWEST: ABI = ABI::V6;

/// No files, no network, nobody else's processes.
pub(super) fn landlock() -> Option<Gap> {
    let given_up = || -> Result<RulesetStatus, landlock::RulesetError> {
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?;
        Ok(rules.create()?.restrict_self()?.ruleset)
    };
    match given_up() {
        Ok(RulesetStatus::FullyEnforced) => None,
        Ok(RulesetStatus::PartiallyEnforced) => Some(Gap::NewerLandlock),
        Ok(RulesetStatus::NotEnforced) | Err(_) => Some(Gap::Landlock),
    }
}

/// What is left: memory, time, what is open already, and the end.
const ALLOWED: [i64; 23] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
];

/// Which argument of a call, and how it compares with what.
type Condition = (u8, SeccompCmpOp, u64);

/// What is left in some cases. All conditions of a line have to be met.
fn allowed_if() -> Vec<(i64, Vec<Condition>)> {
    use SeccompCmpOp::{Eq, MaskedEq};
    let flag = |flag: libc::c_int| u64::from(flag.unsigned_abs());
    let is_data = (2, MaskedEq(flag(libc::PROT_EXEC)), 0);
    let is_no_file = (3, MaskedEq(flag(libc::MAP_ANONYMOUS)), flag(libc::MAP_ANONYMOUS));
    let is_own = (0, Eq, u64::from(std::process::id()));
    // Whatever else is open: somebody may have left it open for us.
    let is = |descriptor: libc::c_int| (0, Eq, flag(descriptor));
    vec![
        (libc::SYS_mmap, vec![is_data.clone(), is_no_file]),
        (libc::SYS_mprotect, vec![is_data]),
        (libc::SYS_read, vec![is(libc::STDIN_FILENO)]),
        (libc::SYS_write, vec![is(libc::STDOUT_FILENO)]),
        (libc::SYS_write, vec![is(libc::STDERR_FILENO)]),
        // It may end itself, and nobody else.
        (libc::SYS_tgkill, vec![is_own]),
    ]
}

pub(super) fn seccomp() -> Option<Gap> {
    let apply = || -> Result<(), Box<dyn std::error::Error>> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.into_iter().map(|call| (call, Vec::new())).collect();
        for (call, conditions) in allowed_if() {
            let conditions: Result<Vec<_>, _> = conditions
                .into_iter()
                .map(|(argument, how, value)| {
                    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
                })
                .collect();
            rules.entry(call).or_default().push(SeccompRule::new(conditions?)?);
        }
        // Whoever asks for more hears that it may not, and can go on without: the time zone is looked for in files, say.
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, ARCH.try_into()?)?;
        let filter: seccompiler::BpfProgram = filter.try_into()?;
        Ok(apply_filter_all_threads(&filter)?)
    };
    apply().err().map(|_| Gap::Seccomp)
}
