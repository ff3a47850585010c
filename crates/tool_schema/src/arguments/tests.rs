use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::tool::Annotations;

fn tool(schema: &Value) -> Tool {
    Tool {
        name: "tool".to_owned(),
        title: None,
        description: None,
        input_schema: Json::from(schema),
        output_schema: None,
        annotations: Annotations::default(),
        other: Default::default(),
    }
}

fn check(schema: &Value, arguments: &Value) -> Verdict {
    Checker::default().arguments(&tool(schema), arguments)
}

fn table(cases: &[(Value, Value)]) -> String {
    let mut table = String::new();
    for (schema, arguments) in cases {
        let _ = writeln!(table, "{arguments}\n    for {schema}");
        let _ = match check(schema, arguments) {
            Verdict::Fits => writeln!(table, "  fits"),
            Verdict::Unchecked(why) => writeln!(table, "  unchecked: {why}"),
            Verdict::Wrong(problems) => problems.iter().try_for_each(|problem| {
                let Problem { kind, expected, nearest, .. } = problem;
                writeln!(
                    table,
                    "  {problem}\n      {kind:?} expected={expected:?} nearest={nearest:?}"
                )
            }),
        };
    }
    table
}

#[test]
fn problems_are_said_with_their_place() {
    let issue = json!({
        "type": "object",
        "properties": {
            "owner": {"type": "string", "description": "Who owns the repository.\nMore."},
            "title": {"type": "string", "minLength": 1},
            "labels": {"type": "array", "items": {"type": "string"}},
            "state": {"enum": ["open", "closed"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "assignee": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/person"}, {"type": "null"}]},
            "a/b~c": {"type": "boolean"},
        },
        "required": ["owner", "title"],
        "additionalProperties": false,
        "$defs": {"person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}},
            "required": ["name"],
        }},
    });
    let cases = [
        json!({"owner": "a", "title": "b"}),
        json!({}),
        json!([]),
        json!(null),
        json!({"owner": "a", "titel": "b"}),
        json!({"owner": "a", "title": "b", "zzz": 1}),
        json!({"owner": 5, "title": ""}),
        json!({"owner": "a", "title": "b", "labels": ["x", 1, null], "limit": "5"}),
        json!({"owner": "a", "title": "b", "labels": "x", "limit": 1000, "state": "opened"}),
        json!({"owner": "a", "title": "b", "limit": 1.5, "state": 7}),
        json!({"owner": "a", "title": "b", "limit": 1.0, "assignee": null}),
        json!({"owner": "a", "title": "b", "assignee": {"nme": "x", "age": "old"}}),
        json!({"owner": "a", "title": "b", "assignee": 4}),
        json!({"owner": "a", "title": "b", "a/b~c": "true"}),
    ];
    let table = table(&cases.map(|case| (issue.clone(), case)));
    let table = table.replace(&format!("\n    for {issue}"), "");
    insta::assert_snapshot!(table);
}

#[test]
fn all_kinds_of_schemas_are_understood() {
    let table = table(&[
        (json!({}), json!({"anything": 1})),
        (json!({"type": "object"}), json!({"anything": 1})),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/a"}}}),
            json!({"x": 1}),
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"x": {"maximum": 5, "exclusiveMaximum": true}}}),
            json!({"x": 5}),
        ),
        (json!({"properties": {"x": {"const": "only"}}}), json!({"x": "onyl"})),
        (json!({"properties": {"x": {"pattern": "^[a-z]+$"}}}), json!({"x": "A"})),
        (json!({"properties": {"x": {"format": "email"}}}), json!({"x": "not one"})),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"x": {"format": "email"}}}),
            json!({"x": "not one"}),
        ),
        (json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({"a": 1, "b": 2})),
        (json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({})),
        (json!({"properties": {"x": {"uniqueItems": true}}}), json!({"x": [1, 1]})),
        (json!({"properties": {"x": {"not": {"type": "string"}}}}), json!({"x": "a"})),
        (
            json!({"properties": {"x": {"prefixItems": [{"type": "number"}], "items": false}}}),
            json!({"x": [1, 2]}),
        ),
        (
            json!({"properties": {"tree": {"$ref": "#"}, "leaf": {"type": "string"}}}),
            json!({"tree": {"tree": {"leaf": 1}}}),
        ),
        (json!({"propertyNames": {"maxLength": 3}}), json!({"long-name": 1})),
        (json!({"properties": {"100%": {"type": "string"}}, "required": ["100%"]}), json!({})),
    ]);
    insta::assert_snapshot!(table);
}

