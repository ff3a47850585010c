//! Schemas within a budget: what would explode is refused before it is evaluated, and what is usual is not.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use budget::schema::{Evaluation, Options, Schema};
use budget::{Budget, Exhausted};
use serde_json::{Map, Value, json};

fn evaluate(schema: &Value, value: &Value, steps: u64) -> Result<Evaluation, Exhausted> {
    let schema = Schema::compile(schema, Options::default()).unwrap();
    schema.evaluate(value, &Budget::with_steps(steps))
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"child": inner}))
}

#[test]
fn alternatives_that_recurse_are_refused_before_they_explode() {
    let node = json!({"$ref": "#/$defs/node"});
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let schema = json!({
            "$ref": "#/$defs/node",
            "$defs": {"node": {keyword: [
                {"properties": {"child": node, "a": {"type": "string"}}},
                {"properties": {"child": node, "b": {"type": "string"}}},
            ]}},
        });
        assert!(evaluate(&schema, &nested(4), 100_000).is_ok(), "{keyword}");
        // 2^60 evaluations; refused with a few thousand steps, or the test would not end.
        let exhausted = evaluate(&schema, &nested(60), 1_000_000);
        assert_eq!(exhausted, Err(Exhausted::Steps { limit: 1_000_000 }), "{keyword}");
    }
}

#[test]
fn definitions_that_double_are_refused_whatever_the_value() {
    let mut definitions = Map::new();
    for at in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d60".to_owned(), json!({"type": "object"}));
    let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
    assert!(evaluate(&schema, &json!({}), 1_000_000).is_err());
}

#[test]
fn other_ways_to_refer_are_followed_too() {
    let mut definitions = Map::new();
    for at in 0..60 {
        let next = json!({"$dynamicRef": format!("#d{}", at + 1)});
        let all = json!({"$dynamicAnchor": format!("d{at}"), "allOf": [next, next]});
        definitions.insert(format!("d{at}"), all);
    }
    definitions.insert("d60".to_owned(), json!({"$dynamicAnchor": "d60", "type": "object"}));
    let schema = json!({"$defs": definitions, "$dynamicRef": "#d0"});
    assert!(evaluate(&schema, &json!({}), 1_000_000).is_err());
    let anchored = json!({"$defs": {"a": {"$anchor": "here", "type": "string"}}, "$ref": "#here"});
    assert!(evaluate(&anchored, &json!("x"), 1_000).unwrap().is_valid);
    let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    assert!(evaluate(&meta, &json!({"type": "object"}), 10_000).unwrap().is_valid);
    assert!(!evaluate(&meta, &json!({"type": "thing"}), 10_000).unwrap().is_valid);
}

#[test]
fn estimates_are_linear_for_usual_schemas() {
    let schema = json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["action", "owner"],
            "properties": {
                "action": {"type": "string", "minLength": 20},
                "owner": {"type": "string", "pattern": "^(?!\\s*$).+"},
            },
        },
    });
    let schema = Schema::compile(&schema, Options::default()).unwrap();
    let steps = |count: usize| {
        let value = json!(vec![json!({"action": "x".repeat(40), "owner": "somebody"}); count]);
        let budget = Budget::for_call();
        assert!(schema.evaluate(&value, &budget).unwrap().is_valid);
        budget.steps()
    };
    let (few, many) = (steps(100), steps(1_000));
    assert!(many < 11 * few, "{few} steps, then {many}");
}

#[test]
fn the_cost_of_a_pattern_of_names_is_estimated() {
    let slow = json!({"patternProperties": {"^(?=(a+)+b)": {}}});
    let names = |count: usize| -> Value {
        let pairs = (0..count).map(|at| (format!("{}{at}", "a".repeat(100)), json!(1)));
        Value::Object(pairs.collect())
    };
    assert!(evaluate(&slow, &names(1), 1_000_000).is_ok());
    assert!(evaluate(&slow, &names(100), 1_000_000).is_err());
    let fast = json!({"patternProperties": {"^a+$": {}}});
    assert!(evaluate(&fast, &names(100), 1_000_000).is_ok());
}

/// Thousands of ids, in data or as definitions, are candidates for every reference.
#[test]
fn references_are_resolved_once_and_paid_for() {
    let ids: Vec<Value> = (0..5_000).map(|at| json!({"id": at.to_string()})).collect();
    let schema = json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}, "x": {"enum": ids}}});
    let items = json!(vec![0; 5_000]);
    let schema = Schema::compile(&schema, Options::default()).unwrap();
    let cost = |value: &Value| {
        let budget = Budget::for_call();
        assert!(schema.evaluate(value, &budget).unwrap().is_valid);
        budget.steps()
    };
    let (one, many) = (cost(&json!([0])), cost(&items));
    // Looking 5,000 candidates up is paid for, and happens once.
    assert!(one > 5_000, "{one} steps");
    assert!(many < one + 5_000 * 30, "{one} steps, then {many}");
}

#[test]
fn references_times_ids_are_told_within_a_bound() {
    let mut definitions = Map::new();
    let mut all = Vec::new();
    for at in 0..5_000 {
        definitions.insert(format!("d{at}"), json!({"$id": format!("i{at}")}));
        all.push(json!({"$ref": format!("#/$defs/d{at}")}));
    }
    let schema = json!({"$defs": definitions, "prefixItems": all});
    assert_eq!(budget::schema::expense(&schema), Some(budget::schema::Expense::Tangled));
}

