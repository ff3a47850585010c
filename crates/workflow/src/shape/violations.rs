//! Finds what a definition violates in its schema, up to a limit. A JSON Schema library collects every
//! violation before it hands out the first, and a megabyte of `{}` has a million of them. So the few
//! keywords that our own schema uses are followed here, and the walk stops at the limit.

use budget::{Budget, Exhausted};
use serde_json::{Map, Value};

use super::SCHEMA;
use super::problem::{Problem, Violation};
use crate::pointer::Pointer;

/// The steps that it takes to look at one value with one schema, and at one field of an object.
const VISIT_STEPS: u64 = 8;
const FIELD_STEPS: u64 = 4;

/// The first violations of a definition, in the order of the schema's keywords.
pub(super) fn find(
    definition: &Value,
    limit: usize,
    budget: &Budget,
) -> Result<Vec<Problem>, Exhausted> {
    let mut search = Search { limit, budget, found: Vec::new() };
    search.visit(SchemaAt { schema: &SCHEMA, path: &Pointer::Root }, definition, &Pointer::Root)?;
    Ok(search.found)
}

struct Search<'b> {
    limit: usize,
    budget: &'b Budget,
    found: Vec<Problem>,
}

/// A schema and the way to it. The way starts anew at each definition that a reference leads to.
#[derive(Clone, Copy)]
struct SchemaAt<'p> {
    schema: &'static Value,
    path: &'p Pointer<'p>,
}

impl Search<'_> {
    /// Looks at a value with a schema. What the rules report is left to them: lengths, patterns,
    /// uniqueness, and comparisons without a variable.
    fn visit(
        &mut self,
        at: SchemaAt<'_>,
        value: &Value,
        place: &Pointer<'_>,
    ) -> Result<(), Exhausted> {
        self.budget.spend(VISIT_STEPS)?;
        let Value::Object(keywords) = at.schema else {
            return Ok(());
        };
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            return self.visit_definition(reference, value, place);
        }
        self.check_value(keywords, at, value, place);
        match value {
            Value::Object(fields) => self.visit_fields(keywords, at, fields, place)?,
            Value::Array(items) => {
                if let Some(schema) = keywords.get("items") {
                    let path = at.path.key("items");
                    for (index, item) in items.iter().enumerate() {
                        if self.is_full() {
                            return Ok(());
                        }
                        self.visit(SchemaAt { schema, path: &path }, item, &place.index(index))?;
                    }
                }
            }
            _ => {}
        }
        if let Some(Value::Array(all)) = keywords.get("allOf") {
            let path = at.path.key("allOf");
            for (index, schema) in all.iter().enumerate() {
                self.visit(SchemaAt { schema, path: &path.index(index) }, value, place)?;
            }
        }
        if let Some(test) = keywords.get("if") {
            let branch = if holds(test, value) { "then" } else { "else" };
            if let Some(schema) = keywords.get(branch) {
                self.visit(SchemaAt { schema, path: &at.path.key(branch) }, value, place)?;
            }
        }
        Ok(())
    }

    fn visit_definition(
        &mut self,
        reference: &'static str,
        value: &Value,
        place: &Pointer<'_>,
    ) -> Result<(), Exhausted> {
        let name = reference.strip_prefix("#/$defs/").unwrap_or_default();
        let Some(schema) = SCHEMA.get("$defs").and_then(|definitions| definitions.get(name)) else {
            return Ok(());
        };
        let definitions = Pointer::Root.key("$defs");
        self.visit(SchemaAt { schema, path: &definitions.key(name) }, value, place)
    }

    /// Looks at the value itself, not at what is in it.
    fn check_value(
        &mut self,
        keywords: &'static Map<String, Value>,
        at: SchemaAt<'_>,
        value: &Value,
        place: &Pointer<'_>,
    ) {
        if let Some(types) = keywords.get("type")
            && !names(types).any(|name| is_type(value, name))
        {
            self.add(at, place, Violation::Type(names(types).collect()));
        }
        if let Some(only) = keywords.get("const")
            && value != only
        {
            self.add(at, place, Violation::NotOneOf(std::slice::from_ref(only)));
        }
        if let Some(Value::Array(options)) = keywords.get("enum")
            && !options.contains(value)
        {
            self.add(at, place, Violation::NotOneOf(options));
        }
        if let Some(number) = value.as_f64() {
            // The bounds are whole numbers below 2^53, so no comparison is rounded across them.
            let bound = |keyword| keywords.get(keyword).and_then(Value::as_f64);
            if bound("minimum").is_some_and(|min| number < min) {
                self.add(at, place, Violation::OutOfRange);
            }
            if bound("maximum").is_some_and(|max| number > max) {
                self.add(at, place, Violation::OutOfRange);
            }
        }
    }

    fn visit_fields(
        &mut self,
        keywords: &'static Map<String, Value>,
        at: SchemaAt<'_>,
        fields: &Map<String, Value>,
        place: &Pointer<'_>,
    ) -> Result<(), Exhausted> {
        for name in keywords.get("required").into_iter().flat_map(names) {
            if !fields.contains_key(name) {
                self.add(at, place, Violation::Missing(name.to_owned()));
            }
        }
        let known = keywords.get("properties").and_then(Value::as_object);
        let additional = keywords.get("additionalProperties");
        if known.is_none() && additional.is_none() {
            return Ok(());
        }
        let path = at.path.key("properties");
        let mut unknown = Vec::new();
        for (name, value) in fields {
            self.budget.spend(FIELD_STEPS)?;
            if self.is_full() {
                break;
            }
            match (known.and_then(|known| known.get_key_value(name)), additional) {
                (Some((name, schema)), _) => {
                    self.visit(
                        SchemaAt { schema, path: &path.key(name) },
                        value,
                        &place.key(name),
                    )?;
                }
                (None, Some(Value::Bool(false))) => unknown.push(name.clone()),
                (None, Some(schema)) => {
                    let path = at.path.key("additionalProperties");
                    self.visit(SchemaAt { schema, path: &path }, value, &place.key(name))?;
                }
                (None, None) => {}
            }
        }
        if !unknown.is_empty() {
            self.add(at, place, Violation::Unknown(unknown));
        }
        Ok(())
    }

    fn add(&mut self, at: SchemaAt<'_>, place: &Pointer<'_>, kind: Violation) {
        if !self.is_full() {
            self.found.push(Problem::new(place.to_string(), at.path.to_string(), kind));
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }
}

