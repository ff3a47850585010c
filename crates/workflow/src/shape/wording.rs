//! The words for what is wrong with a shape: names of things and of types, and what to try.

use serde_json::Value;

use crate::pointer::segments;

/// A value's own name, or "item 3 of `steps`" in a list.
pub(crate) fn name_of(pointer: &str) -> String {
    let way: Vec<String> = segments(pointer).collect();
    let is_index = |segment: &str| segment.parse::<usize>().is_ok();
    match way.as_slice() {
        [] => "the definition".to_owned(),
        [.., list, last] if !is_index(list) => match last.parse::<usize>() {
            Ok(index) => format!("item {} of `{list}`", index + 1),
            Err(_) => format!("`{last}`"),
        },
        [.., last] => format!("`{last}`"),
    }
}

pub(super) fn owner(shape: &str) -> &'static str {
    match shape {
        "Workflow" => "the workflow",
        "LoopStep" => "the loop step",
        "Loop" => "the loop",
        "Step" => "the step",
        "Declaration" => "the declaration",
        _ => "this",
    }
}

/// "a `for`" and "an `until`".
pub(super) fn with_article(kind: &str) -> String {
    let article = if kind.starts_with('u') { "an" } else { "a" };
    format!("{article} `{kind}`")
}

pub(super) fn list_names(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The operator that other languages spell like this.
pub(super) fn operator(name: &str) -> Option<&'static str> {
    Some(match name {
        "=" | "==" | "===" | "eq" | "is" => "equals",
        "!=" | "!==" | "<>" | "ne" | "neq" => "not_equals",
        ">" | "greaterThan" | "greater_than" => "gt",
        ">=" | "ge" | "greaterThanOrEqual" | "greater_than_or_equal" => "gte",
        "<" | "lessThan" | "less_than" => "lt",
        "<=" | "le" | "lessThanOrEqual" | "less_than_or_equal" => "lte",
        "oneOf" | "one_of" => "in",
        "includes" | "has" => "contains",
        "&&" | "all" | "allOf" => "and",
        "||" | "any" | "anyOf" => "or",
        "!" => "not",
        _ => return None,
    })
}

/// What should stand at the place. Where a field takes two kinds of value, the schema names only the
/// one that was not looked for first.
pub(super) fn wanted(shape: &str, pointer: &str, types: &[&str]) -> String {
    match shape {
        "Confirmation" => "true, false or a condition".to_owned(),
        "Body" => "a list of steps or the id of one".to_owned(),
        "Count" => "a whole number or the name of a variable".to_owned(),
        // What is no object at all is taken for a composition.
        "Rule" | "Composition" if pointer.ends_with("/validationCriteria") => {
            "a rule or a list of rules".to_owned()
        }
        _ => types.iter().map(|name| type_name(name)).collect::<Vec<_>>().join(" or "),
    }
}

fn type_name(name: &str) -> &'static str {
    match name {
        "string" => "a text",
        "array" => "a list",
        "object" => "an object",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        _ => "null",
    }
}

pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 40 => format!("the text {value}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

pub(super) fn type_hint(
    shape: &str,
    pointer: &str,
    types: &[&str],
    found: &Value,
) -> Option<String> {
    let wants = |name| types.contains(&name);
    let hint = match found {
        Value::Null => "give it a value, or remove the field if it is optional".to_owned(),
        Value::String(text) if wants("boolean") => match text.to_lowercase().as_str() {
            "true" | "false" => format!("write {} without quotes", text.to_lowercase()),
            "yes" | "on" => "write `true`".to_owned(),
            "no" | "off" => "write `false`".to_owned(),
            _ => return None,
        },
        Value::String(text) if wants("integer") || wants("number") => {
            text.parse::<f64>().ok().filter(|number| number.is_finite())?;
            format!("write {text} without quotes")
        }
        Value::String(_) if shape == "Condition" && wants("object") => {
            r#"write an object, such as {"var": "size", "gt": 5}"#.to_owned()
        }
        Value::Number(number) if pointer.to_lowercase().ends_with("version") => {
            let dots = number.to_string().matches('.').count();
            format!("write three numbers in quotes: \"{number}{}\"", ".0".repeat(2 - dots.min(2)))
        }
        Value::Number(_) | Value::Bool(_) if wants("string") => {
            format!("put it in quotes: \"{found}\"")
        }
        // What YAML makes of `- Is it on: yes or no?`
        Value::Object(fields) if wants("string") && fields.len() == 1 => {
            "if it is one text with a colon in it, put it in quotes".to_owned()
        }
        Value::String(_) | Value::Object(_) if wants("array") => {
            "put it in square brackets, or write a list".to_owned()
        }
        _ => return None,
    };
    Some(hint)
}
