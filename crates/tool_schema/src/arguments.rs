//! Checking what goes into a tool against its `inputSchema`, and what comes out against its `outputSchema`. The schemas are
//! strangers': nothing is fetched for them, and one that is broken, too large or too much work is left unchecked and said
//! to be. Whoever calls decides what that means; the server checks for itself in any case.

use budget::Budget;
use budget::schema::Schema;
use serde_json::Value;

use crate::nearest::nearest;
use crate::tool::{Json, Tool};

mod compiled;
mod dialect;
mod problem;

use compiled::Compiled;
pub use compiled::Unchecked;
pub use problem::{Kind, Problem};

/// What checking one value may take.
const STEPS_MAX: u64 = 2_000_000;
/// What it may take on a thread that others wait for: about a millisecond.
const INLINE_STEPS_MAX: u64 = 100_000;
/// How many names are offered for a tool that does not exist.
const NAMES_OFFERED: usize = 5;

/// Schemas that were used, compiled, within a bound of bytes. One of these serves all upstreams.
#[derive(Debug, Default)]
pub struct Checker {
    compiled: Compiled,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Fits,
    /// What is wrong, never empty.
    Wrong(Vec<Problem>),
    /// Nobody knows, and why.
    Unchecked(Unchecked),
}

impl Checker {
    /// Whether a call may be sent.
    pub fn arguments(&self, tool: &Tool, arguments: &Value) -> Verdict {
        self.check(&tool.input_schema, arguments)
    }

    /// Whether an answer is what a form asks for.
    pub fn answer(&self, schema: &Value, given: &Value) -> Verdict {
        self.check(&Json::from(schema), given)
    }

    /// Whether a value is known to fit without much work: its schema is compiled already, and evaluated in few steps.
    pub fn fits_at_once(&self, schema: &Json, value: &Value) -> bool {
        let compiled = self.compiled.known(schema);
        compiled.as_ref().and_then(|compiled| compiled.get()?.as_ref().ok()).is_some_and(
            |compiled| {
                let evaluation = compiled.evaluate(value, &Budget::with_steps(INLINE_STEPS_MAX));
                evaluation.is_ok_and(|evaluation| evaluation.is_valid)
            },
        )
    }

    pub fn check(&self, schema: &Json, value: &Value) -> Verdict {
        let compiled = self.compiled.schema(schema);
        match compiled.get() {
            Some(Ok(compiled)) => check(compiled, schema, value),
            Some(Err(unchecked)) => Verdict::Unchecked(unchecked.clone()),
            None => Verdict::Unchecked(Unchecked::TooLarge),
        }
    }
}

fn check(schema: &Schema, json: &Json, value: &Value) -> Verdict {
    let budget = Budget::with_steps(STEPS_MAX);
    match schema.evaluate(value, &budget) {
        Err(_) => Verdict::Unchecked(Unchecked::TooMuchWork),
        Ok(evaluation) if evaluation.is_valid => Verdict::Fits,
        Ok(evaluation) => problem::explain(schema, json, value, evaluation, &budget),
    }
}

/// Whether a text has a format that JSON Schema names (`date`, `email`…). One that is not known is taken as it is.
pub fn has_format(format: &str, text: &str) -> bool {
    let schema = serde_json::json!({"format": format});
    let options = jsonschema::options().offline().should_validate_formats(true);
    options.build(&schema).map_or(true, |validator| validator.is_valid(&text.into()))
}

/// There is no such tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{server}` has no tool `{tool}`{}", offer(.nearest))]
pub struct NoSuchTool {
    pub server: String,
    pub tool: String,
    /// The names that may be meant, nearest first.
    pub nearest: Vec<String>,
}

impl NoSuchTool {
    pub fn new<'a>(server: &str, tool: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        let nearest = nearest(tool, names, NAMES_OFFERED);
        Self {
            server: server.to_owned(),
            tool: tool.to_owned(),
            nearest: nearest.into_iter().map(str::to_owned).collect(),
        }
    }
}

fn offer(names: &[String]) -> String {
    match names {
        [] => "; describe the server to see its tools".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