/// Whether a value passes an `if`.
fn holds(test: &Value, value: &Value) -> bool {
    let Value::Object(keywords) = test else { return true };
    keywords.iter().all(|(keyword, wanted)| match (keyword.as_str(), wanted, value) {
        ("type", types, _) => names(types).any(|name| is_type(value, name)),
        ("const", only, _) => value == only,
        ("enum", Value::Array(options), _) => options.contains(value),
        ("anyOf", Value::Array(tests), _) => tests.iter().any(|test| holds(test, value)),
        ("required", required, Value::Object(fields)) => {
            names(required).all(|name| fields.contains_key(name))
        }
        ("properties", Value::Object(tests), Value::Object(fields)) => {
            tests.iter().all(|(name, test)| fields.get(name).is_none_or(|value| holds(test, value)))
        }
        // About values of another kind.
        _ => true,
    })
}

/// One name, or each of a list.
fn names(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter().filter_map(Value::as_str)
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        // JSON does not tell 5 and 5.0 apart.
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jsonschema::ValidationError;
    use jsonschema::error::ValidationErrorKind;
    use serde_json::json;

    use super::*;

    /// What the library finds in a definition.
    fn library_violations(validator: &jsonschema::Validator, definition: &Value) -> Vec<String> {
        let found = validator.iter_errors(definition).filter_map(|error| violation(&error));
        found.map(|violation| format!("{violation:?}")).collect()
    }

    fn violation(error: &ValidationError<'_>) -> Option<Problem> {
        let schema = error.schema_path().to_string();
        let kind = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                Violation::Unknown(unexpected.clone())
            }
            ValidationErrorKind::Required { .. } if schema.contains("/dependentRequired") => {
                return None;
            }
            ValidationErrorKind::Required { property } => {
                Violation::Missing(property.as_str()?.to_owned())
            }
            ValidationErrorKind::Type { .. } => {
                Violation::Type(names(SCHEMA.pointer(&schema)?).collect())
            }
            ValidationErrorKind::Constant { .. } => {
                Violation::NotOneOf(std::slice::from_ref(SCHEMA.pointer(&schema)?))
            }
            ValidationErrorKind::Enum { .. } => {
                Violation::NotOneOf(SCHEMA.pointer(&schema)?.as_array()?)
            }
            ValidationErrorKind::Minimum { .. } | ValidationErrorKind::Maximum { .. } => {
                Violation::OutOfRange
            }
            _ => return None,
        };
        let parent = schema.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Problem::new(error.instance_path().to_string(), parent.to_owned(), kind))
    }

    /// Every value of a definition with all fields is replaced, removed and renamed in turn.
    #[test]
    fn violations_are_those_that_the_library_finds() {
        let validator = jsonschema::options().offline().build(&SCHEMA).unwrap();
        let good: Value =
            serde_json::from_str(include_str!("../../cases/good-everything.json")).unwrap();
        let replacements = [
            json!(null),
            json!(true),
            json!(-1),
            json!(7.5),
            json!(7.0),
            json!(4294967296_u64),
            json!(1e300),
            json!("loop"),
            json!([]),
            json!([{}, 1, {"type": "loop"}, {"type": "for"}, {"max": 1}, {"and": 1}]),
            json!({}),
            json!({"x": 1, "a/b~c": [], "type": "regex", "schema": 1}),
            json!({"body": [{}], "loop": {"type": "until", "count": -1}}),
            json!({"or": [1, {"type": "length", "min": -1}], "var": 1, "not": {"gt": "1"}}),
        ];
        let mut places = Vec::new();
        collect(&good, String::new(), &mut places);
        let mut count = 0;
        let mut check = |definition: &Value| {
            let found = find(definition, usize::MAX, &Budget::for_call()).unwrap();
            let found: Vec<String> = found.iter().map(|problem| format!("{problem:?}")).collect();
            count += found.len();
            // Unknown fields are reported first anyway.
            let sorted = |mut all: Vec<String>| {
                all.sort_by_key(|problem| !problem.contains("Unknown"));
                all
            };
            assert_eq!(sorted(found), sorted(library_violations(&validator, definition)));
        };
        check(&good);
        for place in &places {
            for replacement in &replacements {
                let mut definition = good.clone();
                *definition.pointer_mut(place).unwrap() = replacement.clone();
                check(&definition);
            }
            let (parent, last) = place.rsplit_once('/').unwrap();
            let mut definition = good.clone();
            if let Some(Value::Object(fields)) = definition.pointer_mut(parent) {
                let removed = fields.remove(last).unwrap();
                check(&definition);
                definition.pointer_mut(parent).unwrap()["nonsense"] = removed;
                check(&definition);
            }
        }
        assert!(count > 3_000, "only {count} violations");
    }

    fn collect(value: &Value, place: String, places: &mut Vec<String>) {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(fields) => {
                fields.iter().map(|(name, inner)| (name.clone(), inner)).collect()
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, inner)| (at.to_string(), inner)).collect()
            }
            _ => Vec::new(),
        };
        for (name, inner) in inner {
            let place = format!("{place}/{name}");
            places.push(place.clone());
            collect(inner, place, places);
        }
    }

    #[test]
    fn search_stops_at_its_limit_and_its_budget() {
        let definition = json!({"steps": vec![json!({}); 10_000]});
        let budget = Budget::for_call();
        assert_eq!(find(&definition, 100, &budget).unwrap().len(), 100);
        assert!(budget.steps() < 10_000, "{}", budget.steps());
        assert!(find(&definition, usize::MAX, &Budget::with_steps(10_000)).is_err());
    }

    /// Everything that the schema says is either followed here or left to the rules.
    #[test]
    fn schema_uses_only_known_keywords() {
        let known = [
            "$ref",
            "additionalProperties",
            "allOf",
            "const",
            "else",
            "enum",
            "if",
            "items",
            "maximum",
            "minimum",
            "properties",
            "required",
            "then",
            "type",
        ];
        let left = [
            "$defs",
            "$schema",
            "default",
            "dependentRequired",
            "description",
            "maxLength",
            "minItems",
            "minLength",
            "minProperties",
            "pattern",
            "propertyNames",
            "title",
            "uniqueItems",
        ];
        let in_tests = ["anyOf", "const", "enum", "properties", "required", "type"];
        let mut found = BTreeSet::new();
        keywords(&SCHEMA, false, &mut found);
        for (keyword, is_test) in found {
            let is_known = match is_test {
                true => in_tests.contains(&&*keyword),
                // One of a declaration's own fields must be there: a rule says so.
                false => [&known[..], &left, &["anyOf"]].concat().contains(&&*keyword),
            };
            assert!(is_known, "{keyword}, in a test: {is_test}");
        }
    }

    /// The keywords of a schema and of those in it, and whether they belong to an `if`.
    fn keywords(schema: &Value, is_test: bool, found: &mut BTreeSet<(String, bool)>) {
        for (keyword, inner) in schema.as_object().into_iter().flatten() {
            found.insert((keyword.clone(), is_test));
            match (keyword.as_str(), inner) {
                ("properties" | "$defs", Value::Object(inner)) => {
                    inner.values().for_each(|inner| keywords(inner, is_test, found));
                }
                ("allOf" | "anyOf", Value::Array(inner)) => {
                    inner.iter().for_each(|inner| keywords(inner, is_test, found));
                }
                ("if", inner) => keywords(inner, true, found),
                ("items" | "then" | "else" | "additionalProperties", inner) => {
                    keywords(inner, is_test, found);
                }
                _ => {}
            }
        }
    }
}
