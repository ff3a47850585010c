//! Keeps a guard, and us, out of reach of the command that it guards. Everything runs as the same user, so the
//! command could kill its guard and go on. Two things prevent that, for the command and all that it starts:
//!
//! - A Landlock domain: no process in it can signal or trace a process outside. Tracing includes `process_vm_writev`,
//!   `pidfd_getfd`, `/proc/<pid>/mem` and `move_pages`.
//! - A seccomp filter ([`filter`]): no process can change the resource limits of another. A guard or a server
//!   that may open no file, or has used up its CPU time, is as good as killed.
//!
//! Neither covers what only slows us down (`setpriority`, `sched_setaffinity`, `ioprio_set`), `/proc/<pid>/oom_score_adj`,
//! which needs a system without memory, and other services that act for the user, such as `systemd --user`.
//!
//! The kernel wants `no_new_privs` for the filter, with which setuid programs gain nothing. Commands that need
//! them are not isolated, and [`orphans`](super::orphans) is what remains for those.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What stands between a command and its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// The command cannot signal, trace or limit its guard or us.
    OutOfReach,
    /// The command can kill its guard; then we kill what the command has left, as long as we live.
    Watched,
}

/// The best that this system has. `OutOfReach` needs Linux 6.12. Tries it, on a thread of its own.
pub fn best_isolation() -> Isolation {
    #[cfg(target_os = "linux")]
    if matches!(std::thread::spawn(enter).join(), Ok(Ok(()))) {
        return Isolation::OutOfReach;
    }
    Isolation::Watched
}

/// Programs that start setuid helpers: `podman` (without root), and all that is installed by `snap`.
const NEED_PRIVILEGES: [&str; 2] = ["podman", "snap"];
const ROOT: u32 = 0;
const SETUID_OR_SETGID: u32 = 0o6000;
const CAPABILITIES: &str = "security.capability";

/// Whether a program gains privileges when it is started, as `sudo` does, or is known to need that. Only a file of root's
/// counts: a user could give any file of their own such a name or mode, to escape isolation.
pub(super) fn needs_privileges(program: &Path) -> bool {
    let Ok(program) = program.canonicalize() else { return false };
    let Ok(file) = fs::metadata(&program) else { return false };
    let is_known = NEED_PRIVILEGES.iter().any(|name| program.file_name() == Some(OsStr::new(name)));
    let is_setuid = file.mode() & SETUID_OR_SETGID != 0;
    file.uid() == ROOT && (is_known || is_setuid || has_capabilities(&program))
}

#[cfg(target_os = "linux")]
fn has_capabilities(program: &Path) -> bool {
    rustix::fs::getxattr(program, CAPABILITIES, &mut [0_u8; 0]).is_ok_and(|bytes| bytes > 0)
}

#[cfg(not(target_os = "linux"))]
fn has_capabilities(_: &Path) -> bool {
    false
}

