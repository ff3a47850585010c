//! A server that runs programs is killed. None of its sandbox processes outlives it, neither one that is busy
//! nor one that waits for a program.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Only ends a test that would hang.
const BOUND: Duration = Duration::from_secs(30);

#[test]
fn sandbox_processes_die_with_a_killed_server() {
    let mut server = Command::new(example()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    let busy_and_prewarmed =
        until(|| Some(children(server.id())).filter(|pids| pids.len() == 2)).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let left = || busy_and_prewarmed.iter().copied().filter(|pid| is_sandbox(*pid));
    if until(|| left().next().is_none().then_some(())).is_none() {
        let left: Vec<Pid> = left().collect();
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        panic!("still running: {left:?}");
    }
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < BOUND {
        if let Some(seen) = look() {
            return Some(seen);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// The sandbox processes that a process has started.
fn children(parent: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    let lists = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")));
    let lists: String = lists.map(Result::unwrap_or_default).collect();
    let pids = lists.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap());
    pids.filter(|pid| is_sandbox(*pid)).collect()
}

/// Dead processes have no command line.
fn is_sandbox(pid: Pid) -> bool {
    let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == b"__sandbox")
}

/// Cargo builds examples together with the tests, and puts them beside.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples/hold_programs")
}
