//! The tools, one file each: how it is described, what it takes, what it answers. A tool is a plain
//! function and knows nothing of the protocol's revisions.

use std::borrow::Cow;
use std::sync::Arc;

use engine::{Budget, INPUT_BYTES_MAX, VIEW_STEPS_MAX};
use mcp::content::{Block, Tool};
use mcp::{Caller, Outcome};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use untrusted_text::sanitize;

use crate::access::{Right, Who};
use crate::app::App;
use crate::error::Refusal;
use crate::server::upstreams::Upstreams;
use crate::sessions::Denied;
use mcp::Carried;

mod advance;
mod arguments;
mod call_upstream;
mod capabilities;
mod describe;
mod execute;
pub(crate) mod gate;
mod get;
mod lint;
mod list;
mod misfit;
mod next;
pub(crate) mod recorded_output;
mod rewind;
mod session_answer;
mod start;
pub(crate) mod status;
mod validate;

pub(crate) use execute::NAME as EXECUTE;

/// Who asks, as far as a tool must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// By `tools/call`: long lists come in pages.
    Call,
    /// By the tool's name as a method of its own: always whole.
    Method,
}

pub(crate) fn all() -> Vec<Tool> {
    // The product's first protocol knows four of them, as methods of their own.
    let first = |name, about| Tool { name, is_method: true, about };
    let later = |name, about| Tool { name, is_method: false, about };
    vec![
        first("workflow_list", list::about),
        first("workflow_get", get::about),
        first("workflow_next", next::about),
        first("workflow_validate", validate::about),
        later("workflow_lint", lint::about),
        later(start::NAME, start::about),
        later(advance::NAME, advance::about),
        later(status::NAME, status::about),
        later("workflow_rewind", rewind::about),
    ]
}

/// Those that are there while a registry names other servers.
pub(crate) fn of_upstreams() -> Vec<Tool> {
    let tool = |name, about| Tool { name, is_method: false, about };
    vec![
        tool("list_mcp_capabilities", capabilities::about),
        tool("describe_mcp", describe::about),
        tool(call_upstream::NAME, call_upstream::about),
        tool(execute::NAME, execute::about),
    ]
}

/// The tools that only look. All others need the right to use.
pub(crate) const FOR_ALL: [&str; 6] = [
    "workflow_list",
    "workflow_get",
    "workflow_next",
    "workflow_validate",
    "workflow_lint",
    "workflow_status",
];

pub(crate) fn call(
    app: &App,
    upstreams: &Arc<Upstreams>,
    name: &str,
    arguments: &RawValue,
    asker: Asker,
    caller: Caller,
    who: Who,
) -> Carried {
    if !FOR_ALL.contains(&name) && who.right().is_some_and(|right| right != Right::Use) {
        let about: About<'_> = serde_json::from_str(arguments.get()).unwrap_or_default();
        let audit = app.sessions().audit();
        if let Err(refusal) = who.needs_about(about.session_id.as_deref(), Right::Use, name, audit)
        {
            return refused(&refusal).into();
        }
    }
    match name {
        "workflow_list" => with(name, arguments, |arguments| list::call(app, arguments, asker)),
        "workflow_get" => with(name, arguments, |arguments| get::call(app, arguments)),
        "workflow_next" => with(name, arguments, |arguments| next::call(app, arguments)),
        "workflow_validate" => with(name, arguments, |arguments| validate::call(app, arguments)),
        "workflow_lint" => with(name, arguments, lint::call),
        start::NAME => {
            with(name, arguments, |parsed| start::call(app, parsed, arguments, caller, who))
        }
        advance::NAME => {
            with(name, arguments, |parsed| advance::call(app, parsed, arguments, caller, who))
        }
        status::NAME => with(name, arguments, |arguments| status::call(app, arguments, &who)),
        "workflow_rewind" => with(name, arguments, |arguments| rewind::call(app, arguments, who)),
        "list_mcp_capabilities" => {
            with(name, arguments, |arguments| capabilities::call(upstreams, arguments))
        }
        "describe_mcp" => with(name, arguments, |arguments| describe::call(upstreams, arguments)),
        call_upstream::NAME => with(name, arguments, |parsed| {
            call_upstream::call(app, upstreams, parsed, arguments, caller, who)
        }),
        execute::NAME => with(name, arguments, |parsed| {
            execute::call(app, upstreams, parsed, arguments, caller, who)
        }),
        // The table of tools and this one are the same.
        _ => Outcome::Fault.into(),
    }
}

