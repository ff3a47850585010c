//! `{{name}}` in titles, prompts, roles and guidance. A slot holds the name of a variable or a dotted
//! path, or a reference to the output of an earlier step, optionally plus or minus a whole number. What
//! cannot be filled stays as it is written, so that an agent sees that something is missing.

use std::borrow::Cow;
use std::fmt::Write;

use budget::Exhausted;
use serde_json::Value;

use crate::variables::Variables;

mod output;

pub use output::{OutputReference, Outputs, output_reference};
pub(crate) use output::{OutputSource, reference_candidates};

/// A piece of a text with slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    /// What is between the braces, and the same with them.
    Slot {
        inner: &'a str,
        whole: &'a str,
    },
}

/// What a slot asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot<'a> {
    pub name: &'a str,
    pub plus: i64,
}

/// Cuts a text into plain pieces and slots.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let slot = doubled(rest, b'{').and_then(|start| {
            let length = doubled(&rest[start + 2..], b'}')?;
            Some((start, start + 2 + length + 2))
        });
        let piece = match slot {
            Some((0, end)) => Piece::Slot { inner: rest[2..end - 2].trim(), whole: &rest[..end] },
            Some((start, _)) => Piece::Text(&rest[..start]),
            None => Piece::Text(rest),
        };
        let used = match piece {
            Piece::Text(text) => text.len(),
            Piece::Slot { whole, .. } => whole.len(),
        };
        rest = &rest[used..];
        Some(piece)
    })
}

/// Where a brace stands twice.
fn doubled(text: &str, brace: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(brace, bytes).find(|at| bytes.get(at + 1) == Some(&brace))
}

/// Reads what stands in a slot; `None` where it does not name a variable.
pub fn slot(inner: &str) -> Option<Slot<'_>> {
    if is_path(inner) {
        return Some(Slot { name: inner, plus: 0 });
    }
    let (name, amount) = [("+", 1), ("-", -1)].iter().find_map(|&(sign, factor)| {
        let (name, amount) = inner.rsplit_once(sign)?;
        let amount: u32 = amount.trim().parse().ok()?;
        Some((name.trim(), i64::from(amount) * factor))
    })?;
    is_path(name).then_some(Slot { name, plus: amount })
}

fn is_path(text: &str) -> bool {
    // As nearly all are.
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return true;
    }
    let starts_well = text.starts_with(|first: char| first.is_alphabetic() || "_$".contains(first));
    let inner = |c: char| c.is_alphanumeric() || "_$.-".contains(c);
    starts_well && text.chars().all(inner) && !text.ends_with('.')
}

/// Fills the slots that the variables can fill.
pub fn fill<'a>(text: &'a str, variables: &Variables<'_, '_>) -> Result<Cow<'a, str>, Exhausted> {
    if doubled(text, b'{').is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Slot { inner, whole } => {
                let before = filled.len();
                if !push_slot(&mut filled, inner, variables)? {
                    filled.push_str(whole);
                }
                variables.budget().spend_output(filled.len() - before)?;
            }
        }
    }
    Ok(Cow::Owned(filled))
}

/// Adds what a slot asks for, if it is there.
fn push_slot(
    filled: &mut String,
    inner: &str,
    variables: &Variables<'_, '_>,
) -> Result<bool, Exhausted> {
    let Some(Slot { name, plus: amount }) = slot(inner) else { return Ok(false) };
    if let Some(source) = variables.outputs()
        && let Some(reference) = output_reference(source.workflow, name)
    {
        return source.push(filled, reference, amount, variables.budget());
    }
    let found = variables.get(name)?.and_then(|found| plus(found, amount));
    if let Some(value) = &found {
        push_value(filled, value);
    }
    Ok(found.is_some())
}

fn plus(value: Cow<'_, Value>, amount: i64) -> Option<Cow<'_, Value>> {
    if amount == 0 {
        return Some(value);
    }
    if let Some(number) = value.as_i64() {
        return number.checked_add(amount).map(|sum| Cow::Owned(sum.into()));
    }
    let sum = value.as_f64()? + amount as f64;
    Some(Cow::Owned(sum.into()))
}

fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => out.push_str(text),
        // Writing to a string cannot fail.
        other => drop(write!(out, "{other}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slots_are_filled_or_left() {
        let context = json!({
            "name": "Ada", "count": 2, "list": [1, "two"], "index": 0, "task-id": "T-1",
            "user": {"role": "admin"}, "nothing": null, "trick": "{{name}}",
        });
        let context = context.as_object().unwrap();
        let budget = budget::Budget::for_call();
        let variables = Variables::new(context, &budget);
        for (text, expected) in [
            ("Hello {{name}} and {{ name }}", "Hello Ada and Ada"),
            ("{{user.role}}/{{task-id}}", "admin/T-1"),
            ("item {{index + 1}} of {{list.length}}", "item 1 of 2"),
            ("{{count - 1}} {{count - 5}}", "1 -3"),
            ("{{list}} {{user}} {{nothing}}", r#"[1,"two"] {"role":"admin"} null"#),
            (
                "{{missing}} {{name + 1}} {{list.toFixed(1)}} {{}}",
                "{{missing}} {{name + 1}} {{list.toFixed(1)}} {{}}",
            ),
            ("{{trick}}", "{{name}}"),
            ("open {{name", "open {{name"),
            ("{{{name}}}", "{{{name}}}"),
            ("", ""),
        ] {
            assert_eq!(fill(text, &variables).unwrap(), expected, "{text}");
        }
    }
}
