//! Programs on a system that cannot confine them. A seccomp filter of ours makes the system calls fail that the
//! sandbox needs, as on a kernel without Landlock or in a container that forbids seccomp.

#![cfg(target_os = "linux")]

use std::process::Command;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use super::doctor::about;
use super::*;

const WITHOUT_LANDLOCK: (i64, i32) = (libc::SYS_landlock_create_ruleset, libc::ENOSYS);
const WITHOUT_SECCOMP: (i64, i32) = (libc::SYS_seccomp, libc::EPERM);

/// Runs a command on a system where one call fails.
fn run_without(call: (i64, i32), place: &Place, arguments: &[&str]) -> Done {
    finish_without(call, place, place.command(arguments))
}

fn finish_without((call, error): (i64, i32), place: &Place, command: Command) -> Done {
    let fails = SeccompAction::Errno(error.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let rules = [(call, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, fails, arch).unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    std::thread::scope(|scope| {
        // The filter holds for this thread and what it starts.
        let running = scope.spawn(|| {
            apply_filter(&filter).unwrap();
            place.finish(command, "6 * 7")
        });
        running.join().unwrap()
    })
}

#[test]
fn programs_are_refused_without_landlock() {
    let place = Place::new();
    let done = run_without(WITHOUT_LANDLOCK, &place, &["mcp", "exec", "-"]);
    insta::assert_snapshot!(done.shown(), @"
    exit 1
    --- stderr
    error: programs are not run here: the system cannot confine them without Landlock; use Linux 5.13 or later with Landlock and seccomp enabled, or accept unconfined programs with `--sandbox-unconfined` (unconfined)
    ");
}

#[test]
fn programs_are_refused_without_seccomp() {
    let place = Place::new();
    let done = run_without(WITHOUT_SECCOMP, &place, &["mcp", "exec", "-"]);
    insta::assert_snapshot!(done.shown(), @"
    exit 1
    --- stderr
    error: programs are not run here: the system cannot confine them without seccomp; use Linux 5.13 or later with Landlock and seccomp enabled, or accept unconfined programs with `--sandbox-unconfined` (unconfined)
    ");
    let done = run_without(WITHOUT_SECCOMP, &place, &["mcp", "exec", "-", "--json"]);
    assert_eq!(done.json()["error"]["kind"], "unconfined");
    assert_eq!(done.json()["result"], serde_json::Value::Null);
}

#[test]
fn unconfined_programs_run_if_allowed() {
    let place = Place::new();
    for call in [WITHOUT_LANDLOCK, WITHOUT_SECCOMP] {
        let arguments = ["mcp", "exec", "-", "--sandbox-unconfined"];
        let done = run_without(call, &place, &arguments);
        assert_eq!((done.status, done.stdout.as_str()), (0, "42\n"), "{}", done.shown());
    }
}

#[test]
fn confined_programs_run_without_a_flag() {
    let place = Place::new();
    let done = place.run_with_input(&["mcp", "exec", "-"], "6 * 7");
    assert_eq!((done.status, done.stdout.as_str()), (0, "42\n"), "{}", done.shown());
}

#[test]
fn thread_sandbox_requires_the_flag() {
    let place = Place::new();
    let done = place.run_with_input(&["mcp", "exec", "-", "--sandbox", "thread"], "6 * 7");
    insta::assert_snapshot!(done.shown(), @"
    exit 1
    --- stderr
    error: the following required arguments were not provided:
      --sandbox-unconfined

    Usage: workflowlookup mcp exec --sandbox-unconfined --sandbox <WHERE> <FILE>

    For more information, try '--help'.
    ");
    let arguments = ["mcp", "exec", "-", "--sandbox", "thread", "--sandbox-unconfined"];
    let done = place.run_with_input(&arguments, "6 * 7");
    assert_eq!((done.status, done.stdout.as_str()), (0, "42\n"), "{}", done.shown());
}

#[test]
fn doctor_tells_what_the_system_lacks() {
    let place = Place::new();
    let done = run_without(WITHOUT_LANDLOCK, &place, &["doctor", "--json"]);
    insta::assert_snapshot!(about(&done, "guard").join("\n"), @"
    note: other MCP servers could kill their guard processes; what they leave is killed as long as this program runs
      try: Linux 6.12 or later with Landlock and seccomp keeps guards out of reach
    ");
    insta::assert_snapshot!(about(&done, "sandbox").join("\n"), @"warning: programs are not run here: the system cannot confine them without Landlock; use Linux 5.13 or later with Landlock and seccomp enabled, or accept unconfined programs with `--sandbox-unconfined`");
}
