//! The product as a guard of other programs. What guards do in all is tested in `process_guard`; here,
//! that this binary is one.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use process_guard::{GuardProgram, Spawn, spawn};
use rustix::process::{Pid, Signal, kill_process};

use super::Place;

const PATIENCE: Duration = Duration::from_secs(60);
/// What a process holds children with; see `holding`.
const HOLDING: &str = "GUARD_TEST_HOLDING";

/// `sh` below a guard that we started.
fn guarded(script: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workflowlookup"));
    command.args([
        "__guard",
        &std::process::id().to_string(),
        "-",
        "isolated",
        "/",
        "/bin/sh",
        "-c",
        script,
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whether a process is there, and not dead.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_is_not_for_people() {
    let place = Place::new();
    let done = place.run(&["--help"]);
    assert!(!done.stdout.contains("__"), "{}", done.shown());
    for words in [&["__guard"][..], &["__guard", "list"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(place.run(words).shown(), @"
            exit 125
            --- stderr
            `__guard` is not to be called by hand
            ");
        }
    }
}

#[test]
fn it_passes_on_data_and_status() {
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        assert_eq!(guarded(script).wait().unwrap().code(), Some(status), "{script}");
    }
    let output = guarded("echo out; echo err >&2; cat").wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "out\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "err\n");
}

/// A signal ends everything, be it deaf or hidden in a session of its own.
#[test]
fn it_ends_everything() {
    for signal in [Signal::TERM, Signal::HUP] {
        let mut guard = guarded(
            "sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 1000' &
             setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000",
        );
        let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
        let hidden: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
        kill_process(Pid::from_child(&guard), signal).unwrap();
        // By the first signal or, on a machine that has much to do, by the second.
        assert!([Some(143), Some(137)].contains(&guard.wait().unwrap().code()));
        assert!(!hidden.iter().any(|pid| is_alive(pid)), "{hidden:?}");
    }
}

#[test]
fn it_is_gone_when_its_parent_is() {
    // The number of nobody's parent.
    let mut command = Command::new(env!("CARGO_BIN_EXE_workflowlookup"));
    command.args(["__guard", "1", "-", "isolated", "/", "/bin/sh", "-c", "echo started"]);
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0));
}

/// A process of its own, started by the test below: it holds children until it is killed.
#[test]
fn holding() {
    if std::env::var_os(HOLDING).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let program = GuardProgram(env!("CARGO_BIN_EXE_workflowlookup").into());
    let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo $$; sleep 1000";
    let mut held = Vec::new();
    for _ in 0..10 {
        let wanted = Spawn {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            ..Spawn::default()
        };
        let mut child = runtime.block_on(spawn(&wanted, &program)).unwrap();
        println!("held {}", child.guarded.id());
        for _ in 0..3 {
            println!("held {}", runtime.block_on(line(&mut child.stdout)));
        }
        held.push(child);
    }
    println!("all");
    // Until the test ends this process, or is gone itself.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

async fn line(stdout: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    use tokio::io::AsyncReadExt as _;

    let mut line = String::new();
    loop {
        match stdout.read_u8().await.unwrap() {
            b'\n' => return line,
            byte => line.push(char::from(byte)),
        }
    }
}

#[test]
fn nobody_is_left_of_whoever_is_killed() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "guard::holding", "--nocapture"]).env(HOLDING, "");
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let lines: Vec<String> = lines.take_while(|line| line != "all").collect();
    let held: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("held ")).collect();
    assert_eq!(held.len(), 40, "{lines:?}");
    assert!(held.iter().all(|pid| is_alive(pid)), "{held:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("everybody is gone", || !held.iter().any(|pid| is_alive(pid)));
}
