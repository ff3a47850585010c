//! Exceptions of a program as failures, at the agent's own lines.

use rquickjs::object::Property;
use rquickjs::{Ctx, Error, Object, Persistent, Type, Value};

use super::console;
use super::missing;
use super::state::{State, Stop};
use crate::limits::Limits;
use crate::outcome::{Failure, Kind, Place};
use crate::size::{self, FRAMES_MAX, MESSAGE_BYTES_MAX};

/// The property of an error of ours that says what kind it is.
pub(super) const KIND: &str = "kind";

/// What the engine says where there is no room: for anything, not even for saying so, for a text, for a call.
const NO_MEMORY: [(&str, &str); 4] = [
    ("InternalError", "out of memory"),
    ("InternalError", ""),
    ("InternalError", "string too long"),
    ("RangeError", "invalid string length"),
];
const NO_STACK: (&str, &str) = ("RangeError", "Maximum call stack size exceeded");
const NO_FUNCTION: (&str, &str) = ("TypeError", "not a function");
/// And where a module has no such name.
const NO_EXPORT: &str = "Could not find export ";

/// Names that programs often use, and what there is instead.
const ELSEWHERE: [(&str, &str); 24] = [
    ("fetch", NO_NETWORK),
    ("XMLHttpRequest", NO_NETWORK),
    ("WebSocket", NO_NETWORK),
    (
        "require",
        "use import; only `mcp-clients/…`, `workflowlookup` and the program's own files can be imported",
    ),
    ("process", NO_SYSTEM),
    ("Deno", NO_SYSTEM),
    ("Bun", NO_SYSTEM),
    ("fs", NO_SYSTEM),
    ("Buffer", NO_BYTES),
    ("atob", NO_BYTES),
    ("btoa", NO_BYTES),
    ("module", NO_SYSTEM),
    ("window", "use globalThis"),
    ("document", "use globalThis"),
    ("global", "use globalThis"),
    ("structuredClone", "use JSON.parse(JSON.stringify(value))"),
    ("performance", "use Date.now()"),
    ("crypto", "use Math.random()"),
    ("Intl", NO_PLACES),
    ("URL", NO_WEB),
    ("URLSearchParams", NO_WEB),
    ("TextEncoder", NO_WEB),
    ("TextDecoder", NO_WEB),
    ("setImmediate", "use setTimeout or queueMicrotask"),
];
const NO_BYTES: &str = "use Uint8Array, with its toBase64 and fromBase64";
const NO_WEB: &str =
    "there is only the language here, with encodeURIComponent and regular expressions";
const NO_PLACES: &str = "there are no languages and places here; toFixed and padStart may do";
const NO_NETWORK: &str = "there is no network here; call a tool of a server instead";
const NO_SYSTEM: &str =
    "there are no files, processes or variables of a system here; call a tool of a server instead";

/// An error that we have made for the program.
pub(super) struct Made {
    error: Persistent<Object<'static>>,
    kind: Kind,
    /// Where it comes from, if not from where it was made.
    place: Option<Place>,
}

/// Throws an error of ours inside the program.
pub(super) fn throw(ctx: &Ctx<'_>, state: &State, kind: Kind, message: &str) -> Error {
    throw_at(ctx, state, kind, message, None)
}

/// Throws one that belongs to another place.
pub(super) fn throw_at(
    ctx: &Ctx<'_>,
    state: &State,
    kind: Kind,
    message: &str,
    place: Option<Place>,
) -> Error {
    let error = state.language.new_error(ctx);
    match error.and_then(|error| filled(ctx, state, error, kind, message)) {
        Ok(error) => {
            if let Some(made) = state.made.borrow_mut().last_mut() {
                made.place = place;
            }
            ctx.throw(error.into_value())
        }
        Err(error) => error,
    }
}

/// Makes an error of ours of one that was made where it belongs.
pub(super) fn filled<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    error: Object<'js>,
    kind: Kind,
    message: &str,
) -> rquickjs::Result<Object<'js>> {
    // Whatever the program has done to the prototypes.
    let own = |value: &str| Property::from(value.to_owned()).writable().configurable();
    let name = match kind {
        Kind::Arguments => "ArgumentsError",
        Kind::Import => "ImportError",
        _ => "ToolError",
    };
    error.prop("name", own(name))?;
    error.prop("message", own(message))?;
    error.prop(KIND, own(kind.name()))?;
    let made = Made { error: Persistent::save(ctx, error.clone()), kind, place: None };
    state.made.borrow_mut().push(made);
    Ok(error)
}

