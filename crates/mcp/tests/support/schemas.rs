//! The official schemas of each revision, which are not part of this repository.

use std::cell::Cell;
use std::path::PathBuf;

use serde_json::{Value, json};

/// Names the directory with a `REVISION.json` for each revision.
const DIRECTORY: &str = "WORKFLOWLOOKUP_MCP_SCHEMAS";

thread_local! {
    /// How many messages were checked; none while an ordinary test runs.
    static CHECKED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs tests once more, and checks their messages against the official schemas.
pub(crate) fn check_messages_of(tests: &[fn()]) {
    for (index, test) in tests.iter().enumerate() {
        CHECKED.set(Some(0));
        test();
        let checked = CHECKED.take();
        assert!(checked > Some(0), "test {index} checks no message");
    }
}

/// Checks a message against a revision's official schema, within [`check_messages_of`].
pub(crate) fn valid(revision: &str, definition: &str, message: &Value) {
    let Some(checked) = CHECKED.get() else { return };
    CHECKED.set(Some(checked + 1));
    let path = directory().join(format!("{revision}.json"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut schema: Value = serde_json::from_slice(&text).unwrap();
    let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    assert!(schema[place].get(definition).is_some(), "{revision} has no {definition}");
    schema["allOf"] = json!([{"$ref": format!("#/{place}/{definition}")}]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(message).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{revision} {definition}: {errors:?}\n{message}");
}

fn directory() -> PathBuf {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        panic!("`{DIRECTORY}` names the directory with the official schemas; see CONTRIBUTING.md");
    };
    PathBuf::from(directory)
}