#[test]
fn comparing_nested_values_is_paid_for() {
    let large = json!(vec![json!([1, 2, 3]); 1_000]);
    let other = json!(vec![json!({"a": large}); 50]);
    for schema in [
        json!({"items": {"properties": {"a": {"const": large}}}}),
        json!({"items": {"properties": {"a": {"enum": [0, large]}}}}),
    ] {
        assert!(evaluate(&schema, &other, 10_000_000).unwrap().is_valid);
        assert!(evaluate(&schema, &other, 200_000).is_err(), "{}", schema["items"]);
        // A small value is compared no further than it goes.
        let small = json!(vec![json!({"a": [1]}); 50]);
        assert!(evaluate(&schema, &small, 20_000).is_ok());
    }
}

#[test]
fn additional_properties_are_those_without_a_name() {
    let this = json!({"$ref": "#"});
    for schema in [
        json!({"properties": {"child": this}, "additionalProperties": this}),
        json!({"patternProperties": {"^chi": this}, "additionalProperties": this}),
        json!({"patternProperties": {"^c[a-h]*": this, "^x-": this}}),
    ] {
        assert!(evaluate(&schema, &nested(24), 20_000).unwrap().is_valid, "{schema}");
    }
    // Flavors disagree about `&&` in a class: then both may apply.
    let unsure = json!({"patternProperties": {"[^c&&d]": this}, "additionalProperties": this});
    assert!(evaluate(&unsure, &nested(60), 1_000_000).is_err());
}

#[test]
fn patterns_of_one_schema_are_bounded() {
    let schema = |count: usize, pattern: &str| {
        let property = |at| (format!("p{at}"), json!({"pattern": format!("{pattern}{at}")}));
        let properties: Map<String, Value> = (0..count).map(property).collect();
        Schema::compile(&json!({"properties": properties}), Options::default())
    };
    assert!(schema(64, "x").is_ok());
    let many = schema(1_000, r"\p{L}{50}x").unwrap_err();
    assert!(many.message.ends_with("the schema has more than 64 patterns"), "{many}");
    let large = schema(64, r"\p{L}{55}x").unwrap_err();
    assert!(large.message.ends_with("exceed 33554432 bytes together"), "{large}");
}

/// What explaining costs, and how many errors it shows.
fn explain(schema: &Value, value: &Value) -> (u64, usize) {
    let schema = Schema::compile(schema, Options::default()).unwrap();
    let budget = Budget::for_call();
    let evaluation = schema.evaluate(value, &budget).unwrap();
    assert!(!evaluation.is_valid);
    let before = budget.steps();
    let errors = schema.errors(value, evaluation, &budget).unwrap();
    (budget.steps() - before, errors.len())
}

/// A microsecond and more for each error: not for nothing, and not beyond a bound.
#[test]
fn collecting_errors_is_paid_for() {
    let item = json!({"type": "object", "required": ["a", "b", "c", "d"]});
    let schema = json!({"type": "array", "items": item});
    let items = |count: usize| json!(vec![json!({}); count]);
    let (few, shown) = explain(&schema, &items(100));
    assert_eq!(shown, 400);
    assert!((40_000..100_000).contains(&few), "{few} steps");
    let (many, shown) = explain(&schema, &items(1_000));
    assert_eq!(shown, 4_000);
    assert!((9 * few..11 * few).contains(&many), "{few} steps, then {many}");
    let (_, shown) = explain(&schema, &items(5_000));
    assert_eq!(shown, 1, "the first");

    // On a thread that others wait for there is no room for it, so that it is done elsewhere.
    let compiled = Schema::compile(&schema, Options::default()).unwrap();
    for count in [2_000, 5_000] {
        let (value, budget) = (items(count), Budget::for_inline_call());
        let evaluation = compiled.evaluate(&value, &budget).unwrap();
        assert!(compiled.errors(&value, evaluation, &budget).is_err(), "{count} items");
        assert!(budget.is_exhausted());
    }
}

/// Each error names the path to its value, and inside alternatives keeps a copy of the value.
#[test]
fn copies_in_errors_are_paid_for() {
    let list = json!(vec![json!({}); 1_000]);
    let schema = json!({"additionalProperties": {"items": {"required": ["a"]}}});
    let (short, _) = explain(&schema, &json!({"a": list}));
    let long = json!({"a".repeat(5_000): list});
    assert!(explain(&schema, &long).0 > 5 * short);

    let branches: Vec<Value> = (0..200).map(|at| json!({"required": [at.to_string()]})).collect();
    let schema = json!({"anyOf": branches});
    let (empty, shown) = explain(&schema, &json!({}));
    assert_eq!(shown, 1);
    let (_, shown) = explain(&schema, &json!({"list": list}));
    assert_eq!(shown, 0, "200 copies of the list");
    assert!(empty < 100_000, "{empty} steps");

    // Each level of alternatives evaluates what is below it once more.
    let nested = |depth: usize| {
        let leaf = json!({"items": {"type": "string"}});
        (0..depth).fold(leaf, |inner, _| json!({"anyOf": [inner]}))
    };
    let items = json!(vec![0; 100]);
    let (flat, deep) = (explain(&nested(1), &items).0, explain(&nested(8), &items).0);
    assert!(deep > flat + 7 * 100 * 4, "{flat} steps, then {deep}");
}
