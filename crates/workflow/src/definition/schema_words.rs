//! Small JSON Schemas in words: an agent reads "a list of objects with `id` and `statement`" with fewer tokens than the
//! schema takes, and no author writes it twice.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Lists inside lists and objects inside objects go this deep. A schema that goes deeper is shown as it is.
const DEPTH_MAX: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    One,
    Many,
}

/// Says all that a schema demands, or nothing where a keyword has no words here.
pub(super) fn in_words(schema: &Value) -> Option<String> {
    described(schema, Count::One, DEPTH_MAX)
}

fn described(schema: &Value, count: Count, depth: usize) -> Option<String> {
    let keywords = schema.as_object()?;
    let depth = depth.checked_sub(1)?;
    let has_only =
        |known: &[&str]| keywords.keys().all(|key| key == "type" || known.contains(&&**key));
    let one_or_many =
        |one: &str, many: &str| if count == Count::One { one } else { many }.to_owned();
    if let Some(options) = keywords.get("enum") {
        return keywords.len().eq(&1).then(|| alternatives(options.as_array()?)).flatten();
    }
    match keywords.get("type")?.as_str()? {
        "boolean" if has_only(&[]) => Some(one_or_many("true or false", "booleans")),
        "string" if has_only(&[]) => Some(one_or_many("a string", "strings")),
        "string" if has_only(&["minLength"]) && keywords["minLength"] == 1 => {
            Some(one_or_many("a string that is not empty", "strings that are not empty"))
        }
        "integer" if has_only(&["minimum", "maximum"]) => {
            range(&one_or_many("a whole number", "whole numbers"), keywords)
        }
        "number" if has_only(&["minimum", "maximum"]) => {
            range(&one_or_many("a number", "numbers"), keywords)
        }
        "array" if has_only(&["items", "minItems"]) => {
            let of = match keywords.get("items") {
                Some(items) => format!(" of {}", described(items, Count::Many, depth)?),
                None => String::new(),
            };
            let list = one_or_many("a list", "lists");
            match keywords.get("minItems").map(Value::as_u64) {
                None | Some(Some(0)) => Some(format!("{list}{of}")),
                Some(Some(least)) => Some(format!("{list}{of}, at least {least}")),
                Some(None) => None,
            }
        }
        "object" if has_only(&["properties", "required"]) => {
            let object = one_or_many("an object", "objects");
            let fields = fields(keywords, depth)?;
            Some(if fields.is_empty() { object } else { format!("{object} with {fields}") })
        }
        _ => None,
    }
}

/// The required fields in their order, and then those that may be absent.
fn fields(keywords: &Map<String, Value>, depth: usize) -> Option<String> {
    let none = Map::new();
    let properties = keywords.get("properties").map_or(Some(&none), Value::as_object)?;
    let required = keywords.get("required").map_or(Some(&[][..]), |all| Some(all.as_array()?))?;
    let required: Vec<&str> = required.iter().map(Value::as_str).collect::<Option<_>>()?;
    let described = |name: &str, is_required: bool| {
        let kind = match properties.get(name) {
            Some(schema) => Some(described(schema, Count::One, depth)?),
            None => None,
        };
        Some(match (kind, is_required) {
            (None, _) => format!("`{name}`"),
            (Some(kind), true) => format!("`{name}` ({kind})"),
            (Some(kind), false) => format!("`{name}` (optional, {kind})"),
        })
    };
    let optional = properties.keys().filter(|name| !required.contains(&&***name));
    let all = required.iter().map(|name| described(name, true));
    let all: Vec<String> =
        all.chain(optional.map(|name| described(name, false))).collect::<Option<_>>()?;
    Some(joined(&all))
}

fn range(number: &str, keywords: &Map<String, Value>) -> Option<String> {
    let bound = |name: &str| match keywords.get(name) {
        None => Some(None),
        Some(Value::Number(bound)) => Some(Some(bound)),
        Some(_) => None,
    };
    Some(match (bound("minimum")?, bound("maximum")?) {
        (Some(least), Some(most)) => format!("{number} from {least} to {most}"),
        (Some(least), None) => format!("{number}, at least {least}"),
        (None, Some(most)) => format!("{number}, at most {most}"),
        (None, None) => number.to_owned(),
    })
}

/// `"small"`, `"medium"` or `"large"`.
pub(super) fn alternatives(values: &[Value]) -> Option<String> {
    let mut text = String::new();
    for (at, value) in values.iter().enumerate() {
        text.push_str(match at {
            0 => "",
            _ if at + 1 == values.len() => " or ",
            _ => ", ",
        });
        // Writing to a string cannot fail.
        let _ = write!(text, "{value}");
    }
    (!values.is_empty()).then_some(text)
}

fn joined(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_schemas_are_said_in_words() {
        for (schema, words) in [
            (
                json!({"type": "object", "required": ["name", "goal"]}),
                "an object with `name` and `goal`",
            ),
            (
                json!({"type": "array", "minItems": 1, "items": {"type": "object", "required": ["id", "statement"]}}),
                "a list of objects with `id` and `statement`, at least 1",
            ),
            (
                json!({"type": "array", "items": {"enum": ["api", "ui"]}}),
                r#"a list of "api" or "ui""#,
            ),
            (
                json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["minor"]}, "at": {"type": "integer", "minimum": 0}}}),
                r#"an object with `kind` ("minor") and `at` (optional, a whole number, at least 0)"#,
            ),
            (json!({"type": "number", "minimum": 0, "maximum": 100}), "a number from 0 to 100"),
            (json!({"type": "string", "minLength": 1}), "a string that is not empty"),
            (json!({"type": "array"}), "a list"),
        ] {
            assert_eq!(in_words(&schema).as_deref(), Some(words), "{schema}");
        }
    }

    #[test]
    fn schema_that_demands_more_has_no_words() {
        for schema in [
            json!(true),
            json!({}),
            json!({"enum": []}),
            json!({"type": "string", "pattern": "^a"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "minLength": 2}),
            json!({"type": "array", "minItems": "1"}),
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "required": [1]}),
            json!({"type": "object", "properties": {"a": {"type": "string", "format": "date"}}}),
            json!({"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}}),
            json!({"$ref": "#"}),
        ] {
            assert_eq!(in_words(&schema), None, "{schema}");
        }
    }
}
