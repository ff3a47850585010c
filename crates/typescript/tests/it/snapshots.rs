//! Programs as they run, and what is said about those that can not.

use std::fmt::Write as _;
use std::path::Path;

use typescript::{Language, Role, Script, strip};

use crate::programs;

#[test]
fn programs() {
    insta::glob!("../programs", "*.ts", |path| insta::assert_snapshot!(shown(path, stripped)));
}

#[test]
fn problems() {
    insta::glob!("../problems", "*.[jt]s", |path| insta::assert_snapshot!(shown(path, problem)));
}

fn shown(path: &Path, show: impl Fn(&str, Language) -> String) -> String {
    let language = match path.extension().and_then(|extension| extension.to_str()) {
        Some("js") => Language::JavaScript,
        _ => Language::TypeScript,
    };
    let samples = programs::read(path);
    let shown: Vec<String> = samples
        .iter()
        .map(|sample| format!("//// {}\n{}", sample.name, show(&sample.source, language)))
        .collect();
    shown.join("\n")
}

fn stripped(source: &str, language: Language) -> String {
    let script = strip(source, language, Role::Entry).unwrap();
    // An editor would take spaces at the end of a line away.
    let mut shown = script.code.replace(" \n", "·\n");
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    write!(shown, "//// {}", facts(&script)).unwrap();
    shown
}

fn facts(script: &Script) -> String {
    let facts = [
        (script.has_main, "has main"),
        (script.calls_main, "calls main"),
        (script.has_default, "has a default"),
        (script.has_value, "has a value"),
    ];
    let facts = facts.into_iter().filter(|(is_so, _)| *is_so).map(|(_, fact)| fact.to_owned());
    let imports = script
        .imports
        .iter()
        .map(|import| format!("imports {} ({}:{})", import.specifier, import.line, import.column));
    let facts: Vec<String> = facts.chain(imports).collect();
    if facts.is_empty() { "nothing".to_owned() } else { facts.join(", ") }
}

fn problem(source: &str, language: Language) -> String {
    match strip(source, language, Role::Entry) {
        Ok(script) => format!("{source}no problem: {}", facts(&script)),
        Err(problem) => format!("{source}{problem}"),
    }
}
