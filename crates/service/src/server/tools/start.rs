//! `workflow_start`: begins a session and hands out its first step.

use std::sync::Arc;

use engine::{Budget, Opening, near_misses};
use mcp::content::About;
use mcp::{Caller, Outcome};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use store::Usage;
use store::limits::SHARES_MAX;
use store::sessions::{Error, Session, Start};
use transport::Context;

use super::session_answer::{Answer, about_session, noted, reads_outputs, writing};
use super::tool::{SUBMISSION_INLINE_BYTES_MAX, handle};
use super::{LogDetails, Tool, ToolCall, arguments, gate, id_schema, look, refused, view_budget};
use crate::access::Who;
use crate::app;
use crate::error::Refusal;
use crate::sessions::{Beginning, Denied, Gate, Gates, Open, Standing, new_id, now, refusal};

const NAME: &str = "workflow_start";

pub(super) const TOOL: Tool = Tool {
    waits_for_store: true,
    inline_bytes_max: SUBMISSION_INLINE_BYTES_MAX,
    log_details: LogDetails::SessionInAnswer,
    ..Tool::new(NAME, about, |it| handle(call(it)))
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    #[serde(deserialize_with = "arguments::workflow_id")]
    workflow_id: String,
    #[serde(default, deserialize_with = "arguments::goal")]
    goal: Option<String>,
    #[serde(default, deserialize_with = "arguments::context")]
    context: Option<workflow::Context>,
    #[serde(default, deserialize_with = "arguments::key")]
    key: Option<String>,
    #[serde(default, deserialize_with = "arguments::shared_with")]
    shared_with: Vec<String>,
}

