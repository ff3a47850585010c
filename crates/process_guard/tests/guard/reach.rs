//! Commands that kill their guard, to keep their daemons. Everything runs as the same user.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use process_guard::{Child, Isolation, Spawn, best_isolation};
use rustix::process::geteuid;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::processes::{Hold, Mark, bounded, command_line, guard_program, until};

/// Leaves a daemon in a session of its own, and kills its guard when it is told to. Says how that went.
const KILLS_GUARD: &str = "(setsid sh -c 'trap \"\" TERM HUP; echo up; exec sleep 1000' &)
    read go
    kill -KILL $PPID 2>/dev/null && echo killed || echo refused
    exec sleep 1000";

/// Tries to signal and trace its guard, us, and another process of the user, without harm to any.
const REACHES_OUT: &str = "us=$(cut -d' ' -f4 /proc/$PPID/stat)
    for signal in 0 CONT; do
        for pid in $PPID $us $OTHER; do kill -$signal $pid 2>/dev/null && echo $signal $pid; done
    done
    for pid in $PPID $us $OTHER; do readlink /proc/$pid/exe > /dev/null && echo traced $pid; done
    sleep 1000 & kill -KILL $! && echo own child killed";

async fn start(mark: &Mark, script: &str, unconfined: bool) -> Child {
    let env = [mark.variable(), ("OTHER".to_owned(), other().to_string())].into();
    let spawn = Spawn { env, unconfined, ..command_line("sh", &["-c", script]) };
    process_guard::spawn(&spawn, &guard_program()).await.unwrap()
}

/// Our own parent: a process of the user's that has nothing to do with the command.
fn other() -> u32 {
    std::os::unix::process::parent_id()
}

/// What became of the attempt to kill the guard, once the daemon is there.
async fn kill_guard(child: &mut Child) -> String {
    assert_eq!(line(child).await, "up");
    bounded(child.stdin.write_all(b"go\n")).await.unwrap();
    line(child).await
}

async fn line(child: &mut Child) -> String {
    let mut line = Vec::new();
    loop {
        match bounded(child.stdout.read_u8()).await.unwrap() {
            b'\n' => return String::from_utf8(line).unwrap(),
            byte => line.push(byte),
        }
    }
}

#[tokio::test]
async fn guard_is_out_of_reach_of_its_command() {
    if best_isolation() != Isolation::OutOfReach {
        eprintln!("skipped: this kernel has no Landlock signal scope, which Linux 6.12 added");
        return;
    }
    let mark = Mark::new();
    let mut child = start(&mark, KILLS_GUARD, false).await;
    assert_eq!(kill_guard(&mut child).await, "refused");
    drop(child.stdin);
    child.guarded.end().await;
    assert_eq!(mark.processes(), []);
}

/// Without isolation it can kill its guard; what it leaves comes to us.
#[tokio::test]
async fn daemon_of_a_killed_guard_is_killed() {
    let mark = Mark::new();
    let mut child = start(&mark, KILLS_GUARD, true).await;
    assert_eq!(kill_guard(&mut child).await, "killed");
    let status = bounded(child.guarded.exited()).await.unwrap();
    assert_eq!(process_guard::shown(status), "signal 9 (SIGKILL), sent to its guard");
    assert_eq!(mark.processes(), []);
}

/// As on a kernel without Landlock: the command starts all the same, kills its guard, and nothing of it is left.
#[test]
fn command_without_landlock_leaves_no_daemon() {
    let mark = Mark::new();
    let error = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let rules = [(libc::SYS_landlock_create_ruleset, Vec::new())].into();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, error, arch).unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    let script = "(setsid sleep 1000 &); kill -KILL $PPID; exec sleep 1000".to_owned();
    let mut hold = std::thread::scope(|scope| {
        // The filter holds for this thread and what it starts.
        let hold = || {
            apply_filter(&filter).unwrap();
            Hold::start(&mark, &[script])
        };
        scope.spawn(hold).join().unwrap()
    });
    hold.until_ready();
    until(|| format!("{:?}", mark.processes()), || mark.count("mcp-guard") == 0);
    drop(hold.stdin.take());
    hold.wait();
    assert_eq!(mark.processes(), []);
}

/// It signals and traces what it has started, and nothing else.
#[tokio::test]
async fn isolated_command_reaches_its_own_processes_only() {
    if best_isolation() != Isolation::OutOfReach {
        eprintln!("skipped: this kernel has no Landlock signal scope, which Linux 6.12 added");
        return;
    }
    let mark = Mark::new();
    let mut child = start(&mark, REACHES_OUT, false).await;
    let mut said = String::new();
    bounded(child.stdout.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "own child killed\n");
}

