//! `workflow_start`: begins a session and hands out its first step.

use std::sync::Arc;

use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;
use store::limits::SHARES_MAX;
use store::sessions::{Session, Start};
use workflow::Context;

use super::session_answer::{Answer, about_session, writing};
use super::{Carried, id_schema, refused};
use crate::access::Who;
use crate::app::{self, App};
use crate::error::Refusal;
use crate::sessions::{Beginning, Denied, Gates, Standing, new_id, now, refusal};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    workflow_id: String,
    goal: Option<String>,
    context: Option<Context>,
    key: Option<String>,
    #[serde(default)]
    shared_with: Vec<String>,
}

pub(super) fn about() -> About {
    about_session(
        "Start a session",
        "Starts a session of a workflow and hands you its first step. The session keeps track of everything, checks \
         every output and survives restarts: do the step, then call workflow_advance.",
        writing(false),
        json!({
            "type": "object",
            "properties": {
                "workflowId": id_schema("As workflow_list shows it"),
                "goal": {"type": "string", "description": "What it is for, in the user's words"},
                "context": {
                    "type": "object",
                    "description": "Variables that you know already",
                    "additionalProperties": true,
                },
                "key": {
                    "type": "string",
                    "description": "Of your choice; the same key again returns the same session",
                },
                "sharedWith": {
                    "type": "array",
                    "items": {"type": "string"},
                    "maxItems": SHARES_MAX,
                    "description": "Names of others who may have to do with it, over HTTP",
                },
            },
            "required": ["workflowId"],
            "additionalProperties": false,
        }),
        json!({}),
    )
}

pub(super) fn call(app: &App, arguments: Arguments, who: Who) -> Result<Carried, Refusal> {
    let Arguments { workflow_id, goal, context, key, shared_with } = arguments;
    let open = app.sessions().get()?;
    let (id, owner) = (new_id()?, who.owner(&open).to_owned());
    let (context, strict) = (context.unwrap_or_default(), open.gates == Gates::Strict);
    let (new, shared) = (id.clone(), shared_with.clone());
    let start = Start { id, owner, key, goal, context, shared_with, strict, time: now() };
    let snapshot = app.snapshot();
    app::find(&snapshot, &workflow_id)?;
    Ok(Carried::Told(Box::new(move |finish| {
        // Found a moment ago, in the same snapshot.
        let Ok(workflow) = app::find(&snapshot, &workflow_id) else { return };
        let started = {
            let (workflow_id, open) = (workflow_id.clone(), Arc::clone(&open));
            move |started: Result<Arc<Session>, _>| {
                if let Ok(session) = &started {
                    let is_new = session.id == new;
                    open.tally.begun(if is_new { Beginning::New } else { Beginning::Repeated });
                    if is_new {
                        shared.iter().for_each(|name| open.note_share(&who, &new, name, true));
                    }
                }
                let outcome = started
                    .map_err(|error| refusal(&workflow_id, error))
                    .and_then(|session| outcome(&session, &workflow_id, &who));
                finish.done(outcome.unwrap_or_else(|refusal| refused(&refusal)));
            }
        };
        open.sessions.start_then(workflow, start, Box::new(started));
    })))
}

fn outcome(session: &Session, workflow_id: &str, who: &Who) -> Result<Outcome, Refusal> {
    let own = &session.state.workflow_id;
    if own != workflow_id {
        let (why, at) = (Denied::KeyTaken(own.clone()), Standing::of(session));
        return Err(Refusal::Session { why, at });
    }
    let answer = Answer::of(session, who)?;
    Ok(answer.outcome(&answer.text(), &()))
}
