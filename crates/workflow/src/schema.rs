//! JSON Schemas inside `schema` rules: strangers wrote them. Nothing is fetched, patterns in them
//! run under a limit, and loading checks them against their meta-schema only.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;

use crate::pattern::COMPILED_BYTES_MAX;

/// How many steps back a pattern with look-around may take on one text of an output. There may be many
/// texts, so it is less than for a rule's own pattern.
const BACKTRACK_MAX: usize = 100_000;
use crate::pointer::join;

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
        _ => explain(&error),
    })
}

/// Compiles a schema. References to files or hosts do not resolve.
pub fn compile(schema: &Value) -> Result<Validator, Malformed> {
    let patterns =
        PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX).size_limit(COMPILED_BYTES_MAX);
    let options = jsonschema::options().offline().with_pattern_options(patterns);
    options.build(schema).map_err(|error| match error.kind() {
        ValidationErrorKind::Referencing(problem) => unresolved(schema, problem),
        _ => explain(&error),
    })
}

fn explain(error: &ValidationError<'_>) -> Malformed {
    let pointer = error.instance_path().to_string();
    let found = error.instance();
    let message = match error.kind() {
        // The only choice in the meta-schema: one type, or a list of them.
        ValidationErrorKind::AnyOf { .. } if pointer.ends_with("/type") => format!(
            "{found} is no type; there are `string`, `number`, `integer`, `boolean`, `array`, \
             `object` and `null`"
        ),
        ValidationErrorKind::Format { .. } => {
            let pattern = pointer.rsplit_once('/').map_or("", |(_, last)| last);
            let pattern = found.as_str().unwrap_or(pattern);
            format!("the pattern `{pattern}` in it is malformed or too large")
        }
        _ => error.to_string(),
    };
    Malformed { pointer, message }
}

/// The library names what it did not find, but not who asked for it.
fn unresolved(schema: &Value, problem: &ReferencingError) -> Malformed {
    let (target, message) = match problem {
        ReferencingError::Unretrievable { uri, .. } => {
            (uri.as_str(), format!("`{uri}` is outside of the schema, and nothing is fetched"))
        }
        ReferencingError::PointerToNowhere { pointer: target }
        | ReferencingError::NoSuchAnchor { anchor: target } => {
            (target.as_str(), format!("`#{target}` leads nowhere"))
        }
        other => ("", other.to_string()),
    };
    let pointer = reference(schema, target, "").unwrap_or_default();
    Malformed { pointer, message }
}

/// Where the schema refers to the target.
fn reference(schema: &Value, target: &str, pointer: &str) -> Option<String> {
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let inner = join(pointer, key);
            let is_it = key == "$ref" && value.as_str().is_some_and(|to| to.ends_with(target));
            if is_it { Some(inner) } else { reference(value, target, &inner) }
        }),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| reference(item, target, &format!("{pointer}/{at}")))
        }
        _ => None,
    }
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
    fn what_leads_nowhere_is_found() {
        let schema = json!({"properties": {"a": {"prefixItems": [{}, {"$ref": "#/$defs/b"}]}}});
        let error = compile(&schema).unwrap_err();
        assert_eq!(error.pointer, "/properties/a/prefixItems/1/$ref");
        assert_eq!(error.message, "`#/$defs/b` leads nowhere");
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
