//! A process that has an orchestrator, and ten servers through it, is killed. Nothing is left of them, and until then all
//! of them answer.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "what it took is worth knowing")]
#![cfg(target_os = "linux")]

#[path = "../../process_guard/tests/guard/processes.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod processes;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use processes::Mark;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What each of ten servers is started by, and with how many `sleep`s beside it. `$0` is the server itself.
const SCRIPTS: [(&str, usize); 9] = [
    (r#"exec "$0""#, 0),
    (r#"sleep 1000 & exec "$0""#, 1),
    (r#"setsid sleep 1000 & exec "$0""#, 1),
    // A daemon: its parents are gone.
    (r#"(setsid sh -c '(sleep 1000 &)' &); exec "$0""#, 1),
    // Deaf, and so is what it starts.
    (r#"trap '' TERM HUP INT; sleep 1000 & setsid sleep 1000 & exec "$0""#, 2),
    (r#"exec "$0" --hostile stubborn"#, 0),
    (r#"exec "$0" --hostile floods-stderr"#, 0),
    // A chain, as scripts that start programs make it.
    (r#"sh -c 'sh -c "sleep 1000 & \"$0\"; :" "$0"; :' "$0"; :"#, 1),
    // The same by Node.
    (
        r#"exec node -e 'require("node:child_process").spawn(process.argv[1], { stdio: "inherit" })' "$0""#,
        0,
    ),
];

/// How often all of them answer before something happens.
const ROUNDS: usize = 5;

#[test]
fn nobody_is_left_of_an_orchestrator_that_is_killed() {
    kill(script(r#"exec "$0""#));
}

#[test]
#[ignore = "needs the servers that `cargo xtask test` installs"]
fn nobody_is_left_of_a_real_npx() {
    let Some(clients) = std::env::var_os("WORKFLOWLOOKUP_CLIENTS") else {
        panic!("`WORKFLOWLOOKUP_CLIENTS` says where the servers are; `cargo xtask test` sets it");
    };
    let folder = Path::new(&clients).join("typescript");
    let words = ["--no-install", "mcp-server-everything"];
    kill(json!({"transport": "stdio", "command": "npx", "args": words, "cwd": folder}));
}

#[test]
fn it_may_be_killed_at_any_moment() {
    for tenths in [0, 1, 2, 3, 5, 8, 13, 21] {
        let mark = Mark::new();
        let mut held = Held::start(&mark, script(r#"exec "$0""#));
        std::thread::sleep(Duration::from_millis(100) * tenths);
        held.process.kill().unwrap();
        mark.until_gone();
    }
}

#[test]
fn nobody_is_left_of_an_orchestrator_that_ends() {
    let mark = Mark::new();
    let mut held = Held::start(&mark, script(r#"exec "$0""#));
    assert_eq!(held.line(), "ready");
    drop(held.stdin.take());
    while held.line() == "called" {}
    assert!(held.process.wait().unwrap().success());
    assert_eq!(mark.processes(), []);
}

/// Kills a process that has nine servers and this one.
fn kill(tenth: Value) {
    let mark = Mark::new();
    let mut held = Held::start(&mark, tenth);
    assert_eq!(held.line(), "ready");
    for _ in 0..ROUNDS {
        assert_eq!(held.line(), "called");
    }
    let sleeping: usize = SCRIPTS.iter().map(|(_, sleeping)| sleeping).sum();
    assert_eq!(mark.count("sleep"), sleeping);
    assert_eq!(mark.count("mcp-guard"), SCRIPTS.len() + 1);
    held.process.kill().unwrap();
    let killed = Instant::now();
    mark.until_gone();
    eprintln!("all are gone after {:.1} s", killed.elapsed().as_secs_f64());
}

fn script(script: &str) -> Value {
    json!({"transport": "stdio", "command": "sh", "args": ["-c", script, example("test_server")]})
}

/// The process.
struct Held {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Held {
    fn start(mark: &Mark, tenth: Value) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("mcp.registry.json");
        let all = SCRIPTS.iter().map(|(text, _)| script(text)).chain([tenth]);
        let (name, value) = mark.variable();
        let servers: Vec<Value> = all
            .enumerate()
            .map(|(number, mut mcp)| {
                mcp["env"] = json!({name.clone(): value});
                let limits = json!({"timeoutMs": 60_000, "maxCallsPerMinute": 100_000, "sensitivity": "low"});
                let mut entry = json!({"id": format!("server-{number}"), "mcp": mcp});
                entry.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
                entry
            })
            .collect();
        std::fs::write(&path, json!({"servers": servers}).to_string()).unwrap();
        let mut command = Command::new(example("hold_upstreams"));
        let mut process =
            command.arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take().unwrap());
        Self { process, stdin, stdout: BufReader::new(stdout), _folder: folder }
    }

    /// What it says next; nothing at its end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Cargo builds examples together with the tests, and puts them beside.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join(name)
}
