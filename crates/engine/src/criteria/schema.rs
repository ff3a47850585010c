//! `schema`: the output is JSON, bare or in one fenced block, and valid under a JSON Schema.

use budget::Exhausted;
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
    let errors = schema.errors(&value, evaluation.steps);
    if errors.is_empty() {
        let advice = "Make the JSON fit the schema; it is too large to say where it does not.";
        return Ok(vec![advice.to_owned()]);
    }
    let complaints = errors.iter().take(COMPLAINTS_MAX).map(|error| {
        let place = match error.instance_path().as_str() {
            "" => "At the top of the JSON".to_owned(),
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
    Ok(complaints.collect())
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
    use budget::Budget;

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
