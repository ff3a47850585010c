//! `workflow_start`: begins a session and hands out its first step.

use std::sync::Arc;

use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::json;
use store::sessions::{Session, Start};
use workflow::Context;

use super::session_answer::{Answer, about_session, writing};
use super::{Carried, id_schema, refused};
use crate::app::{self, App};
use crate::error::Refusal;
use crate::sessions::{Beginning, Denied, Standing, new_id, now, refusal};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    workflow_id: String,
    goal: Option<String>,
    context: Option<Context>,
    key: Option<String>,
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
            },
            "required": ["workflowId"],
            "additionalProperties": false,
        }),
        json!({}),
    )
}

pub(super) fn call(app: &App, arguments: Arguments) -> Result<Carried, Refusal> {
    let Arguments { workflow_id, goal, context, key } = arguments;
    let open = app.sessions().get()?;
    let (id, owner, context) = (new_id()?, open.user.clone(), context.unwrap_or_default());
    let start = Start { id, owner, key, goal, context, time: now() };
    let snapshot = app.snapshot();
    app::find(&snapshot, &workflow_id)?;
    Ok(Carried::Told(Box::new(move |finish| {
        // Found a moment ago, in the same snapshot.
        let Ok(workflow) = app::find(&snapshot, &workflow_id) else { return };
        let started = {
            let (workflow_id, id) = (workflow_id.clone(), start.id.clone());
            let tally = Arc::clone(&open.tally);
            move |started: Result<Arc<Session>, _>| {
                if let Ok(session) = &started {
                    let is_new = session.id == id;
                    tally.begun(if is_new { Beginning::New } else { Beginning::Repeated });
                }
                let outcome = started
                    .map_err(|error| refusal(&workflow_id, error))
                    .and_then(|session| outcome(&session, &workflow_id));
                finish.done(outcome.unwrap_or_else(|refusal| refused(&refusal)));
            }
        };
        open.sessions.start_then(workflow, start, Box::new(started));
    })))
}

fn outcome(session: &Session, workflow_id: &str) -> Result<Outcome, Refusal> {
    let own = &session.state.workflow_id;
    if own != workflow_id {
        let (why, at) = (Denied::KeyTaken(own.clone()), Standing::of(session));
        return Err(Refusal::Session { why, at });
    }
    let answer = Answer::of(session)?;
    Ok(answer.outcome(&answer.text(), &()))
}