fn about() -> About {
    about_session(
        "Start a session",
        "Starts a session of a workflow and returns its first step. The session keeps track of everything, checks \
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

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let arguments: Arguments = call.arguments()?;
    let open = call.app.sessions().get()?;
    // The session has begun, and its user was asked about its first loop.
    if call.caller.answers.is_some() {
        let context = call.context.clone();
        let work = move || {
            let outcome = decided(&open, &arguments.workflow_id, &call);
            outcome.unwrap_or_else(|refusal| refused(&refusal))
        };
        return Ok(context.run(work).await);
    }
    let Arguments { workflow_id, goal, context, key, shared_with } = arguments;
    let ToolCall { app, raw, caller, who, context: here, .. } = call;
    open.quotas.check_start(&open, &who)?;
    let stored_bytes = raw.get().len() as u64;
    let (id, owner) = (new_id()?, who.owner(&open).to_owned());
    let (context, strict) = (context.unwrap_or_default(), open.gates == Gates::Strict);
    let snapshot = app.snapshot();
    let overrides = app::overridden(&snapshot, app::find(&snapshot, &workflow_id)?);
    let note = {
        let (open, who) = (Arc::clone(&open), who.clone());
        let (new, shared) = (id.clone(), shared_with.clone());
        move |session: &Arc<Session>| note_begun(&open, &who, session, &new, &shared, stored_bytes)
    };
    let new = id.clone();
    let start = Start { id, owner, key, goal, context, shared_with, strict, time: now() };
    let started = {
        let workflow = app::find(&snapshot, &workflow_id)?;
        open.sessions.start_async(workflow, start.clone(), note.clone()).await
    };
    let starting = Starting { open, workflow_id, raw, caller, who, new, overrides };
    if !matches!(started, Err(Error::Overtaken)) {
        return Ok(starting.answer(started, &here).await);
    }
    // Deciding takes a thread's time.
    let again = move |context| {
        handle(async move {
            let workflow = app::find(&snapshot, &starting.workflow_id)?;
            let started = starting.open.sessions.start(workflow, start).inspect(note);
            Ok(starting.answer(started, &context).await)
        })
    };
    Ok(here.run_call(again).await)
}

/// What becomes of a session once its user has answered whether its first loop shall begin.
fn decided(open: &Open, workflow_id: &str, call: &ToolCall) -> Result<Outcome, Refusal> {
    let ToolCall { app, raw, caller, who, .. } = call;
    let snapshot = app.snapshot();
    let id = match gate::decide_start(open, raw, caller, who) {
        Ok(id) => id,
        Err(outcome) => return Ok(outcome),
    };
    let workflow = app::find(&snapshot, workflow_id).ok();
    let overrides = workflow.and_then(|workflow| app::overridden(&snapshot, workflow));
    let session = open.sessions.open(&id).map_err(|error| refusal(&id, error))?;
    outcome(open, &session, workflow_id, who, overrides, &view_budget())
}

/// A session on its way, with everything that is needed to answer.
struct Starting {
    open: Arc<Open>,
    workflow_id: String,
    raw: Box<RawValue>,
    caller: Caller,
    who: Who,
    /// The session's id, unless one was begun with the same key.
    new: String,
    overrides: Option<&'static str>,
}

impl Starting {
    async fn answer(self, started: Result<Arc<Session>, Error>, context: &Context) -> Outcome {
        let Self { open, workflow_id, raw, caller, who, new, overrides } = self;
        let session = match started {
            Ok(session) => session,
            Err(error) => return refused(&refusal(&workflow_id, error)),
        };
        if should_ask(&open, &session, &workflow_id, &caller) {
            return look(context, move |budget| ask(&open, &session, &raw, &caller, budget)).await;
        }
        let overrides = overrides.filter(|_| session.id == new);
        let is_long = reads_outputs(&session);
        let answer = move |budget: &Budget| {
            let outcome = outcome(&open, &session, &workflow_id, &who, overrides, budget);
            outcome.unwrap_or_else(|refusal| refused(&refusal))
        };
        match is_long {
            true => context.run(move || answer(&view_budget())).await,
            false => look(context, answer).await,
        }
    }
}

/// Counts a session that was begun, or found by its key, and writes down whom a new one is shared with.
fn note_begun(
    open: &Open,
    who: &Who,
    session: &Session,
    new: &str,
    shared: &[String],
    stored_bytes: u64,
) {
    if session.id != new {
        return open.tally.begun(Beginning::Repeated);
    }
    open.tally.begun(Beginning::New);
    if let Some(principal) = who.principal() {
        open.quotas.add(principal, Usage { open_sessions: 1, stored_bytes });
    }
    shared.iter().for_each(|name| open.note_share(who, new, name, true));
}

fn outcome(
    open: &Open,
    session: &Session,
    workflow_id: &str,
    who: &Who,
    overrides: Option<&str>,
    budget: &Budget,
) -> Result<Outcome, Refusal> {
    let own = &session.state.workflow_id;
    if own != workflow_id {
        let (why, at) = (Denied::KeyTaken(own.clone()), Standing::of(session));
        return Err(Refusal::Session { why, at });
    }
    let answer = Answer::new(open, session, who, Opening::Full, budget)?;
    let mut notes = near_misses(&session.workflow, &session.state.context);
    let Some(whose) = overrides else { return Ok(answer.outcome(&noted(&notes), &())) };
    notes.push(format!("this `{workflow_id}` overrides the {whose} workflow of the same id"));
    Ok(answer.outcome(&noted(&notes), &json!({"overrides": whose})))
}

/// Whether the session waits before its first step, and the client's user may decide.
fn should_ask(open: &Open, session: &Session, workflow_id: &str, caller: &Caller) -> bool {
    let state = &session.state;
    let is_fresh =
        state.workflow_id == workflow_id && state.revision == 0 && state.loop_gate.is_some();
    is_fresh && caller.abilities.forms && !open.is_strict(session)
}

fn ask(
    open: &Open,
    session: &Session,
    raw: &RawValue,
    caller: &Caller,
    budget: &Budget,
) -> Outcome {
    let gate = Gate { session: &session.id, revision: 0, call: raw.get() };
    let subject = gate::Subject { session, output: None };
    gate::ask_about(open, caller, NAME, raw, gate, subject, budget)
}
