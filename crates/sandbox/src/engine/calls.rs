//! Functions outside of the program: each call is a promise that the other side's answer settles.

use std::rc::Rc;

use rquickjs::object::Property;
use rquickjs::prelude::Rest;
use rquickjs::{CatchResultExt as _, Ctx, Function, Object, Persistent, Result, Type, Value};
use serde_json::value::RawValue;

use super::failure::{filled, text_of, throw};
use super::state::State;
use crate::border::{Answer, Out, Thrown};
use crate::outcome::Kind;
use crate::size;

/// A call under way.
pub(super) struct Pending {
    resolve: Persistent<Function<'static>>,
    reject: Persistent<Function<'static>>,
    /// Made where the call was, for the case that it fails.
    error: Persistent<Object<'static>>,
    /// Of what it was called with.
    pub(super) bytes: usize,
}

/// What makes the functions of a module, by their names. They are the engine's own kind: a call has one step less to remember.
pub(super) fn maker<'js>(ctx: &Ctx<'js>, state: &Rc<State>, module: &str) -> Result<Function<'js>> {
    let (state, module) = (Rc::clone(state), Rc::<str>::from(module));
    Function::new(ctx.clone(), move |ctx: Ctx<'js>, name: String| {
        let (state, module, own) = (Rc::clone(&state), Rc::clone(&module), name.clone());
        let function = Function::new(ctx, move |ctx: Ctx<'js>, Rest(given): Rest<Value<'js>>| {
            call(&ctx, &state, &module, &own, &given)
        })?;
        function.with_name(name)
    })
}

fn call<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    module: &str,
    function: &str,
    given: &[Value<'js>],
) -> Result<Value<'js>> {
    let error = state.language.new_error(ctx)?;
    let (promise, resolve, reject) = ctx.promise()?;
    let arguments = match arguments(ctx, state, function, given) {
        Ok(arguments) => arguments,
        Err(Unusable::Said(message)) => {
            let error = filled(ctx, state, error, Kind::Arguments, &message)?;
            reject.call::<_, ()>((error,))?;
            return Ok(promise.into_value());
        }
        Err(Unusable::Thrown(thrown)) => {
            reject.call::<_, ()>((thrown,))?;
            return Ok(promise.into_value());
        }
        Err(Unusable::Engine(error)) => return Err(error),
    };
    let bytes = arguments.get().len();
    let Some(id) = state.next_call(bytes) else {
        // It stops, whatever it catches.
        return Err(throw(ctx, state, Kind::Calls, "no more calls"));
    };
    let pending = Pending {
        resolve: Persistent::save(ctx, resolve),
        reject: Persistent::save(ctx, reject),
        error: Persistent::save(ctx, error),
        bytes,
    };
    state.pending.borrow_mut().insert(id, pending);
    state.send(Out::Call {
        id,
        module: module.to_owned(),
        function: function.to_owned(),
        arguments,
    });
    Ok(promise.into_value())
}

/// Why something is no object that a tool takes.
enum Unusable<'js> {
    /// In our words.
    Said(String),
    /// The program threw this while it was looked at.
    Thrown(Value<'js>),
    Engine(rquickjs::Error),
}

/// The one object that a tool takes, as JSON.
fn arguments<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    function: &str,
    given: &[Value<'js>],
) -> std::result::Result<Box<RawValue>, Unusable<'js>> {
    let how = || {
        let how = format!("`{function}` takes one object, as in {function}({{ name: value }})");
        Unusable::Said(how)
    };
    let broken = |error: serde_json::Error| Unusable::Said(error.to_string());
    let value = match given {
        [] => Value::new_undefined(ctx.clone()),
        [only] => only.clone(),
        _ => return Err(how()),
    };
    if value.is_undefined() {
        return RawValue::from_string("{}".to_owned()).map_err(broken);
    }
    if !value.is_object() || value.is_array() || value.is_function() {
        return Err(how());
    }
    let json = ctx.json_stringify(value);
    let json = json.and_then(|json| json.map(|json| json.to_string()).transpose());
    let json = match json {
        Ok(Some(json)) if json.starts_with('{') => json,
        Ok(_) => return Err(how()),
        Err(error) => return Err(unusable(ctx, state, function, error)),
    };
    let json = RawValue::from_string(json).map_err(broken)?;
    match size::is_readable(&json) {
        true => Ok(json),
        false => {
            let message = format!("what `{function}` was called with is nested too deep");
            Err(Unusable::Said(message))
        }
    }
}

fn unusable<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    function: &str,
    error: rquickjs::Error,
) -> Unusable<'js> {
    if !ctx.has_exception() {
        return Unusable::Engine(error);
    }
    let thrown = ctx.catch();
    // Values that have no JSON, and values that have themselves in them.
    if text_of(ctx, state, &thrown, "name") == "TypeError" {
        let said = text_of(ctx, state, &thrown, "message");
        return Unusable::Said(format!("what `{function}` was called with is no JSON: {said}"));
    }
    match thrown.type_of() {
        // There was no room to make an error.
        Type::Uninitialized => Unusable::Engine(rquickjs::Error::Allocation),
        _ => Unusable::Thrown(thrown),
    }
}

/// Settles the call of this number.
pub(super) fn answer(ctx: &Ctx<'_>, state: &State, id: u64, answer: Answer) -> Result<()> {
    let Some(pending) = state.answered(id) else { return Ok(()) };
    let Pending { resolve, reject, error, bytes: _ } = pending;
    match answer {
        Ok(json) => match ctx.json_parse(json.get()).catch(ctx) {
            Ok(value) => resolve.restore(ctx)?.call((value,)),
            // There is no room for it.
            Err(error) => {
                let error = error.throw(ctx);
                let thrown = if error.is_exception() { ctx.catch() } else { return Err(error) };
                reject.restore(ctx)?.call((thrown,))
            }
        },
        Err(Thrown { kind, message, data }) => {
            let error = filled(ctx, state, error.restore(ctx)?, kind, &message)?;
            if let Some(data) = data {
                let data = ctx.json_parse(data.as_str())?;
                error.prop("data", Property::from(data).writable().configurable())?;
            }
            reject.restore(ctx)?.call((error,))
        }
    }
}