#[test]
fn what_cannot_be_used_is_left_unchecked() {
    let table = table(&[
        (json!({"type": "text"}), json!({})),
        (json!({"properties": 5}), json!({})),
        (json!({"properties": {"a": {"required": true}}}), json!({"a": 1})),
        (json!({"$schema": "https://example.com/own"}), json!({})),
        (json!({"$schema": 5}), json!({})),
        (json!({"$ref": "https://example.com/schema.json"}), json!({})),
        (json!({"$ref": "file:///etc/hostname"}), json!({})),
        (json!({"$ref": "#/$defs/gone"}), json!({})),
        (json!({"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}}), json!({})),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "https://example.com/a"}}}), json!({})),
        (json!({"$dynamicRef": "#"}), json!({})),
        (json!({"$id": "not a % uri"}), json!({})),
        (json!({"properties": {"x": {"pattern": "(("}}}), json!({"x": "a"})),
        (json!({"properties": {"x": {"pattern": "(a{1000}){1000}"}}}), json!({"x": "a"})),
        (json!({"properties": {"x": {"pattern": r"^(a|a)*\1b"}}}), json!({"x": "a".repeat(40)})),
        // References that lead in circles without getting anywhere.
        (json!({"$ref": "#"}), json!({})),
        (json!({"allOf": [{"$ref": "#"}]}), json!({})),
        (
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            json!({}),
        ),
    ]);
    insta::assert_snapshot!(table);
}

/// Definitions that each refer to the next one twice.
fn doubling(keyword: &str, count: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for at in 0..count {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({keyword: [next, next]}));
    }
    definitions.insert(format!("d{count}"), json!({"type": "string"}));
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

#[test]
fn no_schema_keeps_us_busy() {
    let too_much = Verdict::Unchecked(Unchecked::TooMuchWork);
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert_eq!(check(&doubling(keyword, 60), &json!({})), too_much, "{keyword}");
        assert!(matches!(check(&doubling(keyword, 5), &json!({})), Verdict::Wrong(_)), "{keyword}");
    }
    // Over the value instead of over the schema.
    let node = json!({"$ref": "#"});
    let tree = json!({"properties": {"child": {"allOf": [node, node]}}});
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({"child": deep});
    }
    assert_eq!(check(&tree, &deep), too_much);
    // A long chain would take all of the stack.
    let mut chain = serde_json::Map::new();
    for at in 0..5_000 {
        chain.insert(format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}));
    }
    chain.insert("d5000".to_owned(), json!({}));
    assert_eq!(check(&json!({"$defs": chain, "$ref": "#/$defs/d0"}), &json!({})), too_much);
    // Much data for a good schema is still checked, and what is wrong with it is said at least.
    let numbers = json!({"properties": {"x": {"items": {"type": "number"}}}});
    let mut many = vec![json!(1); 100_000];
    assert_eq!(check(&numbers, &json!({"x": many})), Verdict::Fits);
    many[70_000] = json!("1");
    let Verdict::Wrong(problems) = check(&numbers, &json!({"x": many})) else {
        panic!("it is wrong")
    };
    assert_eq!(problems[0].pointer, "/x/70000");
    let either = json!({"anyOf": [numbers, false]});
    assert_eq!(check(&either, &json!({"x": many})), Verdict::Wrong(vec![Problem::somewhere()]));
    assert_eq!(check(&numbers, &json!({"x": vec![1; 300_000]})), too_much);
}

