//! A plausible value of a type: what the schema itself offers (`const`, `enum`, `default`, `examples`), or else one made from
//! its type, format and bounds. Only what must be there is filled in.

use serde_json::{Map, Number, Value, json};

use crate::schema::Node;
use crate::schema::shape::{Object, Type};

/// A value that the schema offers itself is used where it is not longer than this.
const OFFERED_BYTES_MAX: usize = 200;
/// How many items an array is given to have enough.
const ITEMS_MAX: u64 = 5;
/// How long a text is made to be long enough.
const TEXT_CHARS_MAX: usize = 40;

/// A value of the type; `node` is what the schema says about it.
pub(super) fn of(of: &Type<'_>, node: &Node) -> Value {
    if let Some(offered) = offered(node) {
        return offered;
    }
    match of {
        Type::Literal(only) => only.value(),
        Type::Null => Value::Null,
        Type::Boolean => Value::Bool(true),
        Type::Integer => integer(node),
        Type::Number => number(node),
        Type::String => text(node),
        Type::Array(item) => {
            let count =
                node.number("minItems").and_then(Number::as_u64).unwrap_or(1).clamp(1, ITEMS_MAX);
            let inner = node.get("items").unwrap_or(&Node::Null);
            (0..count).map(|_| self::of(item, inner)).collect()
        }
        Type::Tuple(tuple) => {
            let items = tuple.items.iter().take(tuple.required.max(1));
            items.map(|item| self::of(item, &Node::Null)).collect()
        }
        Type::Object(object) => self::object(object),
        Type::Union(members) => {
            // Something rather than nothing, and something short rather than something nested.
            let worth = |member: &&Type<'_>| match member {
                Type::Literal(_) | Type::String | Type::Integer | Type::Number | Type::Boolean => 0,
                Type::Array(_) | Type::Tuple(_) => 1,
                Type::Null | Type::Cut | Type::Unknown | Type::Never => 3,
                _ => 2,
            };
            members.iter().min_by_key(worth).map_or(Value::Null, |member| self::of(member, node))
        }
        Type::Intersection(members) => {
            let objects = members.iter().map(|member| self::of(member, &Node::Null));
            let mut merged = Map::new();
            for object in objects {
                if let Value::Object(fields) = object {
                    merged.extend(fields);
                }
            }
            Value::Object(merged)
        }
        Type::Unknown | Type::Never | Type::Named(_) | Type::Cut => {
            Value::String("text".to_owned())
        }
    }
}

fn object(object: &Object<'_>) -> Value {
    let required = object.properties.iter().filter(|property| property.is_required);
    let fields =
        required.map(|property| (property.name.to_owned(), of(&property.of, property.node)));
    Value::Object(fields.collect())
}

fn offered(node: &Node) -> Option<Value> {
    let offered = [
        node.get("const"),
        node.get("default").filter(|default| **default != Node::Null),
        node.list("examples").first(),
        node.list("enum").first(),
    ];
    let mut values = offered.into_iter().flatten().map(Node::value);
    values.find(|value| value.to_string().len() <= OFFERED_BYTES_MAX)
}

fn integer(node: &Node) -> Value {
    let bound = |keyword: &str| {
        let number = node.number(keyword)?;
        number.as_i64().or_else(|| number.as_f64().map(|float| float as i64))
    };
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum")?.checked_add(1));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum")?.checked_sub(1));
    let value = 1.max(least.unwrap_or(1)).min(most.unwrap_or(i64::MAX));
    let step = bound("multipleOf").filter(|step| *step > 0).unwrap_or(1);
    let below = value - value.rem_euclid(step);
    let above = if below == value { value } else { below.saturating_add(step) };
    json!(if most.is_some_and(|most| above > most) { below } else { above })
}

fn number(node: &Node) -> Value {
    let bound = |keyword: &str| node.number(keyword).and_then(Number::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - 1.0));
    let value = 1.0_f64.max(least.unwrap_or(1.0)).min(most.unwrap_or(f64::MAX));
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

fn text(node: &Node) -> Value {
    let least = node.number("minLength").and_then(Number::as_u64).unwrap_or(0);
    let known = match node.text("format") {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T09:00:00Z",
        Some("time") => "09:00:00Z",
        Some("email") => "name@example.com",
        Some("uri" | "url") => "https://example.com",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        _ => "text",
    };
    let least = usize::try_from(least).unwrap_or(usize::MAX).min(TEXT_CHARS_MAX);
    let most = node.number("maxLength").and_then(Number::as_u64).unwrap_or(u64::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut text = known.to_owned();
    while text.len() < least {
        text.push_str(" text");
    }
    Value::String(text.chars().take(most).collect())
}
