//! A thread that does not end: it is given up, and others run elsewhere as long as it goes on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sandbox::{Kind, Limits, Mode, Program, Sandbox};

use crate::world::{child, run, sandbox};

/// The engine does this in one go, which takes it a few seconds.
const LONG: &str = "Array.prototype.join.call({ length: 2 ** 26 }, '')";
/// To stop hangs only.
const BOUND: Duration = Duration::from_secs(120);

fn short() -> Limits {
    Limits { time: Duration::from_millis(50), ..Limits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stopped_is_given_up() {
    let sandbox = sandbox(Mode::Thread);
    let began = Instant::now();
    let outcome = run(&sandbox, Program::of(LONG), short()).await;
    assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
    assert_eq!(sandbox.stuck(), 1, "after {:?}", began.elapsed());
    // Another one, in a process, which can be ended.
    let outcome = run(&sandbox, Program::of(LONG), short()).await;
    assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
    assert!(sandbox.stuck() <= 1, "it was no thread");
    let outcome = run(&sandbox, Program::of("6 * 7"), Limits::default()).await;
    assert_eq!(outcome.result.unwrap().get(), "42");
    until_free(&sandbox).await;
    let outcome = run(&sandbox, Program::of("6 * 7"), Limits::default()).await;
    assert_eq!(outcome.result.unwrap().get(), "42");
}

#[tokio::test(flavor = "multi_thread")]
async fn others_run_in_processes_until_it_ends() {
    // Where processes are none: whether one is wanted shows.
    let sandbox = Sandbox::new(Mode::Thread, PathBuf::from("/nowhere"));
    let plain = || run(&sandbox, Program::of("1"), Limits::default());
    assert_eq!(plain().await.result.unwrap().get(), "1");
    run(&sandbox, Program::of(LONG), short()).await;
    let outcome = plain().await;
    assert_eq!(
        outcome.error.unwrap().message,
        "there is no process for the program: No such file or directory (os error 2)"
    );
    until_free(&sandbox).await;
    assert_eq!(plain().await.result.unwrap().get(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_in_a_process_is_killed() {
    let sandbox = Sandbox::new(Mode::Process, child());
    let endless = "Array.prototype.join.call({ length: 2 ** 53 - 1 }, '')";
    let outcome = run(&sandbox, Program::of(endless), short()).await;
    assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
    assert_eq!(sandbox.stuck(), 0);
}

async fn until_free(sandbox: &Sandbox) {
    let began = Instant::now();
    while sandbox.stuck() > 0 {
        assert!(began.elapsed() < BOUND, "it goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