/// What somebody wants to do something to who may not.
#[derive(Default, Deserialize)]
struct About<'a> {
    #[serde(rename = "sessionId", borrow)]
    session_id: Option<Cow<'a, str>>,
}

/// How much is said of why arguments cannot be read, which may quote a name that is none of theirs.
const DETAILS_BYTES_MAX: usize = 1024;
/// How much of an unknown cursor is repeated.
const CURSOR_BYTES_SHOWN: usize = 64;

fn with<'a, T: Deserialize<'a>, C: Into<Carried>>(
    name: &str,
    arguments: &'a RawValue,
    call: impl FnOnce(T) -> Result<C, Refusal>,
) -> Carried {
    let raw = arguments;
    let arguments = match mcp::params(Some(raw)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let schema = |tools: Vec<Tool>| {
                let tool = tools.into_iter().find(|tool| tool.name == name);
                tool.map(|tool| (tool.about)().input_schema)
            };
            let (own, upstream) = (schema(all()), schema(of_upstreams()));
            // What is too large is not looked at any further.
            let (own, upstream) = match raw.get().len() > INPUT_BYTES_MAX {
                true => (None, None),
                false => (own, upstream),
            };
            let encoded = own.as_ref().or(upstream.as_ref());
            let encoded = encoded.and_then(|schema| misfit::encoded_argument(schema, raw));
            // The tools for upstreams have words of their own for what is often wrong.
            let misfit =
                encoded.or_else(|| upstream.and_then(|schema| misfit::misfit(&schema, raw)));
            let details = error.data.and_then(|data| data["details"].as_str().map(str::to_owned));
            let details = misfit.or(details).unwrap_or_default();
            return bad_arguments(&cut(&details, DETAILS_BYTES_MAX)).into();
        }
    };
    match call(arguments) {
        Ok(carried) => carried.into(),
        Err(refusal) => refused(&refusal).into(),
    }
}

/// Clients show it to people, and it may quote an argument.
fn bad_arguments(details: &str) -> Outcome {
    Outcome::BadArguments(sanitize(details).into_owned())
}

pub(crate) fn refused(refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::InvalidParams { details, .. } => bad_arguments(details),
        Refusal::Session {
            why:
                why
                @ Denied::Engine(engine::Refusal::TooLarge { .. } | engine::Refusal::Reserved { .. }),
            ..
        } => bad_arguments(&why.to_string()),
        Refusal::Engine {
            refusal:
                refusal @ (engine::Refusal::TooLarge { .. }
                | engine::Refusal::Reserved { .. }
                | engine::Refusal::BadVariables { .. }),
            ..
        } => bad_arguments(&refusal.to_string()),
        Refusal::MalformedId { .. } => {
            bad_arguments(&format!("{refusal}; `workflow_list` shows all ids"))
        }
        Refusal::Engine { refusal: engine::Refusal::StepNotFound { step, .. }, .. }
            if !workflow::limits::is_id(step) =>
        {
            let form = "small letters, digits, `-`, `_` and a dot, at least three of them";
            bad_arguments(&format!("`{step}` can be no id: those are {form}"))
        }
        refusal => {
            let object = refusal.to_object();
            let error = mcp::Error::new(object.code, object.message, object.data);
            Outcome::Refused { advice: sanitize(&advice(refusal)).into_owned(), error }
        }
    }
}

