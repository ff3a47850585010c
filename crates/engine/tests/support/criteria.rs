//! Criteria and outputs, generated, and a plain evaluation of the ones on the others: over the JSON of
//! the definition, with the meaning of each pattern and schema written down beside it.

use proptest::prelude::*;
use serde_json::{Value, json};
use workflow::{Budget, Condition, Context, Variables};

use super::workflows::{condition, value};

/// An output, and the JSON in it, where there is some.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) text: String,
    json: Option<Value>,
}

pub(crate) fn output() -> impl Strategy<Value = Output> {
    let prose = "[abcABC ü\n]{0,12}".prop_map(|text| Output { text, json: None });
    let bare = value().prop_map(|json| Output { text: format!(" {json}\n"), json: Some(json) });
    let fenced = (value(), "[abc ]{0,4}").prop_map(|(json, prose)| Output {
        text: format!("{prose}\n```json\n{json:#}\n```\n{prose}"),
        json: Some(json),
    });
    let twice = value().prop_map(|json| Output {
        text: format!("```\n{json}\n```\n```\n{json}\n```"),
        json: None,
    });
    prop_oneof![3 => prose, 1 => bare, 1 => fenced, 1 => twice]
}

/// Patterns, with what they mean.
type Meaning = (&'static str, &'static str, fn(&str) -> bool);
const PATTERNS: &[Meaning] = &[
    ("^a", "", |text| text.starts_with('a')),
    ("^a", "m", |text| text.lines().any(|line| line.starts_with('a'))),
    ("B", "i", |text| text.to_lowercase().contains('b')),
    ("ü$", "", |text| text.ends_with('ü')),
    (r"a(?!b)", "", |text| text.match_indices('a').any(|(at, _)| !text[at + 1..].starts_with('b'))),
    (r"[^\w\s]", "", |text| {
        text.chars().any(|c| !c.is_ascii_alphanumeric() && c != '_' && !c.is_whitespace())
    }),
];

/// Schemas, with what they mean.
type SchemaMeaning = (&'static str, fn(&Value) -> bool);
const SCHEMAS: &[SchemaMeaning] = &[
    (r#"{"type": "array"}"#, Value::is_array),
    (r#"{"type": "number", "minimum": 1}"#, |value| value.as_f64().is_some_and(|n| n >= 1.0)),
    (r#"{"type": "array", "items": {"type": "number"}}"#, |value| {
        value.as_array().is_some_and(|items| items.iter().all(Value::is_number))
    }),
    (r#"{"not": {"type": "string"}}"#, |value| !value.is_string()),
];

pub(crate) fn rule() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        "[abcü ]{1,2}".prop_map(|value| json!({"type": "contains", "value": value})),
        (0..PATTERNS.len()).prop_map(|at| {
            json!({"type": "regex", "pattern": PATTERNS[at].0, "flags": PATTERNS[at].1})
        }),
        (0..8_u32, 0..6_u32)
            .prop_map(|(min, more)| { json!({"type": "length", "min": min, "max": min + more}) }),
        (0..8_u32).prop_map(|max| json!({"type": "length", "max": max})),
        (0..SCHEMAS.len()).prop_map(|at| {
            let schema: Value = serde_json::from_str(SCHEMAS[at].0).unwrap();
            json!({"type": "schema", "schema": schema})
        }),
    ];
    // A condition that contradicts itself is refused.
    let possible = condition().prop_filter("possible", |condition| {
        serde_json::from_value::<Condition>(condition.clone()).unwrap().can_hold()
    });
    (kind, prop::option::weighted(0.4, possible), "[p-z]{1,3}").prop_map(
        |(mut rule, condition, message)| {
            rule["message"] = json!(message);
            if let Some(condition) = condition {
                rule["condition"] = condition;
            }
            rule
        },
    )
}

/// Rules with anything in them.
pub(crate) fn wild_rule() -> impl Strategy<Value = Value> {
    let piece = prop::sample::select(vec![
        "(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "^", "$", "\\", "\\b", "\\1", "(?=",
        "(?<", "a", "é", ",", "2", "-", ":", "\\p{L}", "\\u{", ".",
    ]);
    let pattern = prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat());
    prop_oneof![
        (pattern, "[imsugyx]{0,2}").prop_map(|(pattern, flags)| {
            json!({"type": "regex", "pattern": pattern, "flags": flags, "message": "matches"})
        }),
        (value(), any::<String>()).prop_map(|(value, name)| {
            json!({"type": "schema", "schema": {"type": value, name: value}, "message": "fits"})
        }),
        ("[a-z]{0,8}", any::<i64>())
            .prop_map(|(kind, min)| { json!({"type": kind, "min": min, "message": "is so"}) }),
        value(),
    ]
}

pub(crate) fn criteria(rule: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let check = rule.prop_recursive(3, 12, 3, |inner| {
        let members = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            members.clone().prop_map(|all| json!({"and": all})),
            members.clone().prop_map(|any| json!({"or": any})),
            inner.clone().prop_map(|member| json!({"not": member})),
            (members, inner).prop_map(|(any, member)| json!({"or": any, "not": member})),
        ]
    });
    let list = prop::collection::vec(check.clone(), 0..4).prop_map(Value::from);
    prop_oneof![check, list]
}