/// Why a program did not come to its end, before anybody has looked at it.
pub(super) enum Why {
    Failure(Failure),
    /// What it threw.
    Thrown(Persistent<Value<'static>>),
    /// What it threw while its value was written down.
    Unwritten(Persistent<Value<'static>>),
    /// What there was where the engine itself could not go on.
    Broken(Persistent<Value<'static>>),
    Memory,
    /// It waits, and nothing will happen.
    Unsettled,
}

impl Why {
    pub(super) fn of(ctx: &Ctx<'_>, error: &Error) -> Self {
        match error {
            Error::Exception => Self::Thrown(Persistent::save(ctx, ctx.catch())),
            Error::Allocation => Self::Memory,
            // The engine has thrown something, and the binding does not say so.
            _ if ctx.has_exception() => Self::Thrown(Persistent::save(ctx, ctx.catch())),
            error => Self::Failure(Failure::new(Kind::Exception, error.to_string())),
        }
    }

    pub(super) fn told(self, ctx: &Ctx<'_>, state: &State) -> Failure {
        let thrown = |thrown: Persistent<Value<'static>>| match thrown.restore(ctx) {
            Ok(thrown) => of_thrown(ctx, state, &thrown),
            Err(error) => Failure::new(Kind::Exception, error.to_string()),
        };
        match self {
            Self::Failure(failure) => failure,
            Self::Thrown(value) => thrown(value),
            Self::Unwritten(value) => {
                let failure = thrown(value);
                match failure.kind {
                    Kind::Exception => Failure {
                        kind: Kind::Result,
                        message: format!("the program's value is no JSON: {}", failure.message),
                        ..failure
                    },
                    _ => failure,
                }
            }
            Self::Broken(value) => {
                let failure = thrown(value);
                match failure.kind {
                    Kind::Exception => of_memory(&state.limits).at(failure.place),
                    _ => failure,
                }
            }
            Self::Memory => of_memory(&state.limits),
            // What could not be made because there was no room for it settles nothing.
            Self::Unsettled if state.is_full.get() => of_memory(&state.limits),
            Self::Unsettled => Failure::new(
                Kind::Timeout,
                "the program waits for a promise that nothing will settle: no call is under way and no timer is set",
            ),
        }
    }
}

impl Failure {
    /// Of a program that has not begun: what it did not throw is what it says.
    pub(super) fn while_reading(self) -> Self {
        match self.kind {
            Kind::Exception => Self { kind: Kind::Syntax, ..self },
            Kind::Stack => Self {
                message: "the program's text is nested too deep to be read".to_owned(),
                ..self
            },
            _ => self,
        }
    }
}

/// What a thrown value says.
fn of_thrown<'js>(ctx: &Ctx<'js>, state: &State, thrown: &Value<'js>) -> Failure {
    let text = |name| text_of(ctx, state, thrown, name);
    if let Some(failure) = of_stop(state) {
        return failure.at(frames(state, &text("stack")).0);
    }
    let is_nothing = thrown.is_null() && state.is_full.get();
    if is_nothing || thrown.type_of() == Type::Uninitialized {
        // There was no room to make an error.
        return of_memory(&state.limits);
    }
    if thrown.is_null() {
        // Mostly the same, where something was let go since. It cannot be told from the other.
        let memory = size::told(state.limits.memory);
        let message =
            format!("the program needs more than its {memory} of memory, or threw `null`");
        return Failure::new(Kind::Memory, message);
    }
    let Some(object) = thrown.as_object().filter(|object| object.is_error()) else {
        let said = said(ctx, state, thrown);
        return Failure::new(Kind::Exception, format!("the program threw {said}"));
    };
    let (name, message) = (text("name"), text("message"));
    let (place, stack) = frames(state, &text("stack"));
    if NO_MEMORY.contains(&(name.as_str(), message.as_str())) {
        return of_memory(&state.limits).at(place);
    }
    if (name.as_str(), message.as_str()) == NO_STACK {
        let bytes = state.limits.stack;
        let message = format!(
            "the program's calls are nested deeper than its stack of {} allows; look for a recursion without an end",
            size::told(bytes)
        );
        return Failure { stack, ..Failure::new(Kind::Stack, message).at(place) };
    }
    // It may take its time to say something.
    if let Some(failure) = of_stop(state) {
        return failure.at(place);
    }
    // What an error says of itself counts only where we have made it.
    let (kind, elsewhere) = made(ctx, state, object).unwrap_or_else(|| match name.as_str() {
        "SyntaxError" if message.starts_with(NO_EXPORT) => {
            (Kind::Import, imported(state, &message))
        }
        _ => (Kind::Exception, None),
    });
    let message = match kind {
        Kind::Import => missing::export(state, &message).unwrap_or(message),
        Kind::Tool | Kind::Arguments => message,
        _ if (name.as_str(), message.as_str()) == NO_FUNCTION => {
            let callee = own_place(state, &text("stack"))
                .and_then(|(file, line, column)| missing::callee(state, file, line, column));
            with_advice(&name, &callee.unwrap_or(message))
        }
        _ => with_advice(&name, &message),
    };
    Failure { kind, message: size::message(&message), place: elsewhere.or(place), stack }
}

/// What kind of error of ours this is, and where it comes from, if it is one.
fn made<'js>(ctx: &Ctx<'js>, state: &State, error: &Object<'js>) -> Option<(Kind, Option<Place>)> {
    let all = state.made.borrow();
    let is_it = |made: &&Made| made.error.clone().restore(ctx).is_ok_and(|own| own == *error);
    all.iter().find(is_it).map(|made| (made.kind, made.place.clone()))
}