/// What the agent should do next, in a sentence or two.
fn advice(refusal: &Refusal) -> String {
    let what = capitalised(&refusal.to_string());
    let next = match refusal {
        Refusal::WorkflowNotFound { nearest: Some(nearest), .. } => {
            format!("Did you mean `{nearest}`? `workflow_list` shows all ids.")
        }
        Refusal::WorkflowNotFound { .. } => "`workflow_list` shows all ids.".to_owned(),
        Refusal::SessionNotFound { .. } => {
            "`workflow_status` without a sessionId shows those that run.".to_owned()
        }
        Refusal::Right { .. } => {
            "Tell your user that another token is needed for it; this one only lets you look."
                .to_owned()
        }
        Refusal::Session { why: Denied::Full, at } => format!(
            "{}. Go on in a copy: workflow_rewind with this revision, toStep the current step and fork true.",
            capitalised(&at.to_string())
        ),
        Refusal::Session { at, .. } => {
            let how = match (&at.step, at.awaits) {
                (None, _) => "There is nothing left to do.",
                (Some(_), Some(_)) => "Tell your user that it waits.",
                (Some(_), None) => "`workflow_status` shows what to do there.",
            };
            format!("{}. {how}", capitalised(&at.to_string()))
        }
        Refusal::Engine {
            refusal:
                refusal @ (engine::Refusal::StepNotFound { steps, .. }
                | engine::Refusal::UnknownCompleted { steps, .. }),
            ..
        } => {
            let meant = refusal.hint().map(|hint| capitalised(&hint) + " ").unwrap_or_default();
            format!("{meant}Its steps are: {}.", steps.join(", "))
        }
        Refusal::Engine { refusal: refusal @ engine::Refusal::BadState { .. }, .. } => {
            let hint = refusal.hint().map(|hint| capitalised(&hint) + ". ").unwrap_or_default();
            format!("{hint}A session, by `workflow_start`, keeps it for you.")
        }
        refusal => refusal.hint().map(|hint| capitalised(&hint) + ".").unwrap_or_default(),
    };
    format!("{what}. {next}").trim_end().to_owned()
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// What every id looks like.
const ID_PATTERN: &str = r"^[a-z0-9_-]+(\.[a-z0-9_-]+)?$";

/// An id in a tool's arguments.
fn id_schema(description: &str) -> Value {
    json!({
        "type": "string",
        "description": description,
        "pattern": ID_PATTERN,
        "minLength": 3,
        "maxLength": 64,
    })
}

/// Reads what may be large as text first, so that no tree is made of what is too large.
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(given: D) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(given)?;
    if raw.get().len() > INPUT_BYTES_MAX {
        return Err(D::Error::custom(format!("it may have {INPUT_BYTES_MAX} bytes")));
    }
    serde_json::from_str(raw.get()).map_err(D::Error::custom)
}

/// Looks at a session here, or on a worker where that takes more than the thread may give that others wait for.
pub(crate) fn look(view: impl Fn(&Budget) -> Outcome + Send + 'static) -> Carried {
    let budget = Budget::for_inline_call();
    let outcome = view(&budget);
    match budget.is_exhausted() {
        true => Carried::Later(Box::new(move || view(&view_budget()))),
        false => outcome.into(),
    }
}

/// What looking at a session may take on a thread that nobody else waits for.
pub(crate) fn view_budget() -> Budget {
    Budget::with_steps(VIEW_STEPS_MAX)
}

/// Whether a call needs more than the thread may give that others wait for.
fn needs_worker(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Engine { refusal: engine::Refusal::Exhausted { .. }, .. })
}

/// The beginning of a text, where it is longer than so many bytes.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(max)]))
}

/// An upstream, in a tool's arguments.
fn server_schema() -> Value {
    json!({"type": "string", "description": "The server's id"})
}

/// An answer of a tool that looks at upstreams: JSON, as text.
fn as_text(answer: &impl Serialize) -> Outcome {
    let text = serde_json::to_string(answer).unwrap_or_default();
    Outcome::Blocks { blocks: vec![Block::text(text)], structured: None, is_error: false }
}

/// How many come before the page that a cursor leads to.
fn skipped(cursor: Option<&str>) -> Result<usize, Refusal> {
    let Some(cursor) = cursor else { return Ok(0) };
    cursor.parse().map_err(|_| bad(format!("unknown cursor `{}`", cut(cursor, CURSOR_BYTES_SHOWN))))
}

fn bad(details: String) -> Refusal {
    Refusal::InvalidParams { details, hint: None }
}

/// A tool that looks at upstreams.
fn looking() -> Value {
    json!({"readOnlyHint": true, "openWorldHint": true})
}

fn read_only() -> Value {
    json!({"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false})
}
