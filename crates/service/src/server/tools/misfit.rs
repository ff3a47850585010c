//! Which argument of a tool is of the wrong kind, in the words of JSON: agents know the schema, and nothing of how it is
//! read here. What else is wrong is said by who reads the arguments.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How much of a wrong value is repeated.
const SHOWN_CHARS_MAX: usize = 40;

/// The first argument that is JSON text in a string where the schema wants the object or array itself.
pub(super) fn encoded_argument(schema: &Value, arguments: &RawValue) -> Option<String> {
    let given: BTreeMap<String, &RawValue> = serde_json::from_str(arguments.get()).ok()?;
    let properties = schema.get("properties")?.as_object()?;
    given.iter().find_map(|(name, value)| {
        let wanted = properties.get(name)?.get("type")?.as_str()?;
        let open = match wanted {
            "object" => '{',
            "array" => '[',
            _ => return None,
        };
        let inner: String = serde_json::from_str(value.get()).ok()?;
        let inner = inner.trim();
        // Only read, so that no tree is made of a large one.
        let is_json = inner.starts_with(open) && serde_json::from_str::<IgnoredAny>(inner).is_ok();
        let shown = if inner.chars().count() > SHOWN_CHARS_MAX { "the inner value" } else { inner };
        is_json.then(|| {
            format!(
                "`{name}` must be {}, not JSON text in a string: send {shown} itself",
                article(wanted)
            )
        })
    })
}

/// The first argument that is not what the schema wants; nothing where each is.
pub(super) fn misfit(schema: &Value, arguments: &RawValue) -> Option<String> {
    let given: Map<String, Value> = serde_json::from_str(arguments.get()).ok()?;
    let properties = schema.get("properties")?.as_object()?;
    given.iter().find_map(|(name, value)| wrong(name, properties.get(name)?, value))
}

fn wrong(name: &str, schema: &Value, value: &Value) -> Option<String> {
    // What is null is left out.
    if value.is_null() {
        return None;
    }
    let wanted = schema.get("type").and_then(Value::as_str)?;
    if !is(wanted, value) {
        return Some(format!("`{name}` must be {}, not {}", article(wanted), kind(value)));
    }
    if let Some(item) = schema.get("items")
        && let Some(items) = value.as_array()
    {
        let mut items = items.iter().enumerate();
        return items.find_map(|(at, value)| wrong(&format!("{name}/{at}"), item, value));
    }
    let allowed = schema.get("enum")?.as_array().filter(|allowed| !allowed.contains(value))?;
    let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
    let value: String = value.to_string().chars().take(SHOWN_CHARS_MAX).collect();
    Some(format!("`{name}` must be one of {}, not {value}", allowed.join(", ")))
}

fn is(wanted: &str, value: &Value) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_argument_is_named_and_what_it_must_be() {
        let schema = json!({"properties": {
            "arguments": {"type": "object"},
            "limit": {"type": "integer"},
            "ids": {"type": "array", "items": {"type": "string"}},
            "visibility": {"type": "string", "enum": ["default", "experimental"]},
            "anything": {},
        }});
        let said = |arguments: Value| {
            let raw = RawValue::from_string(arguments.to_string()).unwrap();
            misfit(&schema, &raw).unwrap_or_default()
        };
        insta::assert_snapshot!(said(json!({"arguments": "{\"a\": 1}"})), @"`arguments` must be an object, not a string");
        insta::assert_snapshot!(said(json!({"limit": "3"})), @"`limit` must be an integer, not a string");
        insta::assert_snapshot!(said(json!({"limit": 1.5})), @"`limit` must be an integer, not a fraction");
        insta::assert_snapshot!(said(json!({"ids": ["a", 5]})), @"`ids/1` must be a string, not a number");
        insta::assert_snapshot!(said(json!({"visibility": "opt_in"})), @r#"`visibility` must be one of "default", "experimental", not "opt_in""#);
        let encoded = |arguments: Value| {
            let raw = RawValue::from_string(arguments.to_string()).unwrap();
            encoded_argument(&schema, &raw).unwrap_or_default()
        };
        insta::assert_snapshot!(encoded(json!({"arguments": "{\"a\": 1}"})), @r#"`arguments` must be an object, not JSON text in a string: send {"a": 1} itself"#);
        insta::assert_snapshot!(encoded(json!({"ids": format!("[{}1]", "1, ".repeat(20))})), @"`ids` must be an array, not JSON text in a string: send the inner value itself");
        for other in [
            json!({"arguments": "a"}),
            json!({"arguments": "{"}),
            json!({"arguments": "[]"}),
            json!({"limit": "{}", "x": "{}", "arguments": {}}),
        ] {
            assert_eq!(encoded(other), "");
        }
        for fine in [
            json!({}),
            json!({"limit": 3, "anything": [], "ids": []}),
            json!({"limit": null, "x": 1}),
        ] {
            assert_eq!(said(fine), "");
        }
    }
}
