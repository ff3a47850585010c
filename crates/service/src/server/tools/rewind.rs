//! `workflow_rewind`: back to an earlier step, or a copy of the session that begins there.

use engine::Opening;
use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use store::sessions::NewIds;

use super::session_answer::{Answer, about_session, revision_schema, session_id_schema, writing};
use super::tool::handle;
use super::{Tool, ToolCall, arguments, id_schema, refused, view_budget};
use crate::access::Who;
use crate::error::Refusal;
use crate::sessions::{Beginning, Gates, Open, new_id, now, refusal};

const NAME: &str = "workflow_rewind";

pub(super) const TOOL: Tool =
    Tool { waits_for_store: true, ..Tool::new(NAME, about, |it| handle(call(it))) };

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    #[serde(deserialize_with = "arguments::session_id")]
    session_id: String,
    #[serde(deserialize_with = "arguments::revision")]
    revision: u64,
    #[serde(deserialize_with = "arguments::to_step")]
    to_step: String,
    #[serde(deserialize_with = "arguments::reason")]
    reason: String,
    #[serde(default, deserialize_with = "arguments::fork")]
    fork: bool,
}

fn about() -> About {
    about_session(
        "Go back to a step",
        "Goes back to a step that the session has been at, when later work shows that it must be done anew. History is \
         kept; what came after it no longer counts. With fork, a new session begins there instead.",
        writing(false),
        json!({
            "type": "object",
            "properties": {
                "sessionId": session_id_schema(),
                "revision": revision_schema(),
                "toStep": id_schema("A finished step, or the current one"),
                "reason": {"type": "string", "minLength": 1},
                "fork": {"type": "boolean"},
            },
            "required": ["sessionId", "revision", "toStep", "reason"],
            "additionalProperties": false,
        }),
        json!({}),
    )
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let ToolCall { app, who, context, .. } = call;
    if arguments.reason.trim().is_empty() {
        let details = "reason must not be empty".to_owned();
        return Err(Refusal::InvalidParams { details, hint: None });
    }
    let open = app.sessions().seen_by(&who, &arguments.session_id, NAME)?;
    if arguments.fork {
        open.quotas.check_start(&open, &who)?;
    } else {
        let stored_bytes = arguments.reason.len() as u64;
        open.quotas.check_append(&open, &who, &arguments.session_id, stored_bytes)?;
    }
    // It reads the whole log.
    let work = move || rewind(&open, &arguments, &who).unwrap_or_else(|refusal| refused(&refusal));
    Ok(context.run(work).await)
}

fn rewind(open: &Open, arguments: &Arguments, who: &Who) -> Result<Outcome, Refusal> {
    let Arguments { session_id: id, revision, to_step, reason, fork } = arguments;
    let sessions = &open.sessions;
    let session = if *fork {
        // The copy is theirs, and nobody else's.
        let (key, owner) = (Some(fork_key(arguments)), who.owner(open).to_owned());
        let (copy, strict) = (new_id()?, open.gates == Gates::Strict);
        let id_of_copy = copy.clone();
        let new = NewIds { id: copy, owner, key, strict, time: now(), ..NewIds::default() };
        sessions.fork(id, *revision, to_step, reason, new).inspect(|session| {
            let is_new = session.id == id_of_copy;
            if let Some(principal) = who.principal().filter(|_| is_new) {
                open.quotas.measure(open, principal);
            }
            open.tally.begun(if is_new { Beginning::Copied } else { Beginning::Repeated });
        })
    } else {
        sessions.rewind(id, *revision, to_step, reason, now())
    };
    let session = session.map_err(|error| refusal(id, error))?;
    let before = if *fork {
        format!("A copy of session `{id}`, from step `{to_step}` on.")
    } else {
        format!("Back at step `{to_step}`.")
    };
    let answer = Answer::new(open, &session, who, Opening::Reminder, &view_budget())?;
    Ok(answer.outcome(&format!("{before}\n\n"), &()))
}

/// The same call again, after its answer was lost, gets the same copy.
fn fork_key(arguments: &Arguments) -> String {
    let Arguments { session_id, revision, to_step, reason, .. } = arguments;
    let call = json!([session_id, revision, to_step, reason]).to_string();
    let digest = Sha256::digest(call.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("fork:{digest}")
}
