//! What evaluating a value would cost, before it is done. A schema of a few lines can ask for more steps than anybody
//! can wait for (definitions that refer to each other twice, over and over, or alternatives inside alternatives at every
//! level of the value), or for more stack than there is. So its references are followed over the value first, without
//! judging anything. What a definition costs at a place is known once it was seen there, so that the estimate itself
//! stays small where the evaluation would explode.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::references::{KEYWORDS, References};
use super::{BACKTRACK_MAX, Schema};
use crate::{Budget, Exhausted, scan_steps};

/// What the library does for one keyword or one value.
const VISIT_STEPS: u64 = 4;
/// How deeply schemas may lead into each other over one value: the evaluation takes stack for each.
const DEPTH_MAX: usize = 512;
/// What a meta-schema takes for each value.
const META_SCHEMA_STEPS: u64 = 1_000;
/// Steps to create and drop one error, without what it copies. Measured: about a microsecond.
const ERROR_STEPS: u64 = 100;
/// Bytes that each schema on the way to an error adds to the paths in it.
const SEGMENT_BYTES: usize = 16;

/// How many steps it takes to evaluate the value, at most.
pub(super) fn estimate(schema: &Schema, value: &Value, budget: &Budget) -> Result<u64, Exhausted> {
    Walk::new(schema, Purpose::Evaluate, budget).visit(&schema.value, value, 0)
}

/// How many steps it takes to collect all errors of the value, at most.
pub(super) fn estimate_errors(
    schema: &Schema,
    value: &Value,
    budget: &Budget,
) -> Result<u64, Exhausted> {
    Walk::new(schema, Purpose::CollectErrors, budget).visit(&schema.value, value, 0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Evaluate,
    CollectErrors,
}

struct Walk<'a> {
    schema: &'a Schema,
    purpose: Purpose,
    budget: &'a Budget,
    /// Collected when the first reference is followed.
    references: Option<References<'a>>,
    /// The size of the lists and objects that a `const` or an `enum` compares with, by where it is in memory.
    option_sizes: HashMap<*const Value, u64>,
    /// Costs of definitions at values, by the addresses of both and the number of alternatives around them.
    known: HashMap<(*const Value, *const Value, u64), u64>,
    /// How many values around this one are gone when the walk is: they are not known by where they are.
    passing: usize,
    /// How many `anyOf` and `oneOf` are around the schema, where errors are collected. Each evaluates everything inside it
    /// once more before, and copies the values of the errors inside it.
    alternatives: u64,
    /// The length of the paths that an error names: to the value, and to the schema.
    path_bytes: usize,
}

/// Keywords whose schema is about the same value.
pub(super) const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
pub(super) const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
pub(super) const SAME_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schema is about each of what is in it.
pub(super) const ITEMS: [&str; 4] = ["items", "additionalItems", "contains", "unevaluatedItems"];
/// Keywords that have no errors of their own.
const WITHOUT_ERRORS: [&str; 18] = [
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "allOf",
    "default",
    "definitions",
    "description",
    "else",
    "examples",
    "if",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "then",
    "title",
];

impl<'a> Walk<'a> {
    fn new(schema: &'a Schema, purpose: Purpose, budget: &'a Budget) -> Self {
        Self {
            schema,
            purpose,
            budget,
            references: None,
            option_sizes: HashMap::new(),
            known: HashMap::new(),
            passing: 0,
            alternatives: 0,
            path_bytes: 0,
        }
    }

