//! What the catalogue and the engine do inside one process: loading, its memory, lookups, `next` and
//! `check`. What we do and the yardstick take turns.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use catalog::{Catalog, Kind, Source};
use engine::{Budget, Checker, Progress, next};
use serde_json::{Map, Value};

use crate::table::{Limit, Row, Unit, median};
use crate::{definitions, memory};

const ROUNDS: usize = 15;
const CALLS: usize = 20_000;

/// All rows, for a folder of many files, of so many bytes, and one of a few.
pub fn rows(many: &Path, bytes: usize, few: &Path) -> Vec<Row> {
    vec![
        loading(many),
        memory_of(many, bytes),
        lookups(many, few, Call::Next),
        lookups(many, few, Call::Check),
        next_against_serialising(few),
    ]
}

fn open(folder: &Path) -> Catalog {
    Catalog::open(vec![Source::Folder { kind: Kind::Option, path: folder.to_path_buf() }])
}

/// Loading everything, against only reading and parsing the same files on as many threads.
fn loading(folder: &Path) -> Row {
    let paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let mut ours = Vec::new();
    let mut yardstick = Vec::new();
    for _ in 0..ROUNDS {
        yardstick.push(timed(|| read_and_parse(&paths)));
        let mut loaded = None;
        ours.push(timed(|| loaded = Some(open(folder))));
        let count = loaded.expect("a catalogue").snapshot().workflows().count();
        assert_eq!(count, crate::FILES, "every file can be used");
    }
    Row {
        what: "Loading all files",
        yardstick: "reading and `serde_json`-parsing them",
        figure: median(ours) / median(yardstick),
        unit: Unit::Ratio,
        limit: Limit::AtMost(3.0),
    }
}

fn read_and_parse(paths: &[PathBuf]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let turn = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(path) = paths.get(turn.fetch_add(1, Ordering::Relaxed)) {
                    let bytes = std::fs::read(path).expect("a file");
                    let value: Value = serde_json::from_slice(&bytes).expect("JSON");
                    black_box(value);
                }
            });
        }
    });
}

/// The heap that a loaded catalogue keeps, against the bytes of its files.
fn memory_of(folder: &Path, bytes: usize) -> Row {
    let before = memory::live();
    let catalog = open(folder);
    let kept = memory::live() - before;
    drop(black_box(catalog));
    Row {
        what: "Memory of all files, loaded",
        yardstick: "the bytes of the files",
        figure: kept as f64 / bytes as f64,
        unit: Unit::Ratio,
        limit: Limit::AtMost(4.0),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Next,
    Check,
}

/// One call with many workflows loaded, against the same call with few.
fn lookups(many: &Path, few: &Path, call: Call) -> Row {
    let (many, few) = (open(many), open(few));
    let (many_checker, few_checker) = (Checker::default(), Checker::default());
    let mut with_many = Vec::new();
    let mut with_few = Vec::new();
    for round in 0..ROUNDS * 2 {
        // Whoever goes first changes from round to round.
        let mut turns =
            [(&many, &many_checker, &mut with_many), (&few, &few_checker, &mut with_few)];
        if round % 2 == 0 {
            turns.reverse();
        }
        for (catalog, checker, times) in turns {
            times.push(timed(|| calls(catalog, checker, call)));
        }
    }
    Row {
        what: match call {
            Call::Next => "`next` with 5,000 workflows loaded",
            Call::Check => "`check` with 5,000 workflows loaded",
        },
        yardstick: "the same with 5 loaded",
        figure: median(with_many) / median(with_few),
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.1),
    }
}

fn calls(catalog: &Catalog, checker: &Checker, call: Call) {
    let completed = [String::from("step-0"), String::from("step-1")];
    let context = definitions::context();
    let output = "A report of the work in enough words, with RESULT-42 in it, and tests.";
    for number in 0..CALLS {
        let snapshot = catalog.snapshot();
        let id = definitions::id(number % crate::FEW);
        let entry = snapshot.get(&id).expect("an entry");
        let workflow = entry.workflow.as_ref().expect("a workflow");
        match call {
            Call::Next => {
                let progress = Progress { completed: &completed, current: None, context: &context };
                black_box(next(workflow, progress, &Budget::for_inline_call()).expect("an answer"));
            }
            Call::Check => {
                black_box(
                    checker
                        .check(
                            workflow,
                            "step-2",
                            output,
                            Some(&context),
                            &Budget::for_inline_call(),
                        )
                        .expect("a verdict"),
                );
            }
        }
    }
}

/// `next` on a workflow of ten steps, against serialising its answer.
fn next_against_serialising(few: &Path) -> Row {
    let catalog = open(few);
    let snapshot = catalog.snapshot();
    let workflow = snapshot.get(&definitions::id(0)).expect("an entry").workflow.as_ref();
    let workflow = workflow.expect("a workflow");
    let completed: Vec<String> = (0..5).map(|step| format!("step-{step}")).collect();
    let context: Map<String, Value> = definitions::context();
    let ask = || {
        let progress = Progress { completed: &completed, current: None, context: &context };
        next(workflow, progress, &Budget::for_inline_call()).expect("an answer")
    };
    let answer = ask();
    let mut asking = Vec::new();
    let mut serialising = Vec::new();
    for _ in 0..ROUNDS * 2 {
        serialising.push(timed(|| {
            for _ in 0..CALLS {
                black_box(serde_json::to_vec(&answer).expect("JSON"));
            }
        }));
        asking.push(timed(|| {
            for _ in 0..CALLS {
                black_box(ask());
            }
        }));
    }
    Row {
        what: "`next` on a workflow of 10 steps",
        yardstick: "serialising its answer",
        figure: median(asking) / median(serialising),
        unit: Unit::Ratio,
        limit: Limit::AtMost(5.0),
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
