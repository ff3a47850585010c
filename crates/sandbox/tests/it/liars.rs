//! Processes that are not ours any more: each of `liars/` stands for one whose engine was taken over, and says what it likes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sandbox::{Limits, Mode, Outcome, Program, Sandbox};

use crate::world::run;

/// To stop hangs only.
const BOUND: Duration = Duration::from_secs(60);

/// These have to be waited for.
const SLOW: [&str; 2] = ["silent.sh", "floods_errors.sh"];

async fn lied_to(liar: &str) -> Outcome {
    let liars = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/liars");
    let sandbox = Sandbox::new(Mode::Process, liars.join(liar));
    let time = if SLOW.contains(&liar) { Duration::from_millis(300) } else { BOUND };
    let limits = Limits { time, memory: 1024 * 1024, lines: 3, calls: 2, ..Limits::default() };
    run(&sandbox, Program::of("1"), limits).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_believed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/liars");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut liars: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    liars.sort();
    let asked: Vec<_> = liars
        .into_iter()
        .map(|liar| tokio::spawn(async move { told(&liar, &lied_to(&liar).await) }))
        .collect();
    let mut told = Vec::new();
    for asked in asked {
        told.push(asked.await.unwrap());
    }
    insta::assert_snapshot!(told.join("\n"));
}

fn told(liar: &str, outcome: &Outcome) -> String {
    let end = match (&outcome.error, &outcome.result) {
        (Some(error), _) => {
            let message: String = error.message.chars().take(120).collect();
            format!("{}: {message} ({:?}, {:?})", error.kind.name(), error.place, error.stack)
        }
        (None, result) => format!("{result:?}"),
    };
    let lines: Vec<usize> = outcome.logs.iter().map(|line| line.chars().count()).collect();
    format!("{liar}: {end}, lines {lines:?}, {} calls", outcome.calls.len())
}