    fn visit(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Result<u64, Exhausted> {
        self.path_bytes += SEGMENT_BYTES;
        let steps = self.visit_here(schema, value, depth);
        self.path_bytes -= SEGMENT_BYTES;
        steps
    }

    fn visit_here(
        &mut self,
        schema: &'a Value,
        value: &Value,
        depth: usize,
    ) -> Result<u64, Exhausted> {
        self.budget.spend(1)?;
        let Value::Object(fields) = schema else {
            let errors = u64::from(*schema == Value::Bool(false));
            return Ok(self.repeated(VISIT_STEPS).saturating_add(self.errors(errors, value)?));
        };
        if depth > DEPTH_MAX {
            return Err(self.budget.exhausted());
        }
        let depth = depth + 1;
        let mut steps = self.repeated(VISIT_STEPS * (1 + fields.len() as u64 / 4));
        steps = steps.saturating_add(self.own_errors(fields, value)?);
        steps = steps.saturating_add(self.same(fields, value, depth)?);
        steps = steps.saturating_add(match value {
            Value::Object(properties) => self.properties(fields, properties, depth)?,
            Value::Array(items) => self.items(fields, value, items, depth)?,
            Value::String(text) => {
                let matching = match fields.get("pattern") {
                    Some(Value::String(pattern)) => self.pattern(pattern, text)?,
                    _ => 0,
                };
                self.repeated(matching + scan_steps(text.len()))
            }
            _ => 0,
        });
        // What was not evaluated is known only after everything beside it was looked at once more.
        if fields.contains_key("unevaluatedProperties") || fields.contains_key("unevaluatedItems") {
            steps = steps.saturating_mul(2);
        }
        // All that comes is added to it.
        if steps > self.budget.remaining() { Err(self.budget.exhausted()) } else { Ok(steps) }
    }

    /// The cost of an evaluation that is repeated for each alternative around it.
    fn repeated(&self, steps: u64) -> u64 {
        steps.saturating_mul(1 + self.alternatives)
    }

    /// The cost of collecting a number of errors at a value.
    fn errors(&self, count: u64, value: &Value) -> Result<u64, Exhausted> {
        if self.purpose == Purpose::Evaluate || count == 0 {
            return Ok(0);
        }
        let mut each = ERROR_STEPS + scan_steps(self.path_bytes);
        if self.alternatives > 0 {
            let limit = self.budget.remaining() / count;
            let size = self.size_up_to(value, limit)?;
            each = each.saturating_add(VISIT_STEPS.saturating_mul(size));
        }
        Ok(each.saturating_mul(count))
    }

    /// The cost of the errors that a schema itself can have at a value.
    fn own_errors(&self, fields: &'a Map<String, Value>, value: &Value) -> Result<u64, Exhausted> {
        if self.purpose == Purpose::Evaluate {
            return Ok(0);
        }
        let mut count = 0;
        let mut copied = 0_u64;
        for (keyword, wanted) in fields {
            match (keyword.as_str(), wanted) {
                (keyword, _) if WITHOUT_ERRORS.contains(&keyword) => {}
                ("required", Value::Array(names)) => {
                    count += names.len() as u64;
                    copied = copied.saturating_add(self.budget.spend_value(wanted)?);
                }
                ("dependentRequired" | "dependencies", Value::Object(_)) => {
                    let size = self.budget.spend_value(wanted)?;
                    count += size;
                    copied = copied.saturating_add(size);
                }
                // An error of theirs has the schema, or the pattern and the text, in it.
                ("not", _) => {
                    count += 1;
                    let size = self.budget.spend_value(wanted)?;
                    copied = copied.saturating_add(VISIT_STEPS.saturating_mul(size));
                }
                ("pattern", Value::String(pattern)) => {
                    count += 1;
                    let text = value.as_str().map_or(0, str::len);
                    copied = copied.saturating_add(scan_steps(pattern.len() + 2 * text));
                }
                _ => count += 1,
            }
        }
        Ok(copied.saturating_add(self.errors(count, value)?))
    }

    fn same(
        &mut self,
        fields: &'a Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<u64, Exhausted> {
        let mut steps = 0_u64;
        for keyword in KEYWORDS {
            if let Some(Value::String(reference)) = fields.get(keyword) {
                steps = steps.saturating_add(self.refer(reference, value, depth)?);
            }
        }
        if let Some(option) = fields.get("const") {
            let compared = self.compare(std::slice::from_ref(option), value)?;
            steps = steps.saturating_add(self.repeated(compared));
        }
        if let Some(Value::Array(options)) = fields.get("enum") {
            let compared = self.compare(options, value)?;
            steps = steps.saturating_add(self.repeated(compared));
        }
        for inner in SAME_ONE.iter().filter_map(|keyword| fields.get(*keyword)) {
            steps = steps.saturating_add(self.visit(inner, value, depth)?);
        }
        for keyword in SAME_LISTS {
            let is_choice = keyword != "allOf" && self.purpose == Purpose::CollectErrors;
            self.alternatives += u64::from(is_choice);
            for inner in fields.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                steps = steps.saturating_add(self.visit(inner, value, depth)?);
            }
            self.alternatives -= u64::from(is_choice);
        }
        let maps = SAME_MAPS.iter().filter_map(|keyword| fields.get(*keyword)?.as_object());
        for inner in maps.flat_map(Map::values) {
            steps = steps.saturating_add(self.visit(inner, value, depth)?);
        }
        Ok(steps)
    }

