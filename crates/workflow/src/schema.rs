//! JSON Schemas inside `schema` rules: strangers wrote them. Nothing is fetched, patterns in them
//! run under a limit, and loading checks them against their meta-schema only.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::pattern::COMPILED_BYTES_MAX;

/// How many steps back a pattern with look-around inside a schema may take.
const BACKTRACK_MAX: usize = 10_000;

/// What is wrong with a schema, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Malformed {
    /// A JSON pointer into the schema.
    pub pointer: String,
    pub message: String,
}

/// Checks a schema against its meta-schema, without compiling it.
pub fn check(schema: &Value) -> Result<(), Malformed> {
    // Not `meta::is_valid`: that one panics on a `$schema` which it does not know.
    jsonschema::meta::validate(schema).map_err(|error| match error.kind() {
        ValidationErrorKind::Referencing(_) => Malformed {
            pointer: "/$schema".to_owned(),
            message: "the dialect that `$schema` names is not known".to_owned(),
        },
        _ => Malformed { pointer: error.instance_path().to_string(), message: error.to_string() },
    })
}

/// Compiles a schema. References to files or hosts do not resolve.
pub fn compile(schema: &Value) -> Result<Validator, Malformed> {
    let patterns =
        PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX).size_limit(COMPILED_BYTES_MAX);
    let options = jsonschema::options().offline().with_pattern_options(patterns);
    options.build(schema).map_err(|error| Malformed {
        pointer: error.instance_path().to_string(),
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn malformed_schemas_are_named() {
        assert_eq!(check(&json!({"type": "object"})), Ok(()));
        let error = check(&json!({"properties": {"a": {"type": "text"}}})).unwrap_err();
        assert_eq!(error.pointer, "/properties/a/type");
        let unknown = check(&json!({"$schema": "https://example.com/unknown"})).unwrap_err();
        assert_eq!(unknown.message, "the dialect that `$schema` names is not known");
    }

    #[test]
    fn nothing_is_fetched() {
        for elsewhere in ["https://example.com/other.json", "file:///etc/hostname"] {
            assert!(compile(&json!({"$ref": elsewhere})).is_err(), "{elsewhere}");
        }
    }

    #[test]
    fn a_catastrophic_pattern_is_harmless() {
        let text = Value::String(format!("{}!", "a".repeat(10_000)));
        for pattern in ["^(a+)+$", "^(?=(a+)+$)a"] {
            let validator = compile(&json!({"pattern": pattern})).unwrap();
            assert!(!validator.is_valid(&text), "{pattern}");
        }
    }
}
