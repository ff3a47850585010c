//! Plays cases, several at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sandbox::{Mode, Outcome, Program, Sandbox};
use tokio::runtime::Runtime;

use crate::case::Case;
use crate::world::{BOTH, run, sandbox};

/// So many at the same time. Some of them wait.
const AT_ONCE: usize = 6;
/// What a busy machine may add to any time limit.
const SLACK: Duration = Duration::from_secs(60);
/// So much of an end is looked at.
const END_CHARS: usize = 1_000;
/// What no program may ever see: names of this machine's files, or of files that we are made of.
const LEAKS: [&str; 9] = [
    env!("CARGO_MANIFEST_DIR"),
    ".cargo",
    "/rustc/",
    ".rs:",
    "quickjs.c",
    "rquickjs",
    "/tmp/",
    "/root",
    "/home",
];

/// How each of them ends, on a thread and in a process. Fails where one ends otherwise than it says.
pub(crate) fn all(cases: &[Case]) -> Vec<[String; 2]> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut ends: Vec<[String; 2]> = cases.iter().map(|_| Default::default()).collect();
    let mut wrong = Vec::new();
    for (at, mode) in BOTH.into_iter().enumerate() {
        let seen = all_in(&runtime, cases, mode);
        for (case, (seen, ends)) in cases.iter().zip(seen.into_iter().zip(&mut ends)) {
            if seen != case.ends[at] {
                let name = &case.name;
                wrong.push(format!(
                    "{name} ({})\n  ends: {seen}\n  not:  {}",
                    mode.name(),
                    case.ends[at]
                ));
            }
            ends[at] = seen;
        }
    }
    assert!(wrong.is_empty(), "{} cases end otherwise:\n{}", wrong.len(), wrong.join("\n"));
    ends
}

fn all_in(runtime: &Runtime, cases: &[Case], mode: Mode) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut seen = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { return seen };
            if case.is_endless && mode == Mode::Thread {
                seen.push((at, case.ends[0].clone()));
                continue;
            }
            // Not shared: what a case does to its sandbox is found by the program after it.
            seen.push((at, runtime.block_on(play(case, &sandbox(mode)))));
        }
    };
    let mut seen = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    seen.sort_unstable();
    seen.into_iter().map(|(_, seen)| seen).collect()
}

async fn play(case: &Case, sandbox: &Sandbox) -> String {
    if std::env::var_os("SANDBOX_TRACE").is_some() {
        // The last of these is the one that took everything with it.
        eprintln!("{}", case.name);
    }
    for program in &case.before {
        let outcome = run(sandbox, Program::of(program.clone()), case.limits).await;
        assert!(outcome.error.is_none(), "{}: {:?}", case.name, outcome.error);
    }
    let began = Instant::now();
    let outcome = run(sandbox, case.program.clone(), case.limits).await;
    let took = began.elapsed();
    assert!(took < case.limits.time + SLACK, "{}: {took:?}", case.name);
    let all = format!("{outcome:?}");
    for leak in LEAKS {
        assert!(!all.contains(leak), "{} shows {leak}: {all}", case.name);
    }
    let after = run(sandbox, Program::of("6 * 7"), Default::default()).await;
    assert_eq!(end(&after), "value 42", "after {}", case.name);
    end(&outcome)
}

/// In a line.
fn end(outcome: &Outcome) -> String {
    let end = match (&outcome.error, &outcome.result) {
        (Some(error), _) => format!("{}: {}", error.kind.name(), error.message),
        (None, Some(result)) => format!("value {}", result.get()),
        (None, None) => "nothing".to_owned(),
    };
    let told = |line: &String| format!(" · {line}");
    let lines: String = outcome.logs.iter().take(3).map(told).collect();
    let more = match outcome.logs.len() {
        0..=3 => String::new(),
        lines => format!(" · … {lines} lines"),
    };
    let whole = format!("{end}{lines}{more}");
    // Whether there was room left for an error depends on the last few bytes.
    let whole = whole.replace(", or threw `null`", "");
    let mut shown = String::new();
    for sign in whole.chars().take(END_CHARS) {
        match sign.is_control() {
            true => shown.extend(sign.escape_default()),
            false => shown.push(sign),
        }
    }
    match whole.chars().count() {
        ..=END_CHARS => shown,
        chars => format!("{shown}… {chars} signs"),
    }
}