    /// What it takes to compare a value with a `const`, or with each option of an `enum`.
    fn compare(&mut self, options: &'a [Value], value: &Value) -> Result<u64, Exhausted> {
        let each = match value {
            Value::String(text) => scan_steps(text.len()),
            _ => 1,
        };
        let steps = each.saturating_mul(options.len() as u64 / 4 + 1);
        if !value.is_array() && !value.is_object() {
            return Ok(steps);
        }
        let key = options.as_ptr();
        let total = match self.option_sizes.get(&key) {
            Some(known) => *known,
            None => {
                let mut total = 0;
                for option in
                    options.iter().filter(|option| option.is_array() || option.is_object())
                {
                    total += self.budget.spend_value(option)?;
                }
                self.option_sizes.insert(key, total);
                total
            }
        };
        // Neither side of a comparison is looked at further than the other goes.
        let size = self.size_up_to(value, total)?;
        let compared = total.min(size.saturating_mul(options.len() as u64));
        Ok(steps.saturating_add(VISIT_STEPS.saturating_mul(compared)))
    }

    /// The steps that it takes to go through a value, counted as far as the limit.
    fn size_up_to(&self, value: &Value, limit: u64) -> Result<u64, Exhausted> {
        self.budget.spend(1)?;
        let mut size = 1;
        match value {
            Value::String(text) => size = scan_steps(text.len()),
            Value::Array(items) => {
                for item in items {
                    if size >= limit {
                        break;
                    }
                    size += self.size_up_to(item, limit - size)?;
                }
            }
            Value::Object(fields) => {
                for (key, inner) in fields {
                    if size >= limit {
                        break;
                    }
                    size += scan_steps(key.len());
                    size += self.size_up_to(inner, limit.saturating_sub(size))?;
                }
            }
            _ => {}
        }
        Ok(size)
    }

    fn refer(&mut self, reference: &'a str, value: &Value, depth: usize) -> Result<u64, Exhausted> {
        let references = match &mut self.references {
            Some(references) => references,
            none => none.insert(References::collect(&self.schema.value, self.budget)?),
        };
        let targets = references.targets(reference, self.budget)?;
        if targets.is_empty() {
            return Ok(META_SCHEMA_STEPS.saturating_mul(self.budget.spend_value(value)?));
        }
        // The path to where it leads is written for what may be wrong there.
        let mut steps = match self.purpose {
            Purpose::Evaluate => 0,
            Purpose::CollectErrors => scan_steps(self.path_bytes),
        };
        for target in targets.iter().copied() {
            let key = (std::ptr::from_ref(target), std::ptr::from_ref(value), self.alternatives);
            let known = self.known.get(&key).copied().filter(|_| self.passing == 0);
            let cost = match known {
                Some(cost) => cost,
                None => {
                    let cost = self.visit(target, value, depth)?;
                    if self.passing == 0 {
                        self.known.insert(key, cost);
                    }
                    cost
                }
            };
            steps = steps.saturating_add(cost);
        }
        Ok(steps)
    }

    fn properties(
        &mut self,
        fields: &'a Map<String, Value>,
        properties: &Map<String, Value>,
        depth: usize,
    ) -> Result<u64, Exhausted> {
        let named = fields.get("properties").and_then(Value::as_object);
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        let mut steps = 0_u64;
        for (key, value) in properties {
            self.budget.spend(1)?;
            steps = steps.saturating_add(self.repeated(1));
            // In the path to the value, and in that to its schema.
            self.path_bytes += 2 * key.len();
            let own = named.and_then(|named| named.get(key));
            if let Some(inner) = own {
                steps = steps.saturating_add(self.visit(inner, value, depth)?);
            }
            let mut is_additional = own.is_none();
            for (pattern, inner) in patterns.into_iter().flatten() {
                let (matching, is_match) = self.name_pattern(pattern, key)?;
                steps = steps.saturating_add(self.repeated(matching));
                if is_match != Some(false) {
                    self.path_bytes += pattern.len();
                    steps = steps.saturating_add(self.visit(inner, value, depth)?);
                    self.path_bytes -= pattern.len();
                }
                is_additional &= is_match != Some(true);
            }
            if let Some(inner) = fields.get("additionalProperties").filter(|_| is_additional) {
                steps = steps.saturating_add(self.visit(inner, value, depth)?);
            }
            // What another schema evaluates is not known here.
            if let Some(inner) = fields.get("unevaluatedProperties") {
                steps = steps.saturating_add(self.visit(inner, value, depth)?);
            }
            if let Some(inner) = fields.get("propertyNames") {
                self.passing += 1;
                let visited = self.visit(inner, &Value::String(key.clone()), depth);
                self.passing -= 1;
                steps = steps.saturating_add(visited?);
            }
            self.path_bytes -= 2 * key.len();
        }
        Ok(steps)
    }