/// Why it was stopped, if it was.
pub(super) fn of_stop(state: &State) -> Option<Failure> {
    let limits = &state.limits;
    let failure = match state.clock.stopped()? {
        Stop::Time => {
            let seconds = limits.time.as_secs_f64();
            let importing = state.importing.borrow();
            if let Some(specifier) = importing.as_deref() {
                let message = format!(
                    "the program did not end within {seconds} s; it waited for `{}` to be there",
                    size::message(specifier)
                );
                let place = state.scripts.import(specifier);
                return Some(Failure::new(Kind::Timeout, message).at(place));
            }
            let waits = match state.pending.borrow().len() {
                0 => String::new(),
                _ if state.was_busy.get() => String::new(),
                1 => "; it waited for a call".to_owned(),
                calls => format!("; it waited for {calls} calls"),
            };
            let message = format!("the program did not end within {seconds} s{waits}");
            Failure::new(Kind::Timeout, message)
        }
        Stop::Cancelled => Failure::new(Kind::Cancelled, "the program was cancelled"),
        Stop::Calls => {
            Failure::new(Kind::Calls, format!("the program made more than {} calls", limits.calls))
        }
        Stop::Memory => of_memory(limits),
        Stop::Lines => Failure::new(
            Kind::Logs,
            format!("the program wrote more than {} lines to its console", limits.lines),
        ),
    };
    Some(failure)
}

pub(super) fn of_memory(limits: &Limits) -> Failure {
    let message =
        format!("the program needs more than its {} of memory", size::told(limits.memory));
    Failure::new(Kind::Memory, message)
}

/// A name that is not there, and what is there instead.
fn with_advice(name: &str, message: &str) -> String {
    let whole = match name {
        "" | "Error" => message.to_owned(),
        name => format!("{name}: {message}"),
    };
    let missing = message.strip_suffix(" is not defined").filter(|_| name == "ReferenceError");
    let advice = missing.and_then(|missing| {
        let missing = missing.trim_matches('\'');
        ELSEWHERE.iter().find(|(name, _)| *name == missing)
    });
    match advice {
        Some((_, advice)) => format!("{whole}; {advice}"),
        None => whole,
    }
}

/// The import that an error of the engine speaks of.
fn imported(state: &State, message: &str) -> Option<Place> {
    let mut names = message.split('\'').skip(1).step_by(2);
    names.find_map(|name| state.scripts.import(name))
}

/// The first place in the agent's files, and all such steps.
fn frames(state: &State, stack: &str) -> (Option<Place>, Option<String>) {
    let mut first = None;
    let mut lines = Vec::new();
    for line in stack.lines() {
        let Some((name, place)) = frame(state, line) else { continue };
        let told = match name {
            "" | "<anonymous>" | "<eval>" => format!("at {place}"),
            name => format!("at {} ({place})", size::message(name)),
        };
        // A recursion is the same step again and again.
        if lines.len() < FRAMES_MAX && lines.last() != Some(&told) {
            lines.push(told);
        }
        first.get_or_insert(place);
    }
    (first, (!lines.is_empty()).then(|| lines.join("\n")))
}

/// A step through the agent's own code. Those through code of ours are left out.
fn frame<'a>(state: &State, line: &'a str) -> Option<(&'a str, Place)> {
    let (name, (file, line, column)) = engines(line)?;
    Some((name, state.scripts.place(file, line, column)?))
}

/// The first place in the agent's files, as the engine counts.
fn own_place<'a>(state: &State, stack: &'a str) -> Option<(&'a str, u32, u32)> {
    let mut places = stack.lines().filter_map(engines).map(|(_, place)| place);
    places.find(|(file, ..)| state.scripts.get(file).is_some())
}

/// `    at name (file:line:column)`, or without the name.
fn engines(line: &str) -> Option<(&str, (&str, u32, u32))> {
    let line = line.trim_start().strip_prefix("at ")?;
    let (name, place) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((name, place)) => (name, place),
        None => ("", line),
    };
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some((name, (parts.next()?, line, column)))
}

/// A property that is a text. A program can put anything there.
pub(super) fn text_of<'js>(
    ctx: &Ctx<'js>,
    state: &State,
    value: &Value<'js>,
    name: &str,
) -> String {
    let Some(object) = value.as_object() else { return String::new() };
    let text = object.get::<_, Value<'js>>(name).and_then(|text| match text.as_string() {
        Some(text) => state.language.head(ctx, text, MESSAGE_BYTES_MAX),
        None => Ok(String::new()),
    });
    text.unwrap_or_else(|_| {
        // What is thrown on the way is not looked at.
        ctx.catch();
        String::new()
    })
}

/// A value that is no error.
fn said<'js>(ctx: &Ctx<'js>, state: &State, value: &Value<'js>) -> String {
    size::message(&console::show(ctx, state, value, MESSAGE_BYTES_MAX))
}
