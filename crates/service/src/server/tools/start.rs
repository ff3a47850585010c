//! `workflow_start`: begins a session and hands out its first step.

use std::sync::Arc;

use mcp::content::About;
use mcp::{Caller, Outcome};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use store::Usage;
use store::limits::SHARES_MAX;
use store::sessions::{Session, Start};
use workflow::Context;

use super::session_answer::{Answer, about_session, writing};
use super::{Carried, bounded, gate, id_schema, refused};
use crate::access::Who;
use crate::app::{self, App};
use crate::error::Refusal;
use crate::sessions::{Beginning, Denied, Gate, Gates, Open, Standing, new_id, now, refusal};

pub(super) const NAME: &str = "workflow_start";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    workflow_id: String,
    goal: Option<String>,
    #[serde(default, deserialize_with = "bounded")]
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

pub(super) fn call(
    app: &App,
    arguments: Arguments,
    raw: &RawValue,
    caller: Caller,
    who: Who,
) -> Result<Carried, Refusal> {
    let Arguments { workflow_id, goal, context, key, shared_with } = arguments;
    let open = app.sessions().get()?;
    let raw = raw.to_owned();
    // The session has begun, and its user was asked about its first loop.
    if let Some(answers) = caller.answers.clone() {
        let snapshot = app.snapshot();
        return Ok(Carried::Later(Box::new(move || {
            let id = match gate::decide_start(&open, &raw, &answers, &caller, &who) {
                Ok(id) => id,
                Err(outcome) => return outcome,
            };
            let workflow = app::find(&snapshot, &workflow_id).ok();
            let overrides = workflow.and_then(|workflow| app::overridden(&snapshot, workflow));
            let session = open.sessions.open(&id).map_err(|error| refusal(&id, error));
            let outcome =
                session.and_then(|session| outcome(&session, &workflow_id, &who, overrides));
            outcome.unwrap_or_else(|refusal| refused(&refusal))
        })));
    }
    open.quotas.check_start(&open, &who)?;
    let stored_bytes = raw.get().len() as u64;
    let (id, owner) = (new_id()?, who.owner(&open).to_owned());
    let (context, strict) = (context.unwrap_or_default(), open.gates == Gates::Strict);
    let (new, shared) = (id.clone(), shared_with.clone());
    let start = Start { id, owner, key, goal, context, shared_with, strict, time: now() };
    let snapshot = app.snapshot();
    app::find(&snapshot, &workflow_id)?;
    Ok(Carried::Told(Box::new(move |finish| {
        // Found a moment ago, in the same snapshot.
        let Ok(workflow) = app::find(&snapshot, &workflow_id) else { return };
        let overrides = app::overridden(&snapshot, workflow);
        let started = {
            let (workflow_id, open) = (workflow_id.clone(), Arc::clone(&open));
            move |started: Result<Arc<Session>, _>| {
                if let Ok(session) = &started {
                    let is_new = session.id == new;
                    open.tally.begun(if is_new { Beginning::New } else { Beginning::Repeated });
                    if is_new {
                        if let Some(principal) = who.principal() {
                            open.quotas.add(principal, Usage { open_sessions: 1, stored_bytes });
                        }
                        shared.iter().for_each(|name| open.note_share(&who, &new, name, true));
                    }
                }
                let outcome =
                    started.map_err(|error| refusal(&workflow_id, error)).and_then(|session| {
                        let overrides = overrides.filter(|_| session.id == new);
                        match should_ask(&open, &session, &workflow_id, &caller) {
                            true => Ok(ask(&open, &session, &raw, &caller)),
                            false => outcome(&session, &workflow_id, &who, overrides),
                        }
                    });
                finish.done(outcome.unwrap_or_else(|refusal| refused(&refusal)));
            }
        };
        open.sessions.start_then(workflow, start, Box::new(started));
    })))
}

fn outcome(
    session: &Session,
    workflow_id: &str,
    who: &Who,
    overrides: Option<&str>,
) -> Result<Outcome, Refusal> {
    let own = &session.state.workflow_id;
    if own != workflow_id {
        let (why, at) = (Denied::KeyTaken(own.clone()), Standing::of(session));
        return Err(Refusal::Session { why, at });
    }
    let answer = Answer::of(session, who)?;
    let Some(whose) = overrides else { return Ok(answer.outcome(&answer.text(), &())) };
    let text = format!(
        "{}\n\nNote: this `{workflow_id}` overrides the {whose} workflow of the same id.",
        answer.text()
    );
    Ok(answer.outcome(&text, &json!({"overrides": whose})))
}

/// Whether the session waits before its first step, and the client's user may decide.
fn should_ask(open: &Open, session: &Session, workflow_id: &str, caller: &Caller) -> bool {
    let state = &session.state;
    let is_fresh =
        state.workflow_id == workflow_id && state.revision == 0 && state.loop_gate.is_some();
    is_fresh && caller.abilities.forms && !open.is_strict(session)
}

fn ask(open: &Open, session: &Session, raw: &RawValue, caller: &Caller) -> Outcome {
    let gate = Gate { session: &session.id, revision: 0, call: raw.get() };
    gate::ask_about(open, caller, NAME, raw, gate, session, None)
}