    fn items(
        &mut self,
        fields: &'a Map<String, Value>,
        value: &Value,
        items: &[Value],
        depth: usize,
    ) -> Result<u64, Exhausted> {
        let mut steps = 0_u64;
        let lists =
            ["prefixItems", "items"].iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
        for (inner, item) in lists.flat_map(|list| list.iter().zip(items)) {
            steps = steps.saturating_add(self.visit(inner, item, depth)?);
        }
        for item in items {
            self.budget.spend(1)?;
            steps = steps.saturating_add(self.repeated(1));
            for inner in ITEMS.iter().filter_map(|keyword| fields.get(*keyword)) {
                steps = steps.saturating_add(self.visit(inner, item, depth)?);
            }
        }
        if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            let compared = VISIT_STEPS.saturating_mul(self.budget.spend_value(value)?);
            steps = steps.saturating_add(self.repeated(compared));
        }
        Ok(steps)
    }

    /// What the pattern costs on the text: as much as it does here.
    fn pattern(&self, pattern: &str, text: &str) -> Result<u64, Exhausted> {
        let Some(Ok(matcher)) = self.schema.patterns.get(pattern) else { return Ok(0) };
        let before = self.budget.steps();
        matcher.is_match(text, self.budget)?;
        Ok(self.budget.steps() - before)
    }

    /// What a pattern of names costs, and whether it matches; unless the library's engine, which matches names, may see
    /// that differently.
    fn name_pattern(&self, pattern: &str, name: &str) -> Result<(u64, Option<bool>), Exhausted> {
        self.budget.spend_scan(pattern.len() + name.len())?;
        let length = name.len() as u64 + 1;
        let most = BACKTRACK_MAX as u64 * (1 + length.saturating_mul(length) / 64);
        let Some(Ok(matcher)) = self.schema.patterns.get(pattern) else { return Ok((most, None)) };
        let is_portable = is_portable(pattern) && name.bytes().all(|byte| byte.is_ascii_graphic());
        let agreed = |is_match| Some(is_match).filter(|_| is_portable);
        let before = self.budget.steps();
        let is_match = matcher.is_match(name, self.budget)?;
        let steps = if matcher.backtracks() { most } else { self.budget.steps() - before };
        Ok((steps, agreed(is_match)))
    }
}

/// Whether a pattern means the same to every engine, on printable ASCII: it has no syntax that flavors disagree about.
fn is_portable(pattern: &str) -> bool {
    let mut is_in_class = false;
    let mut before = ' ';
    let mut chars = pattern.chars().peekable();
    while let Some(next) = chars.next() {
        let is_same = match next {
            '\\' => chars.next().is_some_and(|escaped| "dws.-/$".contains(escaped)),
            '[' => {
                let is_outside = !std::mem::replace(&mut is_in_class, true);
                chars.next_if_eq(&'^');
                is_outside && chars.peek() != Some(&']')
            }
            ']' => std::mem::replace(&mut is_in_class, false),
            '?' if before == '(' && !is_in_class => {
                chars.peek().is_some_and(|kind| "!=:".contains(*kind))
            }
            '-' => before != '-',
            '^' | '$' | '.' | '*' | '+' | '?' | '(' | ')' | '|' | '/' | ':' | '!' | '=' | '_' => {
                true
            }
            next => next.is_ascii_alphanumeric(),
        };
        if !is_same {
            return false;
        }
        before = next;
    }
    true
}
