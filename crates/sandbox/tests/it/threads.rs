//! The thread, which one program has at a time. Where it does not end it is given up, and others run elsewhere as long as it goes
//! on.

use std::path::PathBuf;
use std::time::Duration;

use sandbox::{Kind, Limits, Mode, Program, Sandbox};

use crate::world::{child, run, sandbox, until_idle};

/// The engine does this in one go, which takes it a few seconds.
const LONG: &str = "Array.prototype.join.call({ length: 2 ** 26 }, '')";

fn short() -> Limits {
    Limits { time: Duration::from_millis(50), ..Limits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stopped_is_given_up() {
    let sandbox = sandbox(Mode::Thread);
    let outcome = run(&sandbox, Program::of(LONG), short()).await;
    assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
    assert!(!sandbox.is_idle(), "it does not take long here");
    // Another one, in a process, which can be ended.
    let outcome = run(&sandbox, Program::of(LONG), short()).await;
    assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
    let outcome = run(&sandbox, Program::of("6 * 7"), Limits::default()).await;
    assert_eq!(outcome.result.unwrap().get(), "42");
    until_idle(&sandbox).await;
    let outcome = run(&sandbox, Program::of("6 * 7"), Limits::default()).await;
    assert_eq!(outcome.result.unwrap().get(), "42");
}

/// Where processes are none: whether one is wanted shows.
fn without_processes() -> Sandbox {
    Sandbox::new(Mode::Thread, PathBuf::from("/nowhere"))
}

const NO_PROCESS: &str =
    "there is no process for the program: No such file or directory (os error 2)";

#[tokio::test(flavor = "multi_thread")]
async fn others_run_in_processes_until_it_ends() {
    let sandbox = without_processes();
    let plain = || run(&sandbox, Program::of("1"), Limits::default());
    assert_eq!(plain().await.result.unwrap().get(), "1");
    run(&sandbox, Program::of(LONG), short()).await;
    assert_eq!(plain().await.error.unwrap().message, NO_PROCESS);
    until_idle(&sandbox).await;
    assert_eq!(plain().await.result.unwrap().get(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_at_a_time_has_the_thread() {
    let sandbox = without_processes();
    let waiting = "import { slow } from 'mcp-clients/tools'; await slow({ ms: 300 })";
    let (first, second) = tokio::join!(
        run(&sandbox, Program::of(waiting), Limits::default()),
        run(&sandbox, Program::of("2"), Limits::default()),
    );
    assert_eq!(first.result.unwrap().get(), "{\"ms\":300}");
    assert_eq!(second.error.unwrap().message, NO_PROCESS);
    // Whoever has heard of the end of one finds the thread free for the next.
    for number in 0..200 {
        let outcome = run(&sandbox, Program::of(number.to_string()), Limits::default()).await;
        assert_eq!(outcome.result.unwrap().get(), number.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_in_a_process_is_killed() {
    let sandbox = Sandbox::new(Mode::Process, child());
    let endless = "Array.prototype.join.call({ length: 2 ** 53 - 1 }, '')";
    let outcome = run(&sandbox, Program::of(endless), short()).await;
    assert_eq!(outcome.error.unwrap().kind, Kind::Timeout);
    until_idle(&sandbox).await;
}
