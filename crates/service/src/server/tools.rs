//! The tools, one file each: how it is described, what it takes, what it answers. A tool is a value whose handler is
//! a plain function, and knows nothing of the protocol's revisions. [`TOOLS`] lists them, and whatever is said of a tool
//! by its name derives from there.

use std::borrow::Cow;

use engine::{Budget, INPUT_BYTES_MAX, VIEW_STEPS_MAX};
use mcp::content::Block;
use mcp::{Call, Outcome};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use transport::Context;
use untrusted_text::sanitize;

use crate::error::Refusal;
use crate::sessions::Denied;

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
mod tool;
mod validate;

pub(crate) use tool::{Asker, LogDetails, Role, Tool, ToolCall};

/// All tools, in the order in which they are listed. Those that need upstreams come last.
pub(crate) static TOOLS: &[Tool] = &[
    list::TOOL,
    get::TOOL,
    next::TOOL,
    validate::TOOL,
    lint::TOOL,
    start::TOOL,
    advance::TOOL,
    status::TOOL,
    rewind::TOOL,
    capabilities::TOOL,
    describe::TOOL,
    call_upstream::TOOL,
    execute::TOOL,
];

pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The tool that a call is of.
pub(crate) fn called(call: &Call) -> Option<&'static Tool> {
    match call {
        Call::Tool { name, .. } => find(name),
        _ => None,
    }
}

/// The tools as `tools/list` has them: those that need upstreams, or all others.
pub(crate) fn listed(needs_upstreams: bool) -> Vec<mcp::content::Tool> {
    let listed = TOOLS.iter().filter(|tool| tool.needs_upstreams == needs_upstreams);
    listed.map(Into::into).collect()
}

/// How much of an unknown cursor is repeated.
const CURSOR_BYTES_SHOWN: usize = 64;

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
pub(crate) async fn look(
    context: &Context,
    view: impl Fn(&Budget) -> Outcome + Send + 'static,
) -> Outcome {
    let budget = Budget::for_inline_call();
    let outcome = view(&budget);
    match budget.is_exhausted() {
        true => context.run(move || view(&view_budget())).await,
        false => outcome,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_have_names_and_strict_schemas_of_their_own() {
        for (at, tool) in TOOLS.iter().enumerate() {
            let name = tool.name;
            let first = TOOLS.iter().position(|other| other.name == name);
            assert_eq!(first, Some(at), "{name} is listed twice");
            let about = (tool.about)();
            assert_eq!(about.input_schema["additionalProperties"], false, "{name}");
            // The hint promises clients what the role promises operators.
            let is_read_only = about.annotations["readOnlyHint"] == true;
            assert!(is_read_only || tool.role == Role::Use, "{name} writes for anyone");
        }
    }
}
