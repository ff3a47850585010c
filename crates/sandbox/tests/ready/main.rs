//! What waits for the next program where many are run: one thread, or one process that has its walls already. No program has run
//! in it, and it goes when it is not wanted any more.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

#[path = "../it/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sandbox::host::{Boxed, Call, Host, Module};
use sandbox::{Limits, Mode, Program, Sandbox, Thrown};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::world::{BOUND, child, only, run};

/// What a test looks at is what this process has: one at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A program that looks around while it runs, from outside.
const LOOKS: &str = "import { look } from 'outside'; globalThis.left = 1; await look();";
const WHAT_IS_LEFT: &str = "String(globalThis.left)";

#[tokio::test(flavor = "multi_thread")]
async fn a_process_waits_behind_its_walls() {
    let _alone = ALONE.lock().await;
    let sandbox = Sandbox::ready(Mode::Process, child());
    assert_eq!(processes(), BTreeSet::new(), "nobody may ever want one");
    let first = looks(&sandbox).await.processes;
    let waiting = only_process_but(&first).await;
    until(|| status(waiting).contains("\nSeccomp:\t2")).await;
    assert_eq!(looks(&sandbox).await.processes, BTreeSet::from([waiting]), "it gets the program");
    only_process_but(&BTreeSet::from([waiting])).await;
    assert_eq!(value(&sandbox, WHAT_IS_LEFT).await, "\"undefined\"");
    drop(sandbox);
    until(|| processes().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_needs_another_one_gets_it() {
    let _alone = ALONE.lock().await;
    let sandbox = Sandbox::ready(Mode::Process, child());
    let before = looks(&sandbox).await.processes;
    let first = only_process_but(&before).await;
    // Other limits.
    let limits = Limits { memory: 8 * 1024 * 1024, ..Limits::default() };
    let outcome = run(&sandbox, Program::of("'x'.repeat(9 * 1024 * 1024).length"), limits).await;
    assert!(outcome.error.unwrap().message.contains("8 MiB"));
    // A larger stack, for a longer program.
    let second = only_process_but(&BTreeSet::from([first])).await;
    let long = format!("{}{LOOKS}", "1;".repeat(5_000));
    let seen = looks_with(&sandbox, long, limits).await.processes;
    assert!(seen.len() == 2 && seen.contains(&second), "{seen:?} and not {second} alone");
    // The same once more.
    let third = only_process_but(&BTreeSet::from([second])).await;
    assert_eq!(run(&sandbox, Program::of("3"), limits).await.result.unwrap().get(), "3");
    // None that lives any more.
    let fourth = only_process_but(&BTreeSet::from([third])).await;
    kill_process(Pid::from_raw(fourth).unwrap(), Signal::KILL).unwrap();
    // With all of its threads, of which the main one goes first.
    let is_dead =
        |status: &str| status.contains("\nState:\tZ") && status.contains("\nThreads:\t1\n");
    until(|| status(fourth).is_empty() || is_dead(&status(fourth))).await;
    assert_eq!(run(&sandbox, Program::of("4"), limits).await.result.unwrap().get(), "4");
    drop(sandbox);
    until(|| processes().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_waits_and_is_the_only_one() {
    let _alone = ALONE.lock().await;
    let sandbox = Sandbox::ready(Mode::Thread, PathBuf::from("/nowhere"));
    for _ in 0..3 {
        // Without a break: nothing was made ready for it.
        let before = looks(&sandbox).await.threads;
        assert_eq!(value(&sandbox, WHAT_IS_LEFT).await, "\"undefined\"");
        let last = looks(&sandbox).await.threads;
        assert!(before.len() == 1 && last.len() == 1 && before != last);
        // One look: the last one may end between two.
        until(|| Some(threads()).is_some_and(|now| now.len() == 1 && now != last)).await;
        let waiting = threads();
        assert_eq!(looks(&sandbox).await.threads, waiting);
    }
    // One that is for other limits.
    let limits = Limits { memory: 8 * 1024 * 1024, ..Limits::default() };
    for number in 0..50 {
        assert_eq!(run(&sandbox, Program::of("5"), limits).await.result.unwrap().get(), "5");
        assert!(threads().len() <= 1, "after {number}");
    }
    drop(sandbox);
    until(|| threads().is_empty()).await;
}

async fn value(sandbox: &Sandbox, program: &str) -> String {
    let outcome = run(sandbox, Program::of(program), Limits::default()).await;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    outcome.result.unwrap().get().to_owned()
}

struct Outside;

#[derive(Serialize, Deserialize)]
struct Seen {
    processes: BTreeSet<i32>,
    threads: BTreeSet<String>,
}

impl Host for Outside {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        only("look")
    }

    fn call<'a>(&'a self, _: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        let seen = Seen { processes: processes(), threads: threads() };
        Box::pin(async move { Ok(to_raw_value(&seen).unwrap()) })
    }
}

/// What there is while a program runs.
async fn looks(sandbox: &Sandbox) -> Seen {
    looks_with(sandbox, LOOKS.to_owned(), Limits::default()).await
}

async fn looks_with(sandbox: &Sandbox, program: String, limits: Limits) -> Seen {
    let (program, cancelled) = (Program::of(program), CancellationToken::new());
    let outcome = sandbox.run(program, limits, Arc::new(Outside), cancelled).await;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    serde_json::from_str(outcome.result.unwrap().get()).unwrap()
}

/// The one that waits when these are gone.
async fn only_process_but(gone: &BTreeSet<i32>) -> i32 {
    until(|| processes().len() == 1 && processes().is_disjoint(gone)).await;
    processes().into_iter().next().unwrap()
}

async fn until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < BOUND, "there are {:?} and {:?}", processes(), threads());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The processes that we have started and that nobody has seen the end of.
fn processes() -> BTreeSet<i32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let children =
        tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok());
    let all: String = children.collect();
    all.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// The threads of programs. One that has ended may be listed for a moment after somebody has seen its end.
fn threads() -> BTreeSet<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
    let lives = |id: &String| {
        let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap_or_default();
        stat.split_once("(program) ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    ids.filter(lives).collect()
}

fn status(process: i32) -> String {
    fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default()
}
