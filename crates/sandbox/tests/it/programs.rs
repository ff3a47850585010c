//! Each file of `programs/` is a program; what comes of it is beside, in `snapshots/`. It is the same on a thread and in a process.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sandbox::{File, Limits, Mode, Outcome, Program, UNNAMED};
use serde_json::value::RawValue;

use crate::world::{run, sandbox};

/// What begins another file of a program, and what it is given.
const FILE: &str = "// file ";
const INPUT: &str = "// input ";

#[test]
fn what_comes_of_programs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    insta::glob!("programs/*.ts", |path| {
        let (program, limits) = (read(path), Limits { lines: 10, ..Limits::default() });
        let told =
            |mode: Mode| told(&runtime.block_on(run(&sandbox(mode), program.clone(), limits)));
        let (thread, process) = (told(Mode::Thread), told(Mode::Process));
        assert_eq!(thread, process, "on a thread and in a process");
        insta::assert_snapshot!(thread);
    });
}

fn read(path: &Path) -> Program {
    let text = fs::read_to_string(path).unwrap();
    let mut parts = text.split(FILE);
    let mut program = Program::of(parts.next().unwrap());
    let input = program.files[0].text.lines().find_map(|line| line.strip_prefix(INPUT));
    program.input = input.map(|input| RawValue::from_string(input.to_owned()).unwrap());
    for part in parts {
        let (name, text) = part.split_once('\n').unwrap();
        let (name, text) = (name.to_owned(), text.to_owned());
        program.files.push(File { name, text, is_plain: false });
    }
    assert_eq!(program.entrypoint, UNNAMED);
    program
}

/// As a caller gets it.
fn told(outcome: &Outcome) -> String {
    let mut told = String::new();
    match (&outcome.result, &outcome.error) {
        (Some(result), None) => writeln!(told, "{}", result.get()).unwrap(),
        (None, None) => writeln!(told, "no value").unwrap(),
        (None, Some(error)) => {
            let place =
                error.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
            writeln!(told, "{}{place}: {}", error.kind.name(), error.message).unwrap();
            for line in error.stack.iter().flat_map(|stack| stack.lines()) {
                writeln!(told, "  {line}").unwrap();
            }
        }
        (Some(_), Some(_)) => panic!("a value and a failure: {outcome:?}"),
    }
    for line in &outcome.logs {
        writeln!(told, "| {line}").unwrap();
    }
    for call in &outcome.calls {
        let end = if call.ok { "ok" } else { "failed" };
        writeln!(told, "> {}.{} {end}", call.server, call.tool).unwrap();
    }
    told
}