/// Limits of its own can be changed, and those of others read only.
#[tokio::test]
async fn isolated_command_limits_its_own_processes_only() {
    if best_isolation() != Isolation::OutOfReach {
        eprintln!("skipped: this kernel has no Landlock signal scope, which Linux 6.12 added");
        return;
    }
    let script = "us=$(cut -d' ' -f4 /proc/$PPID/stat)
        for pid in $PPID $us $$; do prlimit --pid $pid --core=0:0 2>/dev/null && echo limited; done
        prlimit --pid $$ --core > /dev/null && echo read
        ulimit -n 100 && prlimit --nofile=99:99 sh -c 'ulimit -n'";
    let mark = Mark::new();
    let mut child = start(&mark, script, false).await;
    let mut said = String::new();
    bounded(child.stdout.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "read\n99\n");
}

/// A guard that may open no file sees its children all the same.
#[tokio::test]
async fn guard_without_files_leaves_no_daemon() {
    let script = "trap '' TERM HUP; prlimit --pid $PPID --nofile=0:0 || exit 1
        setsid sleep 1000 & exit 3";
    let mark = Mark::new();
    let mut child = start(&mark, script, true).await;
    assert_eq!(bounded(child.guarded.exited()).await.unwrap().code(), Some(3));
    assert_eq!(mark.processes(), []);
}

/// Whatever a guard's status says.
#[tokio::test]
async fn daemon_of_a_guard_that_fails_quietly_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let guard = folder.path().join("guard");
    // In a session of its own, as guards are.
    let script =
        "#!/bin/sh\nexec setsid sh -c 'sleep 1000 > /dev/null 2>&1 < /dev/null & exit 0'\n";
    // Written by another process: one that another test starts could have the file open for writing.
    let mut write = Command::new("sh");
    write.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(&guard).arg(script);
    assert!(write.status().unwrap().success());
    for is_dropped in [false, true] {
        let mark = Mark::new();
        let spawn = Spawn { env: [mark.variable()].into(), ..command_line("true", &[]) };
        let program = process_guard::GuardProgram(guard.clone());
        let mut child = process_guard::spawn(&spawn, &program).await.unwrap();
        if is_dropped {
            // Its end is not what ends the daemon.
            until(|| format!("{:?}", mark.processes()), || mark.count("sleep") == 1);
            drop(child);
            tokio::task::spawn_blocking(move || mark.until_gone()).await.unwrap();
        } else {
            assert_eq!(bounded(child.guarded.exited()).await.unwrap().code(), Some(0));
            assert_eq!(mark.processes(), []);
        }
    }
}

/// What `/proc/<pid>/status` says of a process with a filter.
fn restricted(status: &str) -> String {
    status.replace("NoNewPrivs:\t0", "NoNewPrivs:\t1").replace("Seccomp:\t0", "Seccomp:\t2")
}

/// Files and the rest are as without isolation. No process gains privileges.
#[test]
fn isolation_changes_nothing_else() {
    let status = |unconfined: bool, uid: u32| {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .unwrap();
        let file = folder.path().join("status");
        let fields = "Uid|Gid|Groups|CapEff|CapBnd|NoNewPrivs|Seccomp";
        let script = format!(
            "grep -E '^({fields}):' /proc/$$/status > {0}.new; readlink /proc/self/ns/* >> {0}.new; mv {0}.new {0}",
            file.display()
        );
        let program = folder.path().join("hold_children");
        let mut copy = Command::new("cp");
        assert!(copy.args([&guard_program().0, &program]).status().unwrap().success());
        let mut hold = Command::new(&program);
        if unconfined {
            hold.env("HOLD_UNCONFINED", "");
        }
        if geteuid().is_root() {
            hold.uid(uid).gid(uid);
        }
        hold.arg(script).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null());
        let mut hold = hold.spawn().unwrap();
        let stdin = hold.stdin.take();
        until(|| "it does not start".to_owned(), || Path::new(&file).exists());
        drop(stdin);
        hold.wait().unwrap();
        fs::read_to_string(file).unwrap()
    };
    let nobody = 65_534;
    let unprivileged = (status(true, nobody), status(false, nobody));
    let expected = match best_isolation() {
        Isolation::OutOfReach => restricted(&unprivileged.0),
        Isolation::Watched => unprivileged.0,
    };
    assert_eq!(unprivileged.1, expected);
    if geteuid().is_root() && best_isolation() == Isolation::OutOfReach {
        assert_eq!(status(false, 0), restricted(&status(true, 0)));
    }
}
