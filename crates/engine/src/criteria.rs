//! The kinds of rules, one file each: whether an output passes, and what to change where it should
//! have passed, or should not have.

use budget::{Budget, Exhausted};
use serde_json::Value;
use workflow::criteria::{Embedded, RuleKind};

use crate::compiled::Compiled;

mod contains;
mod length;
mod regex;
mod schema;

/// Why a rule could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    Rule(String),
    Schema(String),
    Exhausted(Exhausted),
}

impl From<Exhausted> for Unusable {
    fn from(why: Exhausted) -> Self {
        Self::Exhausted(why)
    }
}

/// An output, with the budget for checking it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) text: &'a str,
    pub(crate) budget: &'a Budget,
}

pub(crate) fn passes(
    kind: &RuleKind,
    output: Output<'_>,
    compiled: &Compiled,
) -> Result<bool, Unusable> {
    match kind {
        RuleKind::Contains { value } => {
            output.budget.spend_scan(output.text.len() + value.len())?;
            Ok(contains::passes(value, output.text))
        }
        RuleKind::Length { min, max } => {
            output.budget.spend_scan(output.text.len())?;
            Ok(length::passes(*min, *max, output.text))
        }
        RuleKind::Regex { pattern, flags } => regex::passes(pattern, flags, output, compiled),
        RuleKind::Schema { schema } => schema::passes(schema, output, compiled),
    }
}

/// Where a value is not valid under a schema; empty if it is.
pub(crate) fn schema_errors(
    schema: &Embedded,
    value: &Value,
    budget: &Budget,
    compiled: &Compiled,
) -> Result<Vec<String>, Unusable> {
    schema::value_errors(schema, value, budget, compiled)
}

/// A rule by its type, and its pattern where it has one.
pub(crate) fn name(kind: &RuleKind) -> String {
    match kind {
        RuleKind::Contains { .. } => "`contains`".to_owned(),
        RuleKind::Length { .. } => "`length`".to_owned(),
        RuleKind::Schema { .. } => "`schema`".to_owned(),
        RuleKind::Regex { pattern, flags } if pattern.len() <= NAMED_BYTES_MAX => {
            format!("`regex` /{pattern}/{flags}")
        }
        RuleKind::Regex { .. } => "`regex`".to_owned(),
    }
}

/// A longer pattern is not repeated.
const NAMED_BYTES_MAX: usize = 100;

/// What the agent can do about a rule that came out wrong. `wanted` says how it should have come out.
pub(crate) fn advice(
    kind: &RuleKind,
    wanted: bool,
    output: Output<'_>,
    compiled: &Compiled,
) -> Result<Vec<String>, Exhausted> {
    Ok(match kind {
        RuleKind::Contains { value } => vec![contains::advice(value, wanted)],
        RuleKind::Length { min, max } => {
            output.budget.spend_scan(output.text.len())?;
            vec![length::advice(*min, *max, wanted, output.text)]
        }
        RuleKind::Regex { pattern, flags } => vec![regex::advice(pattern, flags, wanted)],
        RuleKind::Schema { schema } => return schema::advice(schema, wanted, output, compiled),
    })
}
