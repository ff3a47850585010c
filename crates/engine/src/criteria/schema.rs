//! `schema`: the output is JSON, bare or in one fenced block, and valid under a JSON Schema.

use std::collections::HashSet;

use budget::schema::{Schema, ValidationError};
use budget::{Budget, Exhausted};
use serde_json::Value;
use workflow::criteria::Embedded;

use super::{Output, Unusable};
use crate::compiled::{Compiled, Machine};

/// More complaints than this about one output help nobody.
const COMPLAINTS_MAX: usize = 20;
/// A complaint quotes the value; beyond this it only points at it.
const COMPLAINT_BYTES_MAX: usize = 400;
/// How many bytes of JSON are read in one step.
const JSON_BYTES_PER_STEP: usize = 4;

pub(super) fn passes(
    schema: &Embedded,
    output: Output<'_>,
    compiled: &Compiled,
) -> Result<bool, Unusable> {
    match compiled.schema(schema, output.budget)?.get() {
        Some(Machine::Schema(Ok(schema))) => match json_in(output)? {
            Ok(value) => Ok(schema.evaluate(&value, output.budget)?.is_valid),
            Err(_) => Ok(false),
        },
        Some(Machine::Schema(Err(error))) => {
            Err(Unusable::Schema(format!("the schema is malformed: {error}")))
        }
        _ => Err(Unusable::Schema("the schema is not compiled".to_owned())),
    }
}

pub(super) fn advice(
    schema: &Embedded,
    wanted: bool,
    output: Output<'_>,
    compiled: &Compiled,
) -> Result<Vec<String>, Exhausted> {
    if !wanted {
        return Ok(vec!["Change the JSON, so that it does not fit the schema.".to_owned()]);
    }
    let value = match json_in(output)? {
        Ok(value) => value,
        Err(why) => return Ok(vec![why]),
    };
    let machine = compiled.schema(schema, output.budget)?;
    let Some(Machine::Schema(Ok(schema))) = machine.get() else {
        return Ok(Vec::new());
    };
    let evaluation = schema.evaluate(&value, output.budget)?;
    let errors = schema.errors(&value, evaluation, output.budget)?;
    if errors.is_empty() {
        let advice = "Make the JSON fit the schema; it is too large to say where it does not.";
        return Ok(vec![advice.to_owned()]);
    }
    let kind_mismatches = errors.iter().filter(|error| is_kind_mismatch(error.kind().keyword()));
    let pointers = kind_mismatches.map(|error| error.instance_path().as_str().to_owned());
    let encoded = find_encoded(schema, &value, pointers, output.budget)?;
    Ok(complaints(&errors, "At the top of the JSON", &encoded))
}

/// Where a value is not valid under a schema; empty if it is.
pub(super) fn value_errors(
    schema: &Embedded,
    value: &Value,
    budget: &Budget,
    compiled: &Compiled,
) -> Result<Vec<String>, Unusable> {
    let machine = compiled.schema(schema, budget)?;
    let schema = match machine.get() {
        Some(Machine::Schema(Ok(schema))) => schema,
        Some(Machine::Schema(Err(error))) => {
            return Err(Unusable::Schema(format!("the schema is malformed: {error}")));
        }
        _ => return Err(Unusable::Schema("the schema is not compiled".to_owned())),
    };
    let evaluation = schema.evaluate(value, budget)?;
    if evaluation.is_valid {
        return Ok(Vec::new());
    }
    let errors = schema.errors(value, evaluation, budget)?;
    if errors.is_empty() {
        return Ok(vec!["it is too large to say where.".to_owned()]);
    }
    Ok(complaints(&errors, "At its top", &HashSet::new()))
}

