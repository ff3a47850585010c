//! Whether a schema may become expensive, whatever the value: for authors, before an agent meets it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::cost::{ITEMS, SAME_LISTS, SAME_MAPS, SAME_ONE};
use super::references::{KEYWORDS, References};
use crate::{Budget, Exhausted};

/// How many schemas may apply to one value, once all references are written out.
const APPLIED_MAX: u64 = 10_000;
/// How many schemas may lead into each other over one value.
const CHAIN_MAX: usize = 512;
/// How much work it may be to find out.
const SURVEY_STEPS_MAX: u64 = 10_000_000;

/// Why a schema is expensive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Expense {
    #[error("a definition refers to itself without going further into the value")]
    Endless,
    #[error(
        "more than {APPLIED_MAX} schemas apply to one value, because definitions refer to others more than once"
    )]
    Doubling,
    #[error("more than {CHAIN_MAX} schemas lead into each other over one value")]
    Deep,
    #[error(
        "a definition refers to itself more than once for the same part of a value, so that each level of the value \
         multiplies the work"
    )]
    Exponential,
    #[error("it has too many references to tell what it costs")]
    Tangled,
}

impl From<Exhausted> for Expense {
    fn from(_: Exhausted) -> Self {
        Self::Tangled
    }
}

/// What is expensive about a schema, if anything.
pub fn expense(schema: &Value) -> Option<Expense> {
    let budget = Budget::with_steps(SURVEY_STEPS_MAX);
    let mut survey = Survey { nodes: Vec::new(), places: HashMap::new(), budget };
    survey.look(schema).err()
}

/// The objects of a schema that may be schemas themselves, by number.
struct Survey<'a> {
    nodes: Vec<Node<'a>>,
    places: HashMap<*const Value, usize>,
    budget: Budget,
}

struct Node<'a> {
    value: &'a Value,
    /// The schemas that are about the same value.
    same: Vec<usize>,
    /// The schemas that are about parts of it.
    parts: Vec<(Part<'a>, usize)>,
    is_referred_to: bool,
}

/// A part of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part<'a> {
    Property(&'a str),
    /// Properties whose name matches a pattern, or any that others do not evaluate.
    Properties,
    /// Properties that the schema does not name.
    Additional,
    Item(usize),
    Items,
}

impl<'a> Survey<'a> {
    fn look(&mut self, schema: &'a Value) -> Result<(), Expense> {
        let mut references = References::collect(schema, &self.budget)?;
        self.number(schema);
        for at in 0..self.nodes.len() {
            let Value::Object(fields) = self.nodes[at].value else { continue };
            for keyword in KEYWORDS {
                let Some(Value::String(reference)) = fields.get(keyword) else { continue };
                for target in references.targets(reference, &self.budget)?.iter() {
                    self.budget.spend(1)?;
                    let Some(target) = self.place(target) else { continue };
                    self.nodes[at].same.push(target);
                    self.nodes[target].is_referred_to = true;
                }
            }
            let same: Vec<usize> = same(fields).filter_map(|inner| self.place(inner)).collect();
            self.nodes[at].same.extend(same);
            let parts = parts(fields);
            let parts =
                parts.into_iter().filter_map(|(part, inner)| Some((part, self.place(inner)?)));
            let parts = parts.collect();
            self.nodes[at].parts = parts;
        }
        let mut applied = vec![None; self.nodes.len()];
        for at in 0..self.nodes.len() {
            self.applied(at, &mut applied, 0)?;
        }
        for at in 0..self.nodes.len() {
            if self.nodes[at].is_referred_to && self.multiplies(at)? {
                return Err(Expense::Exponential);
            }
        }
        Ok(())
    }

