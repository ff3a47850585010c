//! What is left to the process of a program whose engine is broken, and runs what an attacker wants: nothing. JavaScript cannot
//! try these things, so this test does: it starts itself again, gives up what such a process gives up, and tries.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "what happened is worth knowing")]
#![allow(clippy::print_stdout, reason = "this is how the process tells what it could do")]

mod running;
mod tries;
#[path = "../it/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

use std::net::TcpListener;
use std::process::Command;

use sandbox::{Limits, child};

/// What the process is told: which of its walls it shall have, what it shall try, and who listens.
const WALLS: &str = "SANDBOX_WALLS";
const WHAT: &str = "SANDBOX_WHAT";
const PORT: &str = "SANDBOX_PORT";
/// What its words begin with.
const TRIED: &str = "tried ";
const MISSING: &str = "missing ";

#[test]
fn nothing_is_left_to_a_process() {
    let all: Vec<&str> = tries::ALL.iter().map(|(name, _)| *name).collect();
    let Some(tried) = tried_behind("both", &all) else { return };
    let could: Vec<&String> = tried.iter().filter(|line| line.ends_with(": done")).collect();
    assert!(could.is_empty(), "{could:#?}");
    // What the walls say, and not something that is in the way by chance.
    insta::assert_snapshot!(tried.join("\n"));
}

/// Either wall does alone for what counts most.
#[test]
fn landlock_alone_keeps_files_and_the_net() {
    assert_refused(
        "files",
        &[
            "read a file",
            "write a file",
            "list a folder",
            "connect by TCP",
            "listen by TCP",
            "signal the parent",
        ],
    );
}

#[test]
fn seccomp_alone_keeps_nearly_everything() {
    assert_refused(
        "calls",
        &[
            "read a file",
            "write a file",
            "list a folder",
            "connect by TCP",
            "listen by TCP",
            "signal the parent",
            "start a program",
            "become a program",
            "start a thread",
            "trace the parent",
            "make memory executable",
        ],
    );
}

fn assert_refused(walls: &str, what: &[&str]) {
    let tried = tried_behind(walls, what).unwrap_or_default();
    let could: Vec<&String> = tried.iter().filter(|line| line.ends_with(": done")).collect();
    assert!(could.is_empty(), "{could:#?}");
}

/// What came of these; nothing where this machine has no such wall.
fn tried_behind(walls: &str, what: &[&str]) -> Option<Vec<String>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_process_behind_walls", "--nocapture"]);
    command.env(WALLS, walls).env(PORT, listener.local_addr().unwrap().port().to_string());
    command.env(WHAT, what.join(","));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if let Some(missing) = said.lines().find_map(|line| line.strip_prefix(MISSING)) {
        eprintln!("this machine does not have: {missing}");
        return None;
    }
    let tried = said.lines().filter_map(|line| line.strip_prefix(TRIED));
    let tried: Vec<String> = tried.map(str::to_owned).collect();
    assert_eq!(tried.len(), what.len(), "it has tried everything: {output:?}");
    Some(tried)
}

/// Does nothing unless one of the tests above has started it.
#[test]
fn a_process_behind_walls() {
    let Ok(walls) = std::env::var(WALLS) else { return };
    let what = std::env::var(WHAT).unwrap();
    let what: Vec<&str> = what.split(',').collect();
    let tries = tries::Tries::new(std::env::var(PORT).unwrap().parse().unwrap());
    let mut missing = Vec::new();
    if walls != "calls" {
        missing.push(child::give_up_files(&Limits::default(), 1024 * 1024));
    }
    if walls != "files" {
        missing.push(child::give_up_calls());
    }
    missing.retain(|names| !names.is_empty());
    if !missing.is_empty() {
        println!("\n{MISSING}{}", missing.join(", "));
        return;
    }
    for (name, attempt) in tries::ALL.iter().filter(|(name, _)| what.contains(name)) {
        let came = match attempt(&tries) {
            Ok(()) => "done".to_owned(),
            Err(error) => match error.raw_os_error() {
                Some(number) => rustix::io::Errno::from_raw_os_error(number).to_string(),
                None => error.kind().to_string(),
            },
        };
        println!("\n{TRIED}{name}: {came}");
    }
}