#[test]
fn catastrophic_patterns_are_harmless() {
    let text = "a".repeat(10_000);
    for pattern in ["^(a+)+$", "^(?=(a+)+$)a"] {
        let verdict = check(
            &json!({"properties": {"x": {"pattern": pattern}}}),
            &json!({"x": format!("{text}!")}),
        );
        assert!(!matches!(verdict, Verdict::Fits), "{pattern}");
    }
    let many: serde_json::Map<String, Value> =
        (0..200).map(|at| (format!("p{at}"), json!({"pattern": format!("a{{1,{at}}}")}))).collect();
    let verdict = check(&json!({"properties": many}), &json!({}));
    assert_eq!(verdict, Verdict::Unchecked(Unchecked::TooManyPatterns));
}

#[test]
fn huge_and_deep_schemas_are_left_unchecked() {
    let huge = json!({"description": "x".repeat(300 * 1024)});
    assert_eq!(check(&huge, &json!({})), Verdict::Unchecked(Unchecked::TooLarge));
    let text = format!("{}{}", r#"{"not":"#.repeat(500), "}".repeat(500));
    let text = text.replace(r#":}"#, r#":{}}"#);
    let raw = serde_json::value::RawValue::from_string(text).unwrap();
    let tool = Tool { input_schema: Json::from(&*raw), ..tool(&json!({})) };
    let verdict = Checker::default().arguments(&tool, &json!({}));
    assert_eq!(verdict, Verdict::Unchecked(Unchecked::TooDeep));
}

#[test]
fn only_cheap_checks_are_done_at_once() {
    let checker = Checker::default();
    let schema = Json::from(&json!({"type": "array", "items": {"type": "integer"}}));
    assert!(!checker.fits_at_once(&schema, &json!([1])), "it is not compiled yet");
    assert_eq!(checker.check(&schema, &json!([1])), Verdict::Fits);
    assert!(checker.fits_at_once(&schema, &json!([1])));
    assert!(!checker.fits_at_once(&schema, &json!(["a"])), "why is for somebody else to say");
    let many = json!(vec![1; 100_000]);
    assert!(!checker.fits_at_once(&schema, &many));
    assert_eq!(checker.check(&schema, &many), Verdict::Fits);
}

#[test]
fn everybody_can_share_it() {
    fn shared<T: Send + Sync>() {}
    shared::<Checker>();
    shared::<Tool>();
}

#[test]
fn names_are_offered_for_a_tool_that_does_not_exist() {
    let names = ["create_issue", "close_issue", "search"];
    let said = |tool: &str| NoSuchTool::new("github", tool, names).to_string();
    insta::assert_snapshot!(said("createIsue"), @"`github` has no tool `createIsue`; did you mean `create_issue`?");
    insta::assert_snapshot!(said("issue"), @"`github` has no tool `issue`; did you mean `close_issue` or `create_issue`?");
    insta::assert_snapshot!(said("weather"), @"`github` has no tool `weather`; describe the server to see its tools");
}

/// Any JSON, mostly of words that mean something in a schema.
pub(crate) fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-5_i64..20).prop_map(Value::from),
        prop::sample::select(vec![
            "string",
            "object",
            "array",
            "integer",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "a",
            "^a+$"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let key = prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "items",
            "prefixItems",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "if",
            "then",
            "$ref",
            "$defs",
            "a",
            "b",
            "enum",
            "const",
            "pattern",
            "additionalProperties",
            "unevaluatedProperties",
            "patternProperties",
            "propertyNames",
            "contains",
            "minimum",
            "minItems",
            "default",
            "description",
            "dependentSchemas",
            "uniqueItems",
            "format",
            "nullable",
            "examples",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5).prop_map(|fields| fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_value_panics(schema in anything(), value in anything()) {
        check(&schema, &value);
    }

    /// What the estimate lets through is judged as the library judges it.
    #[test]
    fn the_verdict_is_the_librarys(schema in anything(), value in anything()) {
        let verdict = check(&schema, &value);
        let Ok(validator) = jsonschema::options().offline().should_validate_formats(false).build(&schema) else {
            prop_assert!(matches!(verdict, Verdict::Unchecked(_)));
            return Ok(());
        };
        match verdict {
            Verdict::Fits => prop_assert!(validator.is_valid(&value)),
            Verdict::Wrong(problems) => {
                prop_assert!(!problems.is_empty());
                prop_assert!(!validator.is_valid(&value));
            }
            Verdict::Unchecked(_) => {}
        }
    }
}
