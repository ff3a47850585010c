//! `schema`: the output is JSON, bare or in one fenced block, and valid under a JSON Schema.

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use workflow::criteria::Embedded;
use workflow::pattern::BACKTRACK_MAX;

use super::Unusable;
use crate::compiled::{Compiled, Machine};

/// More complaints than this about one output help nobody.
const COMPLAINTS_MAX: usize = 20;
/// A complaint quotes the value; beyond this it only points at it.
const COMPLAINT_BYTES_MAX: usize = 400;

pub(super) fn passes(
    schema: &Embedded,
    output: &str,
    compiled: &Compiled,
) -> Result<bool, Unusable> {
    match compiled.schema(schema).get() {
        Some(Machine::Schema(Ok(validator))) => {
            json_in(output).map_or(Ok(false), |value| judge(validator, &value))
        }
        Some(Machine::Schema(Err(error))) => {
            Err(Unusable::Schema(format!("the schema is malformed: {error}")))
        }
        _ => Err(Unusable::Schema("the schema is not compiled".to_owned())),
    }
}

/// A value of which nobody knows whether it is valid, because a pattern took too long on it, is neither.
/// (The library says so, under `not` as well, only where the verdict hangs on that pattern.)
fn judge(validator: &Validator, value: &Value) -> Result<bool, Unusable> {
    match validator.validate(value) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            ValidationErrorKind::BacktrackLimitExceeded { .. } => Err(Unusable::Rule(format!(
                "a pattern in the schema needs more than {BACKTRACK_MAX} steps on this output"
            ))),
            _ => Ok(false),
        },
    }
}

pub(super) fn advice(
    schema: &Embedded,
    wanted: bool,
    output: &str,
    compiled: &Compiled,
) -> Vec<String> {
    if !wanted {
        return vec!["Change the JSON, so that it does not fit the schema.".to_owned()];
    }
    let value = match json_in(output) {
        Ok(value) => value,
        Err(why) => return vec![why],
    };
    let machine = compiled.schema(schema);
    let Some(Machine::Schema(Ok(validator))) = machine.get() else {
        return Vec::new();
    };
    let complaints = validator.iter_errors(&value).map(|error| {
        let place = match error.instance_path().as_str() {
            "" => "At the top of the JSON".to_owned(),
            pointer => format!("At {pointer}"),
        };
        let quoting = error.to_string();
        if quoting.len() <= COMPLAINT_BYTES_MAX {
            format!("{place}: {quoting}.")
        } else {
            format!("{place}: {}.", error.masked_with("this"))
        }
    });
    complaints.take(COMPLAINTS_MAX).collect()
}

/// The JSON of an output: all of it, or its one fenced block.
fn json_in(output: &str) -> Result<Value, String> {
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

    #[test]
    fn a_long_value_is_pointed_at_instead_of_quoted() {
        let schema: Embedded = serde_json::from_str(r#"{"items": {"type": "integer"}}"#).unwrap();
        let compiled = Compiled::default();
        let advice = |output: &str| advice(&schema, true, output, &compiled);
        assert_eq!(advice(r#"["x"]"#), [r#"At /0: "x" is not of type "integer"."#]);
        let long = format!(r#"["{}"]"#, "x".repeat(COMPLAINT_BYTES_MAX));
        assert_eq!(advice(&long), [r#"At /0: this is not of type "integer"."#]);
    }

    #[test]
    fn a_pattern_that_takes_too_long_gives_no_verdict() {
        let compiled = Compiled::default();
        let passes = |schema: &str, output: &str| {
            passes(&serde_json::from_str(schema).unwrap(), output, &compiled)
        };
        let slow = format!("\"{}!\"", "a".repeat(40));
        let pattern = r#"{"pattern": "^(a|a)*\\1b"}"#;
        assert!(matches!(passes(pattern, &slow), Err(Unusable::Rule(_))));
        let not = format!("{{\"not\": {pattern}}}");
        assert!(matches!(passes(&not, &slow), Err(Unusable::Rule(_))));
        assert_eq!(passes(pattern, "\"aab\""), Ok(true));
        assert_eq!(passes(&not, "\"aab\""), Ok(false));
        let decided = r#"{"pattern": "^(a|a)*\\1b", "maxLength": 5}"#;
        assert_eq!(passes(decided, &slow), Ok(false));
        let either = format!("{{\"anyOf\": [{pattern}, {{\"type\": \"string\"}}]}}");
        assert_eq!(passes(&either, &slow), Ok(true));
    }
}
