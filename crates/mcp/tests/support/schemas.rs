//! The official schemas of each revision, where they are at hand.

use std::path::Path;

use serde_json::{Value, json};

/// Holds a message against a revision's official schema.
pub(crate) fn valid(revision: &str, definition: &str, message: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/mcp-schema");
    let Ok(text) = std::fs::read(folder.join(format!("{revision}.json"))) else {
        return;
    };
    let mut schema: Value = serde_json::from_slice(&text).unwrap();
    let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    assert!(schema[place].get(definition).is_some(), "{revision} has no {definition}");
    schema["allOf"] = json!([{"$ref": format!("#/{place}/{definition}")}]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(message).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{revision} {definition}: {errors:?}\n{message}");
}
