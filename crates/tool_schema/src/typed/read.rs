//! One value from the text that a person typed, by the type that is wanted.

use serde_json::{Number, Value};

use crate::exact::changed_number;
use crate::schema::Node;
use crate::schema::shape::{Tuple, Type};

/// The value, where the text can be one of the type.
pub(super) fn value(of: &Type<'_>, text: &str) -> Option<Value> {
    let members = members(of);
    let has = |wanted: &dyn Fn(&Type<'_>) -> bool| members.iter().any(|member| wanted(member));
    let takes_text = has(&|member| matches!(member, Type::String));
    if let Some(literal) = members.iter().find_map(|member| literal(member, text)) {
        return Some(literal);
    }
    if takes_all(of) {
        return Some(guess(text));
    }
    if text == "null" && has(&|member| matches!(member, Type::Null)) {
        return Some(Value::Null);
    }
    if let ("true" | "false", true) = (text, has(&|member| matches!(member, Type::Boolean))) {
        return Some(Value::Bool(text == "true"));
    }
    if let Some(number) = number(text) {
        // `007` beside a text is a text.
        let is_plain = !takes_text || number.to_string() == text;
        let is_whole =
            !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0);
        let fits = |member: &Type<'_>| match member {
            Type::Number => true,
            Type::Integer => is_whole,
            _ => false,
        };
        if is_plain && has(&fits) {
            return Some(Value::Number(number));
        }
    }
    for member in &members {
        let json = match member {
            Type::Array(_) | Type::Tuple(_) if text.trim_start().starts_with('[') => json(text),
            Type::Object(_) if text.trim_start().starts_with('{') => json(text),
            _ => None,
        };
        if json.is_some() {
            return json;
        }
    }
    if takes_text {
        return Some(Value::String(text.to_owned()));
    }
    members.iter().find_map(|member| match member {
        Type::Array(item) => items(item, text),
        Type::Tuple(of) => tuple(of, text),
        _ => None,
    })
}

/// Whether nobody says what is wanted.
pub(super) fn takes_all(of: &Type<'_>) -> bool {
    members(of).iter().any(|member| matches!(member, Type::Unknown | Type::Cut | Type::Named(_)))
}

/// Whether there is no other way to say it than as an object.
pub(super) fn is_only_object(of: &Type<'_>) -> bool {
    members(of).iter().all(|member| matches!(member, Type::Object(_)))
}

/// The values that are wanted, where there are only a few.
pub(super) fn choices(of: &Type<'_>) -> Vec<String> {
    let literals = members(of).into_iter().filter_map(|member| match member {
        Type::Literal(Node::Text(text)) => Some(text.clone()),
        Type::Literal(node) => Some(node.value().to_string()),
        _ => None,
    });
    literals.collect()
}

/// What it can be, one by one.
fn members<'t, 'a>(of: &'t Type<'a>) -> Vec<&'t Type<'a>> {
    match of {
        Type::Union(members) => members.iter().flat_map(self::members).collect(),
        // All at once: what one of them takes is checked by the others later.
        Type::Intersection(members) => members.iter().flat_map(self::members).collect(),
        other => vec![other],
    }
}

fn literal(of: &Type<'_>, text: &str) -> Option<Value> {
    let Type::Literal(node) = of else { return None };
    let is_it = match node {
        Node::Text(own) => own == text,
        node => json(text).is_some_and(|value| value == node.value()),
    };
    is_it.then(|| node.value())
}

fn number(text: &str) -> Option<Number> {
    // JSON would allow spaces around it.
    let is_number = text.starts_with(|sign: char| sign == '-' || sign.is_ascii_digit());
    let number: Number = serde_json::from_str(text.trim_end()).ok().filter(|_| is_number)?;
    (changed_number(text).is_none() && !text.ends_with(char::is_whitespace)).then_some(number)
}

fn json(text: &str) -> Option<Value> {
    if changed_number(text).is_some() {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Where nobody says what is wanted: JSON if it is plainly that, or else a text.
fn guess(text: &str) -> Value {
    match text {
        "null" => return Value::Null,
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    if let Some(number) = number(text).filter(|number| number.to_string() == text) {
        return Value::Number(number);
    }
    let is_nested = text.starts_with(['[', '{', '"']);
    json(text).filter(|_| is_nested).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn items(item: &Type<'_>, text: &str) -> Option<Value> {
    // What is nested has commas of its own.
    let is_nested = members(item)
        .iter()
        .all(|member| matches!(member, Type::Object(_) | Type::Array(_) | Type::Tuple(_)));
    if is_nested {
        return value(item, text).map(|only| Value::Array(vec![only]));
    }
    let parts = parts(text).into_iter();
    parts.map(|part| value(item, &part)).collect::<Option<Vec<Value>>>().map(Value::Array)
}

fn tuple(of: &Tuple<'_>, text: &str) -> Option<Value> {
    let parts = parts(text);
    let read = parts.iter().enumerate().map(|(at, part)| {
        let item = of.items.get(at).or(of.rest.as_deref())?;
        value(item, part)
    });
    let read: Option<Vec<Value>> = read.collect();
    read.filter(|items| items.len() >= of.required).map(Value::Array)
}

/// Cut at commas; nothing is no part.
fn parts(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![String::new()];
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let escaped = signs.next_if(|next| sign == '\\' && matches!(next, ',' | '\\'));
        match (sign, escaped, parts.last_mut()) {
            (',', None, _) => parts.push(String::new()),
            (sign, escaped, Some(part)) => part.push(escaped.unwrap_or(sign)),
            (_, _, None) => {}
        }
    }
    parts
}