    fn number(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) => {
                self.places.insert(std::ptr::from_ref(value), self.nodes.len());
                let (same, parts) = (Vec::new(), Vec::new());
                self.nodes.push(Node { value, same, parts, is_referred_to: false });
                fields.values().for_each(|inner| self.number(inner));
            }
            Value::Array(items) => items.iter().for_each(|item| self.number(item)),
            _ => {}
        }
    }

    fn place(&self, value: &Value) -> Option<usize> {
        self.places.get(&std::ptr::from_ref(value)).copied()
    }

    /// How many schemas apply to a value together with this one, and how many of them stand inside each other.
    fn applied(
        &self,
        at: usize,
        known: &mut [Option<(u64, usize)>],
        depth: usize,
    ) -> Result<(u64, usize), Expense> {
        if let Some(known) = known[at] {
            return if known.0 == 0 { Err(Expense::Endless) } else { Ok(known) };
        }
        if depth > CHAIN_MAX {
            return Err(Expense::Deep);
        }
        // None applies: it is being looked at.
        known[at] = Some((0, 0));
        let (mut count, mut deepest) = (1_u64, 0);
        for inner in &self.nodes[at].same {
            self.budget.spend(1)?;
            let (inner, below) = self.applied(*inner, known, depth + 1)?;
            count = count.saturating_add(inner);
            deepest = deepest.max(below + 1);
        }
        if count > APPLIED_MAX {
            return Err(Expense::Doubling);
        }
        if deepest > CHAIN_MAX {
            return Err(Expense::Deep);
        }
        known[at] = Some((count, deepest));
        Ok((count, deepest))
    }

    /// Whether a definition applies itself more than once to the same part of its value.
    fn multiplies(&self, at: usize) -> Result<bool, Expense> {
        let mut comes_back: HashMap<Part<'_>, usize> = HashMap::new();
        // How often a schema comes back for properties that it does not name, and the ones that it names.
        let mut additional = Vec::new();
        for inner in self.all_same(at)? {
            for (part, target) in &self.nodes[inner].parts {
                let times = self.all_same(*target)?.into_iter().filter(|same| *same == at).count();
                if times == 0 {
                    continue;
                }
                *comes_back.entry(*part).or_default() += times;
                if *part == Part::Additional {
                    let named = self.nodes[inner].value.get("properties");
                    additional.push((times, named));
                }
            }
        }
        let of = |part| comes_back.get(&part).copied().unwrap_or(0);
        for (part, times) in &comes_back {
            self.budget.spend(1 + additional.len() as u64)?;
            let together = match part {
                Part::Property(name) => {
                    let unnamed = additional
                        .iter()
                        .filter(|(_, named)| named.is_none_or(|named| named.get(*name).is_none()));
                    times + of(Part::Properties) + unnamed.map(|(times, _)| times).sum::<usize>()
                }
                Part::Additional => times + of(Part::Properties),
                Part::Item(_) => times + of(Part::Items),
                Part::Properties | Part::Items => *times,
            };
            if together > 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All schemas that apply to a value together with this one, each as often as it does: no more than are allowed.
    fn all_same(&self, at: usize) -> Result<Vec<usize>, Expense> {
        let mut all = vec![at];
        let mut looked_at = 0;
        while let Some(at) = all.get(looked_at).copied() {
            self.budget.spend(1)?;
            looked_at += 1;
            all.extend(&self.nodes[at].same);
        }
        Ok(all)
    }
}

fn same(fields: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let one = SAME_ONE.iter().filter_map(|keyword| fields.get(*keyword));
    let lists = SAME_LISTS.iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
    let maps = SAME_MAPS.iter().filter_map(|keyword| fields.get(*keyword)?.as_object());
    one.chain(lists.flatten()).chain(maps.flat_map(Map::values))
}

fn parts(fields: &Map<String, Value>) -> Vec<(Part<'_>, &Value)> {
    let mut parts = Vec::new();
    if let Some(Value::Object(named)) = fields.get("properties") {
        parts.extend(named.iter().map(|(name, inner)| (Part::Property(name.as_str()), inner)));
    }
    if let Some(Value::Object(patterns)) = fields.get("patternProperties") {
        parts.extend(patterns.values().map(|inner| (Part::Properties, inner)));
    }
    let additional = fields.get("additionalProperties");
    parts.extend(additional.map(|inner| (Part::Additional, inner)));
    let unevaluated = fields.get("unevaluatedProperties");
    parts.extend(unevaluated.map(|inner| (Part::Properties, inner)));
    for keyword in ["prefixItems", "items"] {
        if let Some(Value::Array(items)) = fields.get(keyword) {
            parts.extend(items.iter().enumerate().map(|(at, inner)| (Part::Item(at), inner)));
        }
    }
    let items = ITEMS.iter().filter_map(|keyword| fields.get(*keyword));
    parts.extend(items.map(|inner| (Part::Items, inner)));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usual_schemas_are_cheap() {
        let node = json!({"$ref": "#/$defs/node"});
        for schema in [
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            // A tree, a list, and forms that each recurse into a part of their own.
            json!({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"left": node, "right": node}}}}),
            json!({"$ref": "#/$defs/node", "$defs": {"node": {"items": node}}}),
            json!({"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [
                {"properties": {"not": node}},
                {"properties": {"left": node, "right": node}},
            ]}}}),
            // A property is either named or additional.
            json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}),
        ] {
            assert_eq!(expense(&schema), None, "{schema}");
        }
    }

    #[test]
    fn expensive_schemas_are_named() {
        let node = json!({"$ref": "#/$defs/node"});
        let either = json!({"$defs": {"node": {"anyOf": [
            {"properties": {"child": node, "a": {"const": 1}}},
            {"properties": {"child": node, "a": {"const": 2}}},
        ]}}, "$ref": "#/$defs/node"});
        assert_eq!(expense(&either), Some(Expense::Exponential));
        let both = json!({"properties": {"child": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        assert_eq!(expense(&both), Some(Expense::Exponential));
        let other = json!({
            "properties": {"a": {"$ref": "#"}},
            "allOf": [{"additionalProperties": {"$ref": "#"}}],
        });
        assert_eq!(expense(&other), Some(Expense::Exponential));
        let endless = json!({"allOf": [{"$ref": "#"}]});
        assert_eq!(expense(&endless), Some(Expense::Endless));
        let mut doubling = Map::new();
        let mut chain = Map::new();
        for at in 0..600 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            if at < 40 {
                doubling.insert(format!("d{at}"), json!({"anyOf": [next, next]}));
            }
            chain.insert(format!("d{at}"), next);
        }
        let doubling = json!({"$defs": doubling, "$ref": "#/$defs/d0"});
        assert_eq!(expense(&doubling), Some(Expense::Doubling));
        let chain = json!({"$defs": chain, "$ref": "#/$defs/d0"});
        assert_eq!(expense(&chain), Some(Expense::Deep));
    }
}
