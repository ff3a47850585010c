//! The names and descriptions of a tool's arguments, from the text of its schema. Nothing of the rest is taken apart.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use tool_schema::shallow;
use tool_schema::tool::Json;

/// More arguments than this of one tool are not looked at.
const PROPERTIES_MAX: usize = 100;

/// How a value is introduced that somebody might pass.
const EXAMPLE: &str = "(e.g.";

/// One argument's name, or its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'p> {
    Name(&'p str),
    Description(&'p str),
}

#[derive(Deserialize)]
struct Schema<'s> {
    #[serde(borrow)]
    properties: &'s RawValue,
}

#[derive(Deserialize)]
struct Property<'s> {
    #[serde(borrow)]
    description: Cow<'s, str>,
}

/// Hands over the arguments' names and descriptions, in their order. A schema of another shape has none.
pub(super) fn each(schema: &Json, each: &mut dyn FnMut(Part<'_>)) {
    let Ok(schema) = serde_json::from_str::<Schema<'_>>(schema.text()) else { return };
    let properties = shallow::fields(schema.properties.get(), PROPERTIES_MAX);
    for (name, property) in properties.into_iter().flatten() {
        each(Part::Name(&name));
        if let Ok(property) = serde_json::from_str::<Property<'_>>(property.get()) {
            each(Part::Description(&property.description));
        }
    }
}

/// A description without `(e.g. …)`: a value that somebody might pass is not what a tool is about.
pub(super) fn without_examples(text: &str) -> Cow<'_, str> {
    let Some(mut begin) = text.find(EXAMPLE) else { return Cow::Borrowed(text) };
    let (mut rest, mut kept) = (text, String::new());
    loop {
        kept.push_str(&rest[..begin]);
        let Some(end) = rest[begin..].find(')') else { break };
        rest = &rest[begin + end + 1..];
        match rest.find(EXAMPLE) {
            Some(next) => begin = next,
            None => {
                kept.push_str(rest);
                break;
            }
        }
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(schema: &str) -> Vec<String> {
        let mut parts = Vec::new();
        let raw = RawValue::from_string(schema.to_owned()).unwrap();
        each(&Json::from(&*raw), &mut |part| {
            parts.push(match part {
                Part::Name(name) => name.to_owned(),
                Part::Description(text) => format!("({text})"),
            });
        });
        parts
    }

    #[test]
    fn arguments_are_found_in_their_order() {
        let schema = r#"{"type": "object", "description": "not this", "properties": {
            "z": {"type": "string", "description": "Of z"},
            "a\n": {"properties": {"inner": {"description": "too deep"}}},
            "b": true, "c": {"description": null}, "d": [1], "f": {"description": {"x": "y"}}, "e": {"description": "é\u0041"}
        }, "required": ["z"]}"#;
        assert_eq!(parts(schema), ["z", "(Of z)", "a\n", "b", "c", "d", "f", "e", "(éA)"]);
    }

    #[test]
    fn examples_of_values_are_left_out() {
        for (text, expected) in [
            ("A zone (e.g., 'Asia/Tokyo', 'UTC') of the clock", "A zone  of the clock"),
            ("One (e.g. a), two (e.g. b) and (more)", "One , two  and (more)"),
            ("Not closed (e.g. é", "Not closed "),
            ("Nothing (to see)", "Nothing (to see)"),
            ("(e.g.)", ""),
        ] {
            assert_eq!(without_examples(text), expected);
        }
    }

    #[test]
    fn other_shapes_have_none() {
        for schema in
            ["{}", "[]", "5", "null", "\"x\"", r#"{"properties": 5}"#, r#"{"properties": [{}]}"#]
        {
            assert!(parts(schema).is_empty(), "{schema}");
        }
        let many: Vec<String> = (0..500).map(|at| format!(r#""p{at}": {{}}"#)).collect();
        let many = format!(r#"{{"properties": {{{}}}}}"#, many.join(","));
        assert_eq!(parts(&many).len(), PROPERTIES_MAX);
        let deep =
            format!(r#"{{"properties": {{"a": {}{}}}}}"#, "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(parts(&deep), ["a"]);
    }
}
