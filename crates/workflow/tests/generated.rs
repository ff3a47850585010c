//! The files that are generated from the code are what the code would generate now: the JSON Schema,
//! and a page for every finding code. `cargo xtask generate` runs all tests whose names say "generated"
//! with `WORKFLOWLOOKUP_UPDATE` set, which writes the files instead.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads and writes files")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use workflow::finding::render;
use workflow::{Code, Format, Scrutiny, read, schema_text};

/// A case with more lines than this is left out of its page; what is found in it is shown.
const LINES_MAX: usize = 30;

#[test]
fn the_generated_schema_is_current() {
    assert_current(&root().join("schema/workflow.schema.json"), &schema_text());
}

#[test]
fn the_generated_pages_are_current() {
    let folder = root().join("docs/findings");
    for code in Code::ALL {
        assert_current(&folder.join(format!("{}.md", code.name())), &page(*code));
    }
    assert_current(&folder.join("README.md"), &index());
    for stale in names_in(&folder).iter().filter(|name| !is_expected(name)) {
        if is_update() {
            fs::remove_file(folder.join(stale)).unwrap();
        } else {
            panic!("docs/findings/{stale} belongs to no code: run `cargo xtask generate`");
        }
    }
}

#[track_caller]
fn assert_current(path: &Path, text: &str) {
    if is_update() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        return;
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(found == text, "{} is not current: run `cargo xtask generate`", path.display());
}

fn is_update() -> bool {
    std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn is_expected(name: &str) -> bool {
    name == "README.md" || Code::ALL.iter().any(|code| name == format!("{}.md", code.name()))
}

fn index() -> String {
    let mut text = String::from(
        "# Findings\n\nWhat can be wrong with a definition. A code never changes its meaning. An \
         error keeps the workflow, or\nthe check of one step's output, from being used; a warning \
         does not.\n\n| code | severity | what is wrong |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let (name, severity, title) = (code.name(), code.severity(), code.title());
        writeln!(text, "| [{name}]({name}.md) | {severity} | {title} |").unwrap();
    }
    text
}

fn page(code: Code) -> String {
    let (name, title, severity) = (code.name(), code.title(), code.severity());
    let mut text = format!("# {name}: {title}\n\nSeverity: {severity}\n\n{}\n", code.explanation());
    let prefix = format!("{}-", name.to_lowercase());
    for case in names_in(&cases()).iter().filter(|case| case.starts_with(&prefix)) {
        write!(text, "\n{}", example(code, case)).unwrap();
    }
    text
}

/// A case file, if it is short, and the first finding of this code in it.
fn example(code: Code, case: &str) -> String {
    let bytes = fs::read(cases().join(case)).unwrap();
    let source = String::from_utf8_lossy(&bytes);
    let mut text = format!("## Example: `{case}`\n\n");
    if source.lines().count() <= LINES_MAX {
        let language = case.rsplit_once('.').unwrap().1;
        let shown = source.trim_start_matches('\u{feff}').trim_end();
        write!(text, "```{language}\n{shown}\n```\n\n").unwrap();
    }
    let mut findings = read(&bytes, Format::of(case).unwrap(), Scrutiny::Compile).findings;
    let finding = findings.iter_mut().find(|finding| finding.code == code).unwrap();
    finding.file = Some(case.into());
    write!(text, "```text\n{}```\n", render(finding, Some(&source))).unwrap();
    text
}
