//! `validate` and `workflow_lint` agree: every finding has the same code, place and text.

use std::process::Stdio;

use serde_json::{Value, json};

use super::agent::{Agent, Era};
use super::transcripts::Process;
use super::*;

/// Texts that show a finding, by file name: the cases of the language, and those that differ most by format.
fn cases() -> Vec<(String, Vec<u8>)> {
    let folder = repository().join("crates/workflow/cases");
    let mut cases: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    assert!(cases.len() > 50, "the cases are gone");
    let mut too_large = definition("too-large", "Too large").into_bytes();
    too_large.resize(1024 * 1024 + 1, b' ');
    cases.push(("w004-too-large.json".to_owned(), too_large));
    for (name, text) in [
        ("empty.json", ""),
        ("empty.yaml", ""),
        ("flow.yaml", "{id: abc}"),
        ("plain.json", "id: abc"),
        ("UPPER.JSON", "id: abc"),
        ("list.json", "[1,"),
        ("comment.json", "// mine\n{}"),
        ("nul.json", "{\0\0\0\0\0\0\0\0\0}"),
    ] {
        cases.push((name.to_owned(), text.into()));
    }
    cases.sort();
    cases
}

/// What the tool returns for a text: the findings, and as it shows them.
fn lint(agent: &mut Agent, text: &str, file_name: Option<&str>) -> (Value, Vec<String>) {
    let mut arguments = json!({"definition": text});
    if let Some(name) = file_name {
        arguments["fileName"] = json!(name);
    }
    let mut result = agent.call("workflow_lint", &arguments);
    let findings = result["structuredContent"]["findings"].take();
    let shown = lines(result["content"][0]["text"].as_str().unwrap());
    (findings, shown[1..].to_vec())
}

/// What the command prints for a file of the project.
fn validate(place: &Place, name: &str) -> (Value, Vec<String>) {
    let findings = place.run(&["validate", "--json", name]).json()["findings"].take();
    let mut shown = lines(&place.run(&["validate", name]).stdout);
    shown.pop();
    (findings, shown)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn lint_and_validate_agree_on_every_case() {
    let place = Place::new();
    let mut command = place.command(&["serve", "--no-bundled"]);
    command.stderr(Stdio::null());
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, json!({}));
    let mut compared = 0;
    for (name, bytes) in cases() {
        // A tool's argument is always UTF-8.
        let Ok(text) = String::from_utf8(bytes) else {
            assert_eq!(name, "w002-latin-1.json");
            continue;
        };
        place.write(&name, &text);
        let by_command = validate(&place, &name);
        assert_eq!(lint(&mut agent, &text, Some(&name)), by_command, "{name}");
        compared += by_command.0.as_array().unwrap().len();
        // Without an ending, both guess the format.
        place.write("unnamed", &text);
        let (mut guessed, _) = validate(&place, "unnamed");
        for finding in guessed.as_array_mut().unwrap() {
            finding.as_object_mut().unwrap().remove("file");
        }
        assert_eq!(lint(&mut agent, &text, None).0, guessed, "{name} without a name");
    }
    assert!(compared > 60, "{compared}");
    agent.end();
}

/// A guess is right for every case: an agent that gives no name gets what its file would get.
#[test]
fn format_of_unnamed_case_is_guessed() {
    let place = Place::new();
    let mut agent = Agent::start(&place);
    for entry in fs::read_dir(repository().join("crates/workflow/cases")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let (mut named, _) = lint(&mut agent, &text, Some(name));
        for finding in named.as_array_mut().unwrap() {
            finding.as_object_mut().unwrap().remove("file");
        }
        assert_eq!(lint(&mut agent, &text, None).0, named, "{name}");
    }
    agent.end();
}

#[test]
fn long_file_name_is_refused() {
    let mut agent = Agent::start(&Place::new());
    let result =
        agent.call("workflow_lint", &json!({"definition": "", "fileName": "a".repeat(256)}));
    let text = result["content"][0]["text"].as_str().unwrap();
    insta::assert_snapshot!(text, @"Call the tool again with other arguments: fileName may have at most 255 bytes.");
    agent.end();
}