/// Runs `start` so that what it starts cannot reach us, as far as the system can do that.
#[cfg(target_os = "linux")]
pub(super) fn isolated<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    // A domain and a filter belong to a thread and its descendants; ours must not have them.
    std::thread::scope(|scope| {
        let isolated = || {
            let _ = enter();
            start()
        };
        match scope.spawn(isolated).join() {
            Ok(started) => started,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn isolated<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    start()
}

/// Restricts this thread and all that it starts. Fails if the kernel does not know Landlock's scope of signals; the filter
/// would be in vain then.
#[cfg(target_os = "linux")]
fn enter() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    use landlock::{
        CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
    };

    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.scope(Scope::Signal)?.create()?.no_new_privs(true).restrict_self()?;
    Ok(seccompiler::apply_filter(&filter::program())?)
}

/// Refuses (`EPERM`) to change the limits of a process by its number. Reading them, and changing one's own with 0 for the
/// number, as libraries and shells do, is allowed. A process that names itself by its number (`prlimit --pid $$`) is refused
/// as well: a filter outlives `fork`, so it cannot know the number of its process.
///
/// It is written by hand because `seccompiler` kills programs of another architecture, such as those of 32 bits.
#[cfg(target_os = "linux")]
mod filter {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    use libc::{EPERM, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO};
    use seccompiler::sock_filter;

    /// The numbers of `prlimit64`, each with the architecture (`AUDIT_ARCH_…`): of the system, and of all that its
    /// kernel can also run.
    #[cfg(target_arch = "x86_64")]
    const CALLS: &[(u32, u32)] =
        &[(0xc000_003e, 302), (0xc000_003e, 0x4000_0000 | 302), (0x4000_0003, 340)];
    #[cfg(target_arch = "aarch64")]
    const CALLS: &[(u32, u32)] = &[(0xc000_00b7, 261), (0x4000_0028, 369)];
    #[cfg(target_arch = "riscv64")]
    const CALLS: &[(u32, u32)] = &[(0xc000_00f3, 261)];
    /// An empty filter is refused, so the best isolation is `Watched`.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    const CALLS: &[(u32, u32)] = &[];

    /// Where `struct seccomp_data` has what is compared, in words of 32 bits. The systems above are little-endian.
    const CALL: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const PID: u32 = 16;
    const NEW_LIMIT: [u32; 2] = [32, 36];

    pub(super) fn program() -> Vec<sock_filter> {
        let mut program = Vec::new();
        for (index, (architecture, call)) in CALLS.iter().enumerate() {
            // Over the calls that follow, of four instructions each, and the permission after them.
            let to_arguments = u8::try_from(4 * (CALLS.len() - index - 1) + 1).unwrap_or(u8::MAX);
            program.extend([
                load(ARCHITECTURE),
                jump_if(*architecture, 0, 2),
                load(CALL),
                jump_if(*call, to_arguments, 0),
            ]);
        }
        if program.is_empty() {
            return program;
        }
        program.extend([
            answer(SECCOMP_RET_ALLOW),
            load(PID),
            jump_if(0, 4, 0),
            load(NEW_LIMIT[0]),
            jump_if(0, 0, 3),
            load(NEW_LIMIT[1]),
            jump_if(0, 0, 1),
            answer(SECCOMP_RET_ALLOW),
            answer(SECCOMP_RET_ERRNO | EPERM.unsigned_abs()),
        ]);
        program
    }

    fn load(offset: u32) -> sock_filter {
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)
    }

    /// Skips `jt` instructions if the loaded word is `value`, else `jf`.
    fn jump_if(value: u32, jt: u8, jf: u8) -> sock_filter {
        instruction(BPF_JMP | BPF_JEQ | BPF_K, jt, jf, value)
    }

    fn answer(action: u32) -> sock_filter {
        instruction(BPF_RET | BPF_K, 0, 0, action)
    }

    fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
        // All codes are below 256.
        sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    const OTHER_USER: u32 = 65_534;

    #[test]
    fn setuid_programs_and_their_known_users_need_privileges() {
        let folder = tempfile::tempdir().unwrap();
        let [plain, setuid, snap, link] =
            ["plain", "setuid", "snap", "node"].map(|name| folder.path().join(name));
        for (file, mode) in [(&plain, 0o755), (&setuid, 0o4755), (&snap, 0o755)] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink(&snap, &link).unwrap();
        let need = || [&plain, &setuid, &snap, &link].map(|program| needs_privileges(program));
        if rustix::process::geteuid().is_root() {
            assert_eq!(need(), [false, true, true, true]);
            for file in [&setuid, &snap] {
                chown(file, Some(OTHER_USER), None).unwrap();
            }
            // A change of the owner clears the bit.
            fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).unwrap();
        }
        // Files of a user.
        assert_eq!(need(), [false; 4]);
        assert!(!needs_privileges(Path::new("/bin/sh")));
    }
}