fn complaints(errors: &[ValidationError<'_>], top: &str, encoded: &HashSet<String>) -> Vec<String> {
    let complaints = errors.iter().take(COMPLAINTS_MAX).map(|error| {
        let pointer = error.instance_path().as_str();
        if encoded.contains(pointer) {
            let what = match pointer {
                "" => "The output is".to_owned(),
                pointer => format!("At {pointer}: this is"),
            };
            return format!(
                "{what} JSON text inside a JSON string; submit the inner value itself."
            );
        }
        let place = match pointer {
            "" => top.to_owned(),
            pointer => format!("At {pointer}"),
        };
        if is_short(error.instance(), COMPLAINT_BYTES_MAX) {
            let quoting = error.to_string();
            if quoting.len() <= COMPLAINT_BYTES_MAX {
                return format!("{place}: {quoting}.");
            }
        }
        format!("{place}: {}.", error.masked_with("this"))
    });
    complaints.collect()
}

/// Finds the strings, by their pointers, whose text is the object or array that the schema wants there.
fn find_encoded(
    schema: &Schema,
    value: &Value,
    pointers: impl Iterator<Item = String>,
    budget: &Budget,
) -> Result<HashSet<String>, Exhausted> {
    let mut decoded = None;
    let mut found = HashSet::new();
    for pointer in pointers.take(COMPLAINTS_MAX) {
        let Some(inner) = value.pointer(&pointer).and_then(Value::as_str).map(str::trim) else {
            continue;
        };
        if !inner.starts_with(['{', '[']) {
            continue;
        }
        budget.spend((inner.len() / JSON_BYTES_PER_STEP) as u64)?;
        let Ok(inner) = serde_json::from_str::<Value>(inner) else { continue };
        let decoded = decoded.get_or_insert_with(|| value.clone());
        if let Some(slot) = decoded.pointer_mut(&pointer) {
            *slot = inner;
            found.insert(pointer);
        }
    }
    if let Some(decoded) = &decoded {
        let evaluation = schema.evaluate(decoded, budget)?;
        for error in schema.errors(decoded, evaluation, budget)? {
            if is_kind_mismatch(error.kind().keyword()) {
                found.remove(error.instance_path().as_str());
            }
        }
    }
    Ok(found)
}

/// Whether a value that violates this keyword may be of another type than the schema wants.
fn is_kind_mismatch(keyword: &str) -> bool {
    matches!(keyword, "type" | "anyOf" | "oneOf")
}

/// Whether a value is shorter than this as JSON, without writing all of it.
fn is_short(value: &Value, limit: usize) -> bool {
    fn left(value: &Value, limit: usize) -> Option<usize> {
        let limit = limit.checked_sub(match value {
            Value::String(text) => text.len() + 2,
            _ => 2,
        })?;
        match value {
            Value::Array(items) => items.iter().try_fold(limit, |limit, item| left(item, limit)),
            Value::Object(fields) => fields
                .iter()
                .try_fold(limit, |limit, (key, inner)| left(inner, limit.checked_sub(key.len())?)),
            _ => Some(limit),
        }
    }
    left(value, limit).is_some()
}

/// The JSON of an output: all of it, or its one fenced block.
fn json_in(output: Output<'_>) -> Result<Result<Value, String>, Exhausted> {
    // Once as a whole, and once more for a block in it.
    output.budget.spend(2 * (output.text.len() / JSON_BYTES_PER_STEP) as u64)?;
    Ok(parsed(output.text))
}

fn parsed(output: &str) -> Result<Value, String> {
    let bare = serde_json::from_str(output.trim());
    let error = match bare {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match fenced_blocks(output).as_slice() {
        [] => Err(format!("Give the output as JSON, bare or in one fenced block ({error}).")),
        [only] => serde_json::from_str(only)
            .map_err(|error| format!("Mend the JSON in the fenced block ({error}).")),
        blocks => Err(format!("Give one fenced block of JSON; there are {}.", blocks.len())),
    }
}

fn fenced_blocks(output: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in output.lines() {
        let is_fence = line.trim_start().starts_with("```");
        match (&mut open, is_fence) {
            (None, true) => open = Some(String::new()),
            (Some(_), true) => blocks.extend(open.take()),
            (Some(block), false) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, false) => {}
        }
    }
    // A block whose end was forgotten is a block still.
    blocks.extend(open);
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Embedded {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_long_value_is_pointed_at_instead_of_quoted() {
        let schema = schema(r#"{"items": {"type": "integer"}}"#);
        let compiled = Compiled::default();
        let budget = Budget::for_call();
        let advice =
            |text: &str| advice(&schema, true, Output { text, budget: &budget }, &compiled);
        assert_eq!(advice(r#"["x"]"#).unwrap(), [r#"At /0: "x" is not of type "integer"."#]);
        let long = format!(r#"["{}"]"#, "x".repeat(COMPLAINT_BYTES_MAX));
        assert_eq!(advice(&long).unwrap(), [r#"At /0: this is not of type "integer"."#]);
    }

    #[test]
    fn json_inside_a_json_string_is_named() {
        let compiled = Compiled::default();
        let budget = Budget::for_call();
        let advice = |schema_text: &str, text: &str| {
            let output = Output { text, budget: &budget };
            advice(&schema(schema_text), true, output, &compiled).unwrap().join(" ")
        };
        let object = r#"{"type": "object", "properties": {"files": {"type": "array"}}}"#;
        let whole = "The output is JSON text inside a JSON string; submit the inner value itself.";
        assert_eq!(advice(object, r#""{\"a\":1}""#), whole);
        assert_eq!(advice(object, "```json\n\"{\\\"a\\\":1}\"\n```"), whole);
        // The inner value has a fault of its own, which the next attempt shows.
        assert_eq!(advice(object, r#""{\"files\":1}""#), whole);
        let either = r#"{"anyOf": [{"type": "object"}, {"type": "array"}]}"#;
        assert_eq!(advice(either, r#""[1]""#), whole);
        assert_eq!(
            advice(object, r#"{"files": "[1]"}"#),
            "At /files: this is JSON text inside a JSON string; submit the inner value itself."
        );
        // Decoded, these would be of the wrong type too.
        assert_eq!(
            advice(r#"{"type": "integer"}"#, r#""{}""#),
            r#"At the top of the JSON: "{}" is not of type "integer"."#
        );
        assert_eq!(
            advice(object, r#""{ no JSON""#),
            r#"At the top of the JSON: "{ no JSON" is not of type "object"."#
        );
    }

    #[test]
    fn a_pattern_that_takes_too_long_gives_no_verdict() {
        let compiled = Compiled::default();
        let passes = |text: &str, output: &str| {
            let budget = Budget::with_steps(1_000_000);
            passes(&schema(text), Output { text: output, budget: &budget }, &compiled)
        };
        let slow = format!("\"{}!\"", "a".repeat(40));
        let pattern = r#"{"pattern": "^(a|a)*\\1b"}"#;
        assert!(matches!(passes(pattern, &slow), Err(Unusable::Exhausted(_))));
        let not = format!("{{\"not\": {pattern}}}");
        assert!(matches!(passes(&not, &slow), Err(Unusable::Exhausted(_))));
        assert_eq!(passes(pattern, "\"aab\""), Ok(true));
        assert_eq!(passes(&not, "\"aab\""), Ok(false));
    }

    #[test]
    fn many_errors_are_not_collected() {
        let schema = schema(r#"{"items": {"required": ["a", "b"]}}"#);
        let compiled = Compiled::default();
        let budget = Budget::for_call();
        let text = format!("[{}{{}}]", "{},".repeat(100_000));
        let output = Output { text: &text, budget: &budget };
        let advice = advice(&schema, true, output, &compiled).unwrap();
        assert_eq!(advice, ["At /0: \"a\" is a required property."]);
    }
}
