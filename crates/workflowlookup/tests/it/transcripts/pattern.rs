//! What is expected of a message, where not everything in it can be known before.

use std::collections::HashMap;

use serde_json::{Value, json};

/// What was given names in a transcript: ids that are random.
pub(super) type Names = HashMap<String, String>;

/// A line of a transcript with the names that are known filled in.
pub(super) fn filled_in(line: &str, names: &Names) -> String {
    names.iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value))
}

/// Takes what stands where a name stands in what is expected.
pub(super) fn take_names(expected: &Value, actual: &Value, names: &mut Names) {
    match (expected, actual) {
        (Value::String(name), Value::String(value)) if name.starts_with('$') => {
            names.insert(name.clone(), value.clone());
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.iter().zip(actual).for_each(|(e, a)| take_names(e, a, names));
        }
        (Value::Object(expected), Value::Object(actual)) => {
            let both = expected.iter().filter_map(|(name, e)| Some((e, actual.get(name)?)));
            both.for_each(|(e, a)| take_names(e, a, names));
        }
        _ => {}
    }
}

/// Whether an answer is the expected one. `"…"` stands for any string, `{"…": "…"}` for any object, and
/// as the last item of an array for whatever else it holds. A text that is JSON is compared as such.
pub(super) fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::String(expected), Value::String(actual)) if expected.starts_with('{') => {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
            parsed(expected).zip(parsed(actual)).is_some_and(|(e, a)| fits(&e, &a))
        }
        (Value::String(expected), Value::String(actual)) => expected == "…" || expected == actual,
        (Value::Array(expected), Value::Array(actual)) => match expected.split_last() {
            Some((last, expected)) if last == "…" => {
                expected.len() <= actual.len() && expected.iter().zip(actual).all(both)
            }
            _ => expected.len() == actual.len() && expected.iter().zip(actual).all(both),
        },
        (Value::Object(expected), Value::Object(actual)) => {
            let is_any = expected.len() == 1 && expected.contains_key("…");
            is_any
                || expected.len() == actual.len()
                    && expected.iter().all(|(name, value)| {
                        actual.get(name).is_some_and(|actual| fits(value, actual))
                    })
        }
        _ => expected == actual,
    }
}

fn both((expected, actual): (&Value, &Value)) -> bool {
    fits(expected, actual)
}

#[test]
fn a_pattern_fits_what_it_says_and_nothing_else() {
    for (expected, actual, is_fit) in [
        (json!("…"), json!("x"), true),
        (json!("…"), json!(1), false),
        (json!({"…": "…"}), json!({"a": 1}), true),
        (json!({"…": "…"}), json!([]), false),
        (json!(["…"]), json!([1, 2]), true),
        (json!(["…"]), json!({}), false),
        (json!([1, "…"]), json!([1, 2, 3]), true),
        (json!([1, "…"]), json!([2, 3]), false),
        (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), false),
        (json!([1]), json!([1, 2]), false),
        (json!(null), json!(0), false),
        (json!(r#"{"a": "…", "b": 1}"#), json!(r#"{"b":1,"a":"x"}"#), true),
        (json!(r#"{"a": 1}"#), json!(r#"{"a":2}"#), false),
        (json!(r#"{"a": 1}"#), json!("a"), false),
    ] {
        assert_eq!(fits(&expected, &actual), is_fit, "{expected} {actual}");
    }
}
