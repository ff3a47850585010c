//! Conditions against a plain evaluator that reads them as they are written.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};
use workflow::{Budget, Condition, Context, Variables};

use crate::config;
use crate::generate::{NAMES, condition, context, pool};

fn holds(condition: &Condition, context: &Context) -> bool {
    condition.holds(&Variables::new(context, &Budget::for_call())).unwrap()
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn conditions_mean_what_is_written(
        written in condition(NAMES),
        contexts in prop::collection::vec(context(), 8),
    ) {
        let condition: Condition = serde_json::from_value(written.clone()).unwrap();
        for context in contexts {
            let expected = reference(&written, &context);
            prop_assert_eq!(holds(&condition, &context), expected, "{:?}", context);
        }
    }

    #[test]
    fn conditions_are_written_as_they_were_read(written in condition(NAMES)) {
        let condition: Condition = serde_json::from_value(written.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(&condition).unwrap(), written);
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// "Can never hold" and "can never fail" are promises.
    #[test]
    fn what_cannot_be_is_not(written in condition(&["a", "b"])) {
        let condition: Condition = serde_json::from_value(written).unwrap();
        let (can_hold, can_fail) = (condition.can_hold(), condition.can_fail());
        if can_hold && can_fail {
            return Ok(());
        }
        for context in contexts() {
            let holds = holds(&condition, &context);
            prop_assert!(if holds { can_hold } else { can_fail }, "{:?}", context);
        }
    }

    /// The values that are to bring about every outcome do so, as far as one variable goes.
    #[test]
    fn telling_values_tell(written in condition(&["a"])) {
        let condition: Condition = serde_json::from_value(written).unwrap();
        let mut outcomes = [false, false];
        let told = condition.telling_values();
        let values = told.iter().flat_map(|(_, values)| values.clone()).chain([None]);
        for value in values {
            let context = value.map(|value| ("a".to_owned(), value)).into_iter().collect();
            outcomes[usize::from(holds(&condition, &context))] = true;
        }
        for context in contexts() {
            let holds = holds(&condition, &context);
            prop_assert!(outcomes[usize::from(holds)], "{:?} is another outcome", context);
        }
    }
}

/// Every pair of values for `a` and `b`, those between and beside the pool's among them.
fn contexts() -> impl Iterator<Item = Map<String, Value>> {
    let more = [
        json!(1.5),
        json!(-0.5),
        json!(3),
        json!(1.7e308),
        json!(9007199254740991_u64),
        json!("x y"),
        json!("zzz"),
        json!(["y", "z", null]),
        json!({"z": 0}),
    ];
    let values: Vec<Option<Value>> =
        pool().into_iter().chain(more).map(Some).chain([None]).collect();
    let pairs: Vec<_> =
        values.iter().flat_map(|a| values.iter().map(move |b| (a.clone(), b.clone()))).collect();
    pairs.into_iter().map(|(a, b)| {
        let entries = [("a", a), ("b", b)].into_iter();
        entries.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    })
}

fn reference(condition: &Value, context: &Map<String, Value>) -> bool {
    let fields = condition.as_object().unwrap();
    let value = fields.get("var").and_then(|name| look_up(name.as_str().unwrap(), context));
    let value = value.as_ref();
    let is_alone = !fields.keys().any(|name| !["var", "and", "or", "not"].contains(&&**name));
    let mut holds = true;
    for (name, operand) in fields {
        let members = || operand.as_array().unwrap().iter();
        holds &= match name.as_str() {
            "var" if is_alone => match value {
                None | Some(Value::Null | Value::Bool(false)) => false,
                Some(Value::Number(number)) => number.as_f64().unwrap() != 0.0,
                Some(Value::String(text)) => !text.is_empty(),
                Some(_) => true,
            },
            "var" => true,
            "equals" => value.is_some_and(|value| same(value, operand)),
            "not_equals" => !value.is_some_and(|value| same(value, operand)),
            "gt" => order(value, operand).is_some_and(|order| order > 0),
            "gte" => order(value, operand).is_some_and(|order| order >= 0),
            "lt" => order(value, operand).is_some_and(|order| order < 0),
            "lte" => order(value, operand).is_some_and(|order| order <= 0),
            "in" => value.is_some_and(|value| members().any(|member| same(value, member))),
            "contains" => match value {
                Some(Value::String(text)) => {
                    operand.as_str().is_some_and(|part| text.contains(part))
                }
                Some(Value::Array(items)) => items.iter().any(|item| same(item, operand)),
                _ => false,
            },
            "and" => members().all(|member| reference(member, context)),
            "or" => members().any(|member| reference(member, context)),
            "not" => !reference(operand, context),
            other => panic!("unknown operator {other}"),
        };
    }
    holds
}

fn look_up(name: &str, context: &Map<String, Value>) -> Option<Value> {
    if context.contains_key(name) {
        return Some(context[name].clone());
    }
    let mut segments = name.split('.');
    let mut value = context.get(segments.next()?)?.clone();
    let rest: Vec<&str> = segments.collect();
    if rest.is_empty() {
        return None;
    }
    for (at, segment) in rest.iter().enumerate() {
        let is_last = at + 1 == rest.len();
        value = match value {
            Value::Object(fields) if fields.contains_key(*segment) => fields[*segment].clone(),
            Value::Array(items) if *segment == "length" && is_last => json!(items.len()),
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?)?.clone(),
            Value::String(text) if *segment == "length" && is_last => json!(text.chars().count()),
            _ => return None,
        };
    }
    Some(value)
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right) == 0,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && (0..left.len()).all(|at| same(&left[at], &right[at]))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.keys().eq(right.keys()) && left.keys().all(|key| same(&left[key], &right[key]))
        }
        _ => left == right,
    }
}

fn order(value: Option<&Value>, bound: &Value) -> Option<i32> {
    Some(compare(value?.as_number()?, bound.as_number()?))
}

/// Below, at or above zero. Whole numbers exactly, others as floats.
fn compare(left: &Number, right: &Number) -> i32 {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => (left > right) as i32 - (left < right) as i32,
        _ => {
            let (left, right) = (left.as_f64().unwrap(), right.as_f64().unwrap());
            (left > right) as i32 - (left < right) as i32
        }
    }
}