/// Whether the criteria hold, `None` where none of them applies.
pub(crate) fn evaluate_all(criteria: &Value, output: &Output, context: &Context) -> Option<bool> {
    match criteria {
        Value::Array(checks) => all(checks, output, context),
        check => evaluate(check, output, context),
    }
}

fn evaluate(check: &Value, output: &Output, context: &Context) -> Option<bool> {
    if check.get("type").is_some() {
        let condition = check.get("condition").cloned().unwrap_or_default();
        let condition: Option<Condition> = serde_json::from_value(condition).unwrap();
        let applies = condition
            .is_none_or(|c| c.holds(&Variables::new(context, &Budget::for_call())).unwrap());
        return applies.then(|| passes(check, output));
    }
    let parts = [
        check.get("and").and_then(|members| all(members.as_array().unwrap(), output, context)),
        check.get("or").and_then(|members| {
            let members = members.as_array().unwrap().iter();
            let outcomes: Vec<bool> =
                members.filter_map(|m| evaluate(m, output, context)).collect();
            (!outcomes.is_empty()).then(|| outcomes.contains(&true))
        }),
        check.get("not").and_then(|member| evaluate(member, output, context).map(|passes| !passes)),
    ];
    parts.into_iter().flatten().reduce(|left, right| left && right)
}

fn all(checks: &[Value], output: &Output, context: &Context) -> Option<bool> {
    checks.iter().filter_map(|check| evaluate(check, output, context)).reduce(|l, r| l && r)
}

fn passes(rule: &Value, output: &Output) -> bool {
    match rule["type"].as_str().unwrap() {
        "contains" => output.text.contains(rule["value"].as_str().unwrap()),
        "length" => {
            let length = output.text.chars().count() as u64;
            let min = rule.get("min").and_then(Value::as_u64).unwrap_or(0);
            let max = rule.get("max").and_then(Value::as_u64).unwrap_or(u64::MAX);
            (min..=max).contains(&length)
        }
        "regex" => {
            let same =
                |meaning: &&Meaning| meaning.0 == rule["pattern"] && meaning.1 == rule["flags"];
            PATTERNS.iter().find(same).unwrap().2(&output.text)
        }
        "schema" => {
            let same = |meaning: &&SchemaMeaning| {
                serde_json::from_str::<Value>(meaning.0).unwrap() == rule["schema"]
            };
            output.json.as_ref().is_some_and(SCHEMAS.iter().find(same).unwrap().1)
        }
        other => panic!("no rule {other}"),
    }
}

pub(crate) fn collect_messages(criteria: &Value, messages: &mut Vec<String>) {
    match criteria {
        Value::Array(checks) => checks.iter().for_each(|check| collect_messages(check, messages)),
        Value::Object(fields) => {
            messages.extend(fields.get("message").and_then(Value::as_str).map(str::to_owned));
            for inner in ["and", "or", "not"].iter().filter_map(|name| fields.get(*name)) {
                collect_messages(inner, messages);
            }
        }
        _ => {}
    }
}
