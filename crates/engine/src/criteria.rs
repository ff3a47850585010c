//! The kinds of rules, one file each: whether an output passes, and what to change where it should
//! have passed, or should not have.

use workflow::criteria::RuleKind;

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
}

pub(crate) fn passes(kind: &RuleKind, output: &str, compiled: &Compiled) -> Result<bool, Unusable> {
    match kind {
        RuleKind::Contains { value } => Ok(contains::passes(value, output)),
        RuleKind::Length { min, max } => Ok(length::passes(*min, *max, output)),
        RuleKind::Regex { pattern, flags } => regex::passes(pattern, flags, output, compiled),
        RuleKind::Schema { schema } => schema::passes(schema, output, compiled),
    }
}

/// What the agent can do about a rule that came out wrong. `wanted` says how it should have come out.
pub(crate) fn advice(
    kind: &RuleKind,
    wanted: bool,
    output: &str,
    compiled: &Compiled,
) -> Vec<String> {
    match kind {
        RuleKind::Contains { value } => vec![contains::advice(value, wanted)],
        RuleKind::Length { min, max } => vec![length::advice(*min, *max, wanted, output)],
        RuleKind::Regex { pattern, flags } => vec![regex::advice(pattern, flags, wanted)],
        RuleKind::Schema { schema } => schema::advice(schema, wanted, output, compiled),
    }
}
