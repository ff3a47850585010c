//! The value of a program, as JSON.

use rquickjs::{Ctx, Persistent, Value};
use serde_json::value::RawValue;

use super::failure::Why;
use super::state::State;
use crate::outcome::{Failure, Kind};
use crate::size;

/// So many parts of a result are looked at.
const PARTS_MAX: usize = 1_000;

/// Whether a part of a result is a promise, which nobody wants to have there.
pub(super) fn has_promise<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> bool {
    let is_promise = |part: rquickjs::Result<Value<'js>>| match part {
        Ok(part) => part.is_promise(),
        Err(_) => {
            // What is thrown on the way is thrown again when it is written down.
            ctx.catch();
            false
        }
    };
    if let Some(items) = value.as_array() {
        return items.iter().take(PARTS_MAX).any(is_promise);
    }
    let Some(object) = value.as_object() else { return false };
    let parts = object.props::<Value<'js>, Value<'js>>().take(PARTS_MAX);
    parts.map(|part| part.map(|(_, part)| part)).any(is_promise)
}

/// Functions and such are no result.
pub(super) fn written(
    ctx: &Ctx<'_>,
    state: &State,
    value: Persistent<Value<'static>>,
) -> Result<Option<Box<RawValue>>, Why> {
    let failed = |error: rquickjs::Error| match Why::of(ctx, &error) {
        Why::Thrown(thrown) => Why::Unwritten(thrown),
        why => why,
    };
    let value = value.restore(ctx).map_err(failed)?;
    let is_function = value.is_function();
    let script = state.scripts.get(state.scripts.entrypoint());
    let is_lost =
        value.is_undefined() && script.is_some_and(|script| script.calls_main && script.has_value);
    let json = ctx.json_stringify(value.clone()).map_err(failed)?;
    if is_function {
        state.note("the program's value is a function, which is no JSON");
    }
    if is_lost {
        state.note("the program calls `main` itself, and its last expression has no value");
    }
    let Some(json) = json else { return Ok(None) };
    // Before it is copied: it can be as large as the program's memory.
    let length = state.language.length(ctx, &json).map_err(failed)?;
    if length > state.limits.result {
        return Err(Why::Failure(size::too_large(length, &state.limits)));
    }
    let json = json.to_string().map_err(failed)?;
    let broken = |error: serde_json::Error| Failure::new(Kind::Result, error.to_string());
    let json = RawValue::from_string(json).map_err(broken).map_err(Why::Failure)?;
    size::check_result(&json, &state.limits).map_err(Why::Failure)?;
    // Only where one may be: looking at a value can be something that the program notices.
    if json.get().contains("{}") && has_promise(ctx, &value) {
        state.note("a promise in the result was not awaited, and is `{}`");
    }
    Ok(Some(json))
}
