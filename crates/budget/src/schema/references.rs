//! Where the references of a schema may lead. More than one candidate is possible, and all are told: what is said about
//! the cost of a schema is an upper bound. Whoever follows references pays for finding their targets, once for each text.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::{Budget, Exhausted, scan_steps};

/// The places in a schema that something can refer to.
#[derive(Debug, Default)]
pub(super) struct References<'s> {
    anchors: HashMap<&'s str, Vec<&'s Value>>,
    /// The schema itself, and everything in it that has an id of its own.
    roots: Vec<&'s Value>,
    /// The targets of the references that were followed before, by their text.
    resolved: HashMap<&'s str, Rc<[&'s Value]>>,
}

/// The keywords that refer to another part of a schema.
pub(super) const KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// What it takes to look one segment of a JSON pointer up.
const SEGMENT_STEPS: u64 = 4;

impl<'s> References<'s> {
    pub(super) fn collect(schema: &'s Value, budget: &Budget) -> Result<Self, Exhausted> {
        let mut references = Self { roots: vec![schema], ..Self::default() };
        references.look(schema, budget)?;
        Ok(references)
    }

    fn look(&mut self, value: &'s Value, budget: &Budget) -> Result<(), Exhausted> {
        match value {
            Value::Object(fields) => {
                budget.spend(1 + fields.len() as u64)?;
                for (key, inner) in fields {
                    match (key.as_str(), inner) {
                        ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                            self.anchors.entry(name).or_default().push(value);
                        }
                        ("$id" | "id", Value::String(id)) => {
                            if let Some(name) = id.strip_prefix('#') {
                                self.anchors.entry(name).or_default().push(value);
                            }
                            if !std::ptr::eq(value, self.roots[0]) {
                                self.roots.push(value);
                            }
                        }
                        _ => self.look(inner, budget)?,
                    }
                }
            }
            Value::Array(items) => {
                budget.spend(1 + items.len() as u64 / 4)?;
                for item in items {
                    self.look(item, budget)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Every place that a reference may mean. None where it leads out of the schema, to a meta-schema.
    pub(super) fn targets(
        &mut self,
        reference: &'s str,
        budget: &Budget,
    ) -> Result<Rc<[&'s Value]>, Exhausted> {
        budget.spend_scan(reference.len())?;
        if let Some(known) = self.resolved.get(reference) {
            return Ok(Rc::clone(known));
        }
        let targets: Rc<[&Value]> = self.find(reference, budget)?.into();
        self.resolved.insert(reference, Rc::clone(&targets));
        Ok(targets)
    }

    fn find(&self, reference: &str, budget: &Budget) -> Result<Vec<&'s Value>, Exhausted> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let Some(fragment) = percent_decode(fragment) else { return Ok(Vec::new()) };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let places = self.anchors.get(fragment.as_str()).cloned().unwrap_or_default();
            budget.spend(places.len() as u64)?;
            return Ok(places);
        }
        // Another document than this one, and none inside it.
        if !base.is_empty() && self.roots.len() == 1 && !is_id(self.roots[0], base) {
            return Ok(Vec::new());
        }
        let segments = fragment.bytes().filter(|byte| *byte == b'/').count() as u64;
        let each = scan_steps(fragment.len()) + SEGMENT_STEPS * segments;
        budget.spend(each.saturating_mul(self.roots.len() as u64))?;
        Ok(self.roots.iter().filter_map(|root| root.pointer(&fragment)).collect())
    }
}

fn is_id(schema: &Value, base: &str) -> bool {
    let id = schema.get("$id").or_else(|| schema.get("id")).and_then(Value::as_str);
    id.is_some_and(|id| id.trim_end_matches('#') == base || id.ends_with(base))
}

/// A text without the percent-encoding of a URL; none where it is malformed.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        let value = |digit: u8| char::from(digit).to_digit(16);
        bytes.push((value(digits[0])? * 16 + value(digits[1])?) as u8);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}
