//! Sessions as resources: `session://{id}` by template, and the running ones that the caller has to do with in the list.

use engine::Budget;
use mcp::Outcome;
use mcp::content::{Held, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use transport::Context;
use untrusted_text::sanitize;

use super::tools::{look, recorded_output, status, view_budget};
use crate::access::{OpenSessions, Who};
use crate::app::App;
use crate::error::Refusal;
use crate::sessions::from_store;
use crate::words::one_line;

pub(super) const SCHEME: &str = "session://";
/// Between the id of a session and the step whose output is read.
const OUTPUTS: &str = "/outputs/";
const JSON: &str = "application/json";
/// How many open sessions the list shows of the caller's own, and how many of those that are shared with them.
const LISTED_MAX: usize = 50;
/// How much of a goal, and of an owner's name.
const GOAL_BYTES_MAX: usize = 200;
const OWNER_CHARS_MAX: usize = 100;

pub(crate) fn uri(id: &str) -> String {
    format!("{SCHEME}{id}")
}

pub(super) fn templates() -> [ResourceTemplate; 2] {
    let template = |path: &str, name: &str, title: &str, description: &str| ResourceTemplate {
        uri_template: format!("{SCHEME}{path}"),
        name: name.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        mime_type: JSON,
    };
    [
        template(
            "{id}",
            "session",
            "Session",
            "Where a session stands and what its finished steps produced, by its id",
        ),
        template(
            "{id}/outputs/{stepId}{?iteration,attempt,offset}",
            "session-output",
            "Output of a session's step",
            "A whole output, in pages of 16 KiB",
        ),
    ]
}

/// The caller's open sessions, and behind them those that others share. If they cannot be read, the rest of the list is still
/// good.
pub(super) fn list(app: &App, who: &Who) -> Vec<Resource> {
    let OpenSessions { own, shared } =
        open_sessions(app, who, LISTED_MAX).unwrap_or_else(|refusal| {
            tracing::warn!("sessions cannot be listed: {refusal}");
            OpenSessions::default()
        });
    let own = own.sessions.into_iter().map(|meta| resource(meta, ""));
    let shared = shared.sessions.into_iter().map(|meta| {
        let by = format!(", shared by {}", one_line(&meta.owner, OWNER_CHARS_MAX));
        resource(meta, &by)
    });
    own.chain(shared).collect()
}

/// People pick one from a list of these.
fn resource(meta: store::Meta, by: &str) -> Resource {
    let at = meta.head.step.map(|step| format!(", step `{step}`")).unwrap_or_default();
    let goal = if meta.goal.is_empty() { "no goal was given" } else { &meta.goal };
    Resource {
        uri: uri(&meta.id),
        title: sanitize(&format!("Session of {}{at}{by}", meta.workflow)).into_owned(),
        description: sanitize(&super::tools::cut(goal, GOAL_BYTES_MAX)).into_owned(),
        name: meta.id,
        mime_type: JSON,
    }
}

fn open_sessions(app: &App, who: &Who, limit: usize) -> Result<OpenSessions, Refusal> {
    let Some(open) = app.sessions().get_if_any()? else { return Ok(OpenSessions::default()) };
    open.open_sessions(who, limit).map_err(|error| from_store(&error))
}

pub(super) async fn read(app: App, who: Who, uri: String, context: &Context) -> Outcome {
    if uri.contains(OUTPUTS) {
        // It may read the whole log.
        return context.run(move || read_within(&app, &who, uri, &view_budget())).await;
    }
    look(context, move |budget| read_within(&app, &who, uri.clone(), budget)).await
}

fn read_within(app: &App, who: &Who, uri: String, budget: &Budget) -> Outcome {
    let path = uri.strip_prefix(SCHEME).unwrap_or_default();
    let (id, output) = match path.split_once(OUTPUTS) {
        None => (path, None),
        Some((id, rest)) => match recorded_output::from_uri(rest) {
            Some(query) => (id, Some(query)),
            None => return Outcome::NoResource { uri },
        },
    };
    let open = match app.sessions().seen_by(who, id, "resources/read") {
        Ok(open) => open,
        Err(Refusal::SessionNotFound { .. }) => return Outcome::NoResource { uri },
        Err(refusal) => return fault(&refusal),
    };
    let session = match open.sessions.open(id) {
        Ok(session) => session,
        Err(store::sessions::Error::NotFound) => return Outcome::NoResource { uri },
        Err(error) => return fault(&crate::sessions::refusal(id, error)),
    };
    let text = match output {
        None => status::resource(&open, who, &session, budget),
        Some(query) => recorded_output::read(&open, &session, &query).map(|page| page.json()),
    };
    match text {
        Err(Refusal::InvalidParams { .. }) => Outcome::NoResource { uri },
        Ok(text) => {
            let contents = ResourceContents { uri, mime_type: JSON, held: Held::Text(text) };
            Outcome::Resource { contents, is_live: true }
        }
        Err(refusal) => fault(&refusal),
    }
}

/// Ids of open sessions that begin with what is typed, the caller's own first.
pub(super) fn complete(app: &App, who: &Who, typed: &str, max: usize) -> Outcome {
    let OpenSessions { own, shared } =
        open_sessions(app, who, store::limits::PAGE_MAX).unwrap_or_default();
    let found = own.sessions.into_iter().chain(shared.sessions);
    let mut values: Vec<String> =
        found.map(|meta| meta.id).filter(|id| id.starts_with(typed)).collect();
    let total = values.len();
    values.truncate(max);
    Outcome::Completion { values, total }
}

/// Whoever may try again hears so. A resource has no way to say anything else.
fn fault(refusal: &Refusal) -> Outcome {
    tracing::error!("a session cannot be read: {refusal}");
    let Refusal::Store { details, hint } = refusal else { return Outcome::Fault };
    let advice = match hint {
        Some(hint) => format!("{details}; {hint}"),
        None => details.clone(),
    };
    let (code, message) = refusal.code();
    let error = mcp::Error::new(code, message, json!({"details": advice}));
    Outcome::Refused { advice, error }
}
