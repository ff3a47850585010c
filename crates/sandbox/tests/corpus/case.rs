//! A program, what it tries, and how it ends, as the files beside have them:
//!
//! ```text
//! ## name
//! What it tries, in a line.
//! within: 300 ms                          (and other limits: `memory`, `stack`, `calls`, `lines`, `result`)
//! input: {"some": "json"}
//! endless: yes                            (so that it only runs where it can be ended)
//! (code between three backticks, with the name of its file where there are several; what is called `before` runs first)
//! ends: value 42                          (or a kind of failure and its message; `in a process:` where that is another)
//! ```

use std::fs;
use std::path::Path;
use std::time::Duration;

use sandbox::{File, Limits, Program, UNNAMED};
use serde_json::value::RawValue;

/// The time that a program has which should not need it.
const PATIENT: Duration = Duration::from_secs(120);

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) tries: String,
    /// Programs that run before it, in the same sandbox.
    pub(crate) before: Vec<String>,
    pub(crate) program: Program,
    pub(crate) limits: Limits,
    /// It would keep its thread busy for good.
    pub(crate) is_endless: bool,
    /// On a thread, and in a process.
    pub(crate) ends: [String; 2],
}

/// The cases of a folder, in the order of its files.
pub(crate) fn all(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let only = std::env::var("SANDBOX_ONLY").unwrap_or_default();
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        cases
            .extend(text.split("\n## ").skip(1).map(read).filter(|case| case.name.contains(&only)));
    }
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "two cases have one name");
    cases
}

fn read(text: &str) -> Case {
    let mut lines = text.lines();
    let name = lines.next().unwrap().to_owned();
    let tries = lines.next().unwrap().to_owned();
    // A slow machine must not change how something ends.
    let mut limits = Limits { time: PATIENT, ..Limits::default() };
    let (mut before, mut files, mut input) = (Vec::new(), Vec::new(), None);
    let (mut ends, mut in_process, mut is_endless) = (None, None, false);
    while let Some(line) = lines.next() {
        if let Some(file) = line.strip_prefix("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            match file.strip_prefix("ts").unwrap_or(file).trim() {
                "before" => before.push(code.join("\n")),
                file => files.push((file.to_owned(), code.join("\n"))),
            }
            continue;
        }
        let Some((what, value)) = line.split_once(": ") else {
            assert!(line.is_empty(), "{name}: what is `{line}`?");
            continue;
        };
        let number = || {
            let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
            let number: usize = number.parse().unwrap();
            number
                * match unit {
                    "KiB" => 1024,
                    "MiB" => 1024 * 1024,
                    _ => 1,
                }
        };
        match what {
            "endless" => is_endless = true,
            "within" => limits.time = Duration::from_millis(number() as u64),
            "memory" => limits.memory = number(),
            "stack" => limits.stack = number(),
            "calls" => limits.calls = number(),
            "lines" => limits.lines = number(),
            "result" => limits.result = number(),
            "input" => input = Some(RawValue::from_string(value.to_owned()).unwrap()),
            "ends" => ends = Some(value.to_owned()),
            "in a process" => in_process = Some(value.to_owned()),
            what => panic!("{name}: what is `{what}`?"),
        }
    }
    let ends = ends.unwrap_or_default();
    let in_process = in_process.unwrap_or_else(|| ends.clone());
    let program = program(files, input);
    Case { name, tries, before, program, limits, is_endless, ends: [ends, in_process] }
}

/// The first file is run.
fn program(files: Vec<(String, String)>, input: Option<Box<RawValue>>) -> Program {
    let files: Vec<File> = files
        .into_iter()
        .map(|(name, text)| {
            let name = if name.is_empty() { UNNAMED.to_owned() } else { name };
            File { is_plain: name.ends_with(".js"), name, text }
        })
        .collect();
    Program { entrypoint: files[0].name.clone(), files, input }
}
