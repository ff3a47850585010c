//! `console`: lines that come back with the result.

use std::rc::Rc;

use rquickjs::convert::Coerced;
use rquickjs::function::Rest;
use rquickjs::{Ctx, FromJs as _, Function, Object, Result, String as Text, Type, Value};

use super::failure::text_of;
use super::state::State;
use crate::size::LINE_CHARS_MAX;

/// What programs write with, and how such a line begins.
const METHODS: [(&str, &str); 9] = [
    ("log", ""),
    ("group", ""),
    ("info", ""),
    ("debug", ""),
    ("dir", ""),
    ("table", ""),
    ("trace", ""),
    ("warn", "warn: "),
    ("error", "error: "),
];

/// What there is nothing to show for.
const SILENT: [&str; 7] =
    ["groupEnd", "time", "timeLog", "timeEnd", "count", "countReset", "clear"];

pub(super) fn set<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<()> {
    let console = Object::new(ctx.clone())?;
    for (name, begin) in METHODS {
        let state = Rc::clone(state);
        let write = Function::new(ctx.clone(), move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
            write(&ctx, &state, begin, &values);
        })?;
        console.set(name, write)?;
    }
    let asserting = Rc::clone(state);
    let assert = move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
        let holds = values.first().is_some_and(|value| is_true(value));
        if !holds {
            let rest = values.get(1..).unwrap_or_default();
            write(&ctx, &asserting, "error: assertion failed ", rest);
        }
    };
    console.set("assert", Function::new(ctx.clone(), assert)?)?;
    for name in SILENT {
        console.set(name, Function::new(ctx.clone(), || {})?)?;
    }
    ctx.globals().set("console", console)
}

/// Whether a value is taken for true.
fn is_true(value: &Value<'_>) -> bool {
    match value.type_of() {
        Type::Undefined | Type::Null | Type::Uninitialized => false,
        Type::Bool => value.as_bool() == Some(true),
        Type::Int | Type::Float => value.as_number().is_some_and(|it| it != 0.0 && !it.is_nan()),
        Type::String => value
            .as_string()
            .is_some_and(|text| !text.to_string().is_ok_and(|text| text.is_empty())),
        _ => true,
    }
}

fn write<'js>(ctx: &Ctx<'js>, state: &State, begin: &str, values: &[Value<'js>]) {
    if !state.may_write() {
        return;
    }
    let mut line = begin.to_owned();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        // One more than a line has, for it is cut then.
        match (LINE_CHARS_MAX + 1).saturating_sub(line.chars().count()) {
            0 => break,
            left => line.push_str(&show(ctx, state, value, left)),
        }
    }
    state.line(line);
}

/// A value for people: texts as they are, errors by what they say, others as JSON. Not much longer than `most`.
pub(super) fn show<'js>(ctx: &Ctx<'js>, state: &State, value: &Value<'js>, most: usize) -> String {
    if value.is_undefined() {
        return "undefined".to_owned();
    }
    if value.is_function() {
        return "[function]".to_owned();
    }
    if let Some(number) = value.as_number().filter(|number| !number.is_finite()) {
        return number.to_string().replace("inf", "Infinity");
    }
    if value.as_object().is_some_and(|object| object.is_error()) {
        let part = |name| text_of(ctx, state, value, name);
        return match (part("name"), part("message")) {
            (name, message) if message.is_empty() => name,
            (name, message) => format!("{name}: {message}"),
        };
    }
    let text = match value.as_string() {
        Some(text) => Ok(Some(text.clone())),
        None if value.type_of() == Type::BigInt => {
            Coerced::<Text<'js>>::from_js(ctx, value.clone()).map(|text| Some(text.0))
        }
        None => ctx.json_stringify(value.clone()),
    };
    let text = text.and_then(|text| match text {
        Some(text) => state.language.head(ctx, &text, most).map(Some),
        None => Ok(None),
    });
    match text {
        Ok(Some(text)) => text,
        Ok(None) => format!("[{}]", value.type_name()),
        Err(_) => {
            // What a program throws while it is shown is not shown.
            ctx.catch();
            format!("[{}]", value.type_name())
        }
    }
}
