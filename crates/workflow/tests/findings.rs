//! Every file in `cases/` is read as an author's definition; the snapshot is what the author is shown.
//! A case named after a code must show that code. Adding a case means adding a file.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use std::path::Path;

use workflow::finding::render;
use workflow::{Code, Format, Scrutiny, read};

fn shown(path: &Path) -> (String, Vec<Code>) {
    let bytes = std::fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut reading = read(&bytes, Format::of(name).unwrap(), Scrutiny::Compile);
    let text = String::from_utf8_lossy(&bytes);
    let usable = if reading.workflow.is_some() { "can be used" } else { "cannot be used" };
    let mut shown = format!("{usable}\n");
    for finding in &mut reading.findings {
        finding.file = Some(name.into());
        shown.push('\n');
        let rendered = render(finding, Some(&text));
        // The product's own version changes with every release.
        let own = format!("but this is {}", workflow::VERSION);
        shown.push_str(&rendered.replace(&own, "but this is VERSION"));
    }
    (shown, reading.findings.iter().map(|finding| finding.code).collect())
}

#[test]
fn cases() {
    insta::glob!("../cases", "*.*", |path| {
        let (shown, codes) = shown(path);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if let Some(code) = stem.split('-').next().filter(|first| first.starts_with('w')) {
            let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
            assert!(names.contains(&code.to_uppercase().as_str()), "{stem} shows {names:?}");
        }
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(shown) });
    });
}

/// Those of the catalogue, and a file so large that it is better generated.
const WITHOUT_CASE: [Code; 4] =
    [Code::TooLarge, Code::Unreadable, Code::LinkOut, Code::TooManyFiles];

#[test]
fn every_code_has_a_case() {
    let cases = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")).unwrap();
    let names: Vec<String> =
        cases.map(|case| case.unwrap().file_name().into_string().unwrap()).collect();
    for code in Code::ALL.iter().filter(|code| !WITHOUT_CASE.contains(code)) {
        let prefix = format!("{}-", code.name().to_lowercase());
        assert!(names.iter().any(|name| name.starts_with(&prefix)), "{} has none", code.name());
    }
}

/// The loaded workflow has a message that is generated from the rule.
#[test]
fn empty_message_is_generated() {
    let text = include_str!("../cases/w062-empty-message.json");
    let workflow = read(text.as_bytes(), Format::Json, Scrutiny::Syntax).workflow.unwrap();
    let Some(workflow::Step::Plain(step)) = workflow.step("plan") else { panic!("not there") };
    assert!(step.unusable_criteria.is_none());
    let mut messages = Vec::new();
    step.validation_criteria.as_ref().unwrap().each_rule(&mut |rule| {
        messages.push(rule.message.to_string());
    });
    assert_eq!(messages, ["Write at least 40 characters", "Do not match the pattern /todo/i"]);
}

/// One definition in both formats, with every field that there is.
#[test]
fn the_formats_say_the_same() {
    let json = include_str!("../cases/good-everything.json");
    let yaml = include_str!("../cases/good-everything.yaml");
    let from_json = read(json.as_bytes(), Format::Json, Scrutiny::Compile).workflow.unwrap();
    let from_yaml = read(yaml.as_bytes(), Format::Yaml, Scrutiny::Compile).workflow.unwrap();
    assert_eq!(from_json, from_yaml);

    let schema: serde_json::Value = serde_json::from_str(&workflow::schema_text()).unwrap();
    let objects = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    for object in objects.filter_map(|object| object["properties"].as_object()) {
        for field in object.keys() {
            assert!(json.contains(&format!("\"{field}\":")), "{field} is not used");
        }
    }
}
