//! The page that is made from the escapes.

use std::fmt::Write as _;
use std::path::Path;

use crate::case::Case;

const ABOUT: &str = "# Ways out of the sandbox\n\n\
    Made by the tests: programs that try to get out of the sandbox, to reach what is not theirs, or to break what runs \
    them, and how each of them ends. All of them run on a thread and in a process of their own, and after each the \
    sandbox runs a plain program.\n\n\
    | | what is tried | how it ends |\n|---:|---|---|\n";

/// So much of an end is shown.
const CHARS: usize = 200;

pub(crate) fn write(cases: &[Case], ends: &[[String; 2]]) -> String {
    let mut page = ABOUT.to_owned();
    for (number, (case, [thread, process])) in cases.iter().zip(ends).enumerate() {
        let end = match thread == process {
            true => shown(thread),
            false => format!("on a thread: {}<br>in a process: {}", shown(thread), shown(process)),
        };
        let tries = case.tries.trim_end_matches('.').replace('|', "\\|");
        writeln!(page, "| {} | {tries} | {end} |", number + 1).unwrap();
    }
    page
}

fn shown(end: &str) -> String {
    let mut shown: String = end.chars().take(CHARS).collect();
    if shown.len() < end.len() {
        shown.push('…');
    }
    // A value is code, a failure is words.
    match shown.strip_prefix("value ") {
        Some(value) => format!("the value `{}`", value.replace('|', "\\|").replace('`', "'")),
        None => shown.replace('|', "\\|").replace('<', "&lt;"),
    }
}

pub(crate) fn assert_current(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sandbox-escapes.md");
    if std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = current.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        current == text,
        "{} is stale: run `cargo xtask generate`; {differs:#?}",
        path.display()
    );
}
