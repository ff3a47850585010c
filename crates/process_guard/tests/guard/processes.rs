//! What there is on this machine, and who starts children of ours and can be killed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use process_guard::{Child, GuardProgram, Spawn};
use rustix::process::{Pid, Signal, kill_process};

/// Only stops what would hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A variable that everything below a child inherits, so that it is found wherever it went.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

/// One process with a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) words: Vec<String>,
}

impl Process {
    /// Whoever is dying has no words any more.
    pub(crate) fn runs(&self, program: &str) -> bool {
        self.words.first().is_some_and(|word| word.rsplit('/').next() == Some(program))
    }
}

impl Mark {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{count}", std::process::id()))
    }

    pub(crate) fn variable(&self) -> (String, String) {
        ("MARK".to_owned(), self.0.clone())
    }

    /// Everybody who has it and is not dead.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let entry = format!("MARK={}", self.0);
        let pids = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?));
        let has_it = |pid: &Pid| {
            // Those that are gone meanwhile cannot be read; the dead have none.
            let variables = fs::read(format!("/proc/{}/environ", pid.as_raw_pid()));
            variables
                .unwrap_or_default()
                .split(|byte| *byte == 0)
                .any(|had| had == entry.as_bytes())
        };
        pids.filter(has_it).map(|pid| Process { pid, words: words(pid) }).collect()
    }

    /// How many run this program.
    pub(crate) fn count(&self, program: &str) -> usize {
        self.processes().iter().filter(|process| process.runs(program)).count()
    }

    pub(crate) fn until_gone(&self) {
        until(|| format!("left: {:?}", self.processes()), || self.processes().is_empty());
    }

    /// A script of `sh`, guarded.
    pub(crate) async fn sh(&self, script: &str) -> Child {
        self.start("sh", &["-c", script]).await
    }

    pub(crate) async fn start(&self, command: &str, args: &[&str]) -> Child {
        let spawn = Spawn { env: BTreeMap::from([self.variable()]), ..command_line(command, args) };
        process_guard::spawn(&spawn, &guard_program()).await.unwrap()
    }
}

impl Drop for Mark {
    /// A test that fails leaves nobody behind either.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for process in self.processes() {
                let _ = kill_process(process.pid, Signal::KILL);
            }
        }
    }
}

/// A process that starts a guarded child for each script.
pub(crate) struct Hold {
    process: std::process::Child,
    pub(crate) stdin: Option<ChildStdin>,
}

impl Hold {
    pub(crate) fn start(mark: &Mark, scripts: &[String]) -> Self {
        let mut process = Command::new(example())
            .args(scripts)
            .env("HOLD_MARK", mark.variable().1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = process.stdin.take();
        Self { process, stdin }
    }

    pub(crate) fn until_ready(&mut self) {
        let mut line = String::new();
        BufReader::new(self.process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }

    pub(crate) fn kill(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.wait();
    }

    pub(crate) fn wait(&mut self) {
        self.process.wait().unwrap();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn command_line(command: &str, args: &[&str]) -> Spawn {
    Spawn {
        command: command.to_owned(),
        args: args.iter().map(|arg| arg.to_string()).collect(),
        ..Spawn::default()
    }
}

pub(crate) fn guard_program() -> GuardProgram {
    GuardProgram(example())
}

/// What would otherwise wait for ever, where something is wrong.
pub(crate) async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

pub(crate) fn until(what: impl Fn() -> String, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "{}", what());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn words(pid: Pid) -> Vec<String> {
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    String::from_utf8_lossy(&line).split_terminator('\0').map(str::to_owned).collect()
}

/// Cargo builds examples together with the tests, and puts them beside.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile.join("examples").join("hold_children")
}
