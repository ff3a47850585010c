//! What checking a value would cost, before it is done. A schema of a few lines can ask for more steps than anybody can
//! wait for (`$defs` that refer to each other twice, over and over), or for more stack than there is. So its references are
//! followed over the value first, without judging anything, until an end or a bound is reached.

use serde_json::{Map, Value};

use super::Unchecked;

/// More steps than this, and the value is left unchecked.
const STEPS_MAX: u64 = 500_000;
/// Explaining what is wrong takes longer than seeing that something is.
pub(super) const EXPLAINED_MAX: u64 = 50_000;
/// How deeply schemas may lead into each other over one value.
const DEPTH_MAX: usize = 512;
/// What a pattern costs, and more where it looks around.
const PATTERN_STEPS: u64 = 8;
const LOOK_AROUND_STEPS: u64 = 500;

/// How many steps it takes to check the value, at most.
pub(super) fn of(schema: &Value, value: &Value) -> Result<u64, Unchecked> {
    let mut walk = Walk { root: schema, steps: 0 };
    walk.visit(schema, value, 1, 0)?;
    Ok(walk.steps)
}

struct Walk<'a> {
    root: &'a Value,
    steps: u64,
}

/// Keywords whose schema is about the same value.
const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schema is about each of what is in it.
const PROPERTIES: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
const ITEMS: [&str; 4] = ["items", "additionalItems", "contains", "unevaluatedItems"];

impl<'a> Walk<'a> {
    /// `weight` is how often this is looked at.
    fn visit(
        &mut self,
        schema: &'a Value,
        value: &Value,
        weight: u64,
        depth: usize,
    ) -> Result<(), Unchecked> {
        self.spend(weight)?;
        let Value::Object(fields) = schema else { return Ok(()) };
        if depth > DEPTH_MAX {
            return Err(Unchecked::TooMuchWork);
        }
        // What was not evaluated is known only after everything beside it was looked at once more.
        let again =
            fields.contains_key("unevaluatedProperties") || fields.contains_key("unevaluatedItems");
        let weight = if again { weight.saturating_mul(2) } else { weight };
        let depth = depth + 1;
        self.same(fields, value, weight, depth)?;
        match value {
            Value::Object(properties) => self.properties(fields, properties, weight, depth),
            Value::Array(items) => self.items(fields, items, weight, depth),
            Value::String(text) => match fields.get("pattern") {
                Some(Value::String(pattern)) => {
                    self.spend(weight.saturating_mul(pattern_steps(pattern, text.len())))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn same(
        &mut self,
        fields: &'a Map<String, Value>,
        value: &Value,
        weight: u64,
        depth: usize,
    ) -> Result<(), Unchecked> {
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if let Some(Value::String(reference)) = fields.get(keyword) {
                return Err(Unchecked::Reference { reference: reference.clone() });
            }
        }
        if let Some(Value::String(reference)) = fields.get("$ref") {
            let unfollowed = || Unchecked::Reference { reference: reference.clone() };
            let path = crate::schema::path(reference).ok_or_else(unfollowed)?;
            let target = path.iter().try_fold(self.root, |value, step| match value {
                Value::Object(fields) => fields.get(step),
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                _ => None,
            });
            self.visit(target.ok_or_else(unfollowed)?, value, weight, depth)?;
        }
        if let Some(Value::Array(options)) = fields.get("enum") {
            self.spend(weight.saturating_mul(options.len() as u64 / 8))?;
        }
        for inner in SAME_ONE.iter().filter_map(|keyword| fields.get(*keyword)) {
            self.visit(inner, value, weight, depth)?;
        }
        let lists = SAME_LISTS.iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
        for inner in lists.flatten() {
            self.visit(inner, value, weight, depth)?;
        }
        let maps = SAME_MAPS.iter().filter_map(|keyword| fields.get(*keyword)?.as_object());
        for inner in maps.flat_map(Map::values) {
            self.visit(inner, value, weight, depth)?;
        }
        Ok(())
    }

    fn properties(
        &mut self,
        fields: &'a Map<String, Value>,
        properties: &Map<String, Value>,
        weight: u64,
        depth: usize,
    ) -> Result<(), Unchecked> {
        let named = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        for (key, value) in properties {
            self.spend(weight)?;
            if let Some(inner) = named.and_then(|named| named.get(key)) {
                self.visit(inner, value, weight, depth)?;
            }
            for (pattern, inner) in patterns.into_iter().flatten() {
                self.spend(weight.saturating_mul(pattern_steps(pattern, key.len())))?;
                self.visit(inner, value, weight, depth)?;
            }
            for inner in PROPERTIES.iter().filter_map(|keyword| fields.get(*keyword)) {
                self.visit(inner, value, weight, depth)?;
            }
            if let Some(inner) = fields.get("propertyNames") {
                self.visit(inner, &Value::String(key.clone()), weight, depth)?;
            }
        }
        Ok(())
    }

    fn items(
        &mut self,
        fields: &'a Map<String, Value>,
        items: &[Value],
        weight: u64,
        depth: usize,
    ) -> Result<(), Unchecked> {
        let lists =
            ["prefixItems", "items"].iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
        for (inner, item) in lists.flat_map(|list| list.iter().zip(items)) {
            self.visit(inner, item, weight, depth)?;
        }
        for item in items {
            self.spend(weight)?;
            for inner in ITEMS.iter().filter_map(|keyword| fields.get(*keyword)) {
                self.visit(inner, item, weight, depth)?;
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: u64) -> Result<(), Unchecked> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX { Err(Unchecked::TooMuchWork) } else { Ok(()) }
    }
}

fn pattern_steps(pattern: &str, length: usize) -> u64 {
    // Look-around, or a reference back to a group.
    let looks_around = ["(?=", "(?!", "(?<", "\\k"].iter().any(|sign| pattern.contains(sign))
        || pattern.as_bytes().windows(2).any(|pair| matches!(pair, [b'\\', b'1'..=b'9']));
    let steps = if looks_around { LOOK_AROUND_STEPS } else { PATTERN_STEPS };
    steps + length as u64 / 32
}
