//! `workflow_status`: everything that an agent needs to go on with a session, or which sessions there are.

use std::borrow::Cow;

use engine::{Budget, ImportOrigin, LoopState, Opening};
use mcp::Outcome;
use mcp::content::About;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Meta;
use store::sessions::{Session, Summary};
use untrusted_text::sanitize;
use workflow::Context;

use super::advance::complaints;
use super::recorded_output::{self, OutputQuery};
use super::session_answer::{Answer, about_session, reads_outputs, session_id_schema};
use super::tool::handle;
use super::{
    Role, Tool, ToolCall, arguments, cut, id_schema, look, read_only, refused, view_budget,
};
use crate::access::{OpenSessions, SessionList, Who};
use crate::error::Refusal;
use crate::sessions::{Open, from_store, refusal, time_text};
use crate::words::one_line;

const NAME: &str = "workflow_status";

pub(super) const TOOL: Tool = Tool {
    role: Role::Anyone,
    waits_for_store: true,
    ..Tool::new(NAME, about, |it| handle(call(it)))
};

/// How many finished steps are summed up, and how much of each output is shown.
const STEPS_MAX: usize = 30;
const OUTPUT_BYTES_MAX: usize = 400;
/// How much of an output that waits for a person.
const WAITING_BYTES_MAX: usize = 8 * 1024;
/// How much of a goal is shown, and of a context variable as JSON.
const GOAL_BYTES_MAX: usize = 2_000;
const VARIABLE_BYTES_MAX: usize = 400;
const VARIABLES_MAX: usize = 50;
/// How much of a goal is shown in a list, and of an owner's name.
const GOAL_CHARS_MAX: usize = 200;
const OWNER_CHARS_MAX: usize = 100;
/// How much of a title, which may quote an output.
const TITLE_CHARS_MAX: usize = 200;
/// How many sessions are shown of the caller's own, and how many of those that are shared with them.
const SESSIONS_MAX: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    #[serde(default, deserialize_with = "arguments::session_id")]
    session_id: Option<String>,
    #[serde(default, deserialize_with = "arguments::query")]
    query: Option<String>,
    #[serde(default, deserialize_with = "arguments::step_id")]
    step_id: Option<String>,
    #[serde(default, deserialize_with = "arguments::iteration")]
    iteration: Option<u32>,
    #[serde(default, deserialize_with = "arguments::attempt")]
    attempt: Option<u32>,
    #[serde(default, deserialize_with = "arguments::offset")]
    offset: Option<usize>,
}

fn about() -> About {
    about_session(
        "Look at a session",
        "Where a session stands, what to do now and the beginning of what finished steps produced: call it to go on \
         after your context was compacted, in a new chat, or when a person has decided. With stepId: that step's \
         output, whole. Without sessionId: the sessions that match the query (in goals, workflows and outputs), or \
         all that run. A query looks at your own.",
        read_only(),
        json!({
            "type": "object",
            "properties": {
                "sessionId": session_id_schema(),
                "query": {"type": "string", "description": "Words to look for"},
                "stepId": id_schema("Return this step's output"),
                "iteration": {"type": "integer", "description": "Default: the last"},
                "attempt": {"type": "integer", "description": "Default: the accepted one"},
                "offset": {"type": "integer", "description": "As `next` says"},
            },
            "additionalProperties": false,
        }),
        json!({
            "goal": {"type": "string"},
            "context": {"type": "object"},
            "finished": {"type": "array", "items": {"type": "object"}},
            "output": {"type": "string", "description": "With stepId"},
            "outcome": {"type": "string", "description": "With stepId"},
            "issues": {"type": "array", "description": "What was wrong last"},
            "sessions": {"type": "array", "items": {"type": "object"}},
            "sharedSessions": {"type": "array", "description": "Of other owners"},
        }),
    )
}

async fn call(call: ToolCall) -> Result<Outcome, Refusal> {
    let Arguments { session_id, query, step_id, iteration, attempt, offset } = call.arguments()?;
    let ToolCall { app, who, context, .. } = call;
    let bad =
        |details: &str| Err(Refusal::InvalidParams { details: details.to_owned(), hint: None });
    if session_id.is_some() && query.is_some() {
        return bad("give sessionId or query, not both");
    }
    let is_about_output = iteration.is_some() || attempt.is_some() || offset.is_some();
    match (session_id, step_id) {
        (None, Some(_)) => bad("stepId goes with sessionId"),
        (_, None) if is_about_output => bad("iteration, attempt and offset go with stepId"),
        (Some(id), None) => {
            let open = app.sessions().seen_by(&who, &id, NAME)?;
            let session = open.sessions.open(&id).map_err(|error| refusal(&id, error))?;
            let is_long = reads_outputs(&session);
            let answer = move |budget: &Budget| {
                one(&open, &who, &session, budget).unwrap_or_else(|refusal| refused(&refusal))
            };
            Ok(match is_long {
                true => context.run(move || answer(&view_budget())).await,
                false => look(&context, answer).await,
            })
        }
        (Some(id), Some(step_id)) => {
            let open = app.sessions().seen_by(&who, &id, NAME)?;
            let query = OutputQuery { step_id, iteration, attempt, offset };
            // It may read the whole log.
            let work = move || {
                let session = open.sessions.open(&id).map_err(|error| refusal(&id, error));
                let page =
                    session.and_then(|session| recorded_output::read(&open, &session, &query));
                page.map_or_else(|refusal| refused(&refusal), |page| page.outcome())
            };
            Ok(context.run(work).await)
        }
        (None, None) => {
            let open = app.sessions().get_if_any()?;
            let found = open.map(|open| many(&open, &who, query.as_deref())).transpose()?;
            Ok(listing(&found.unwrap_or_default(), query.as_deref()))
        }
    }
}

fn one(open: &Open, who: &Who, session: &Session, budget: &Budget) -> Result<Outcome, Refusal> {
    let answer = Answer::new(open, session, who, Opening::Full, budget)?;
    let memory = Memory::of(open, session, budget)?;
    let mut instruction = answer.instruction();
    if memory.finished.iter().any(|finished| finished.is_cut) {
        let name = NAME;
        instruction.push_str(&format!("\n\n{name} with stepId returns an earlier output whole."));
    }
    let about = format!("Workflow `{}`.{}", session.state.workflow_id, memory.text());
    let structured = answer.json(&instruction, &memory);
    Ok(Outcome::Tool { text: format!("{about}\n\n{instruction}").into(), structured })
}

/// A session as a resource: the same for a machine.
pub(crate) fn resource(
    open: &Open,
    who: &Who,
    session: &Session,
    budget: &Budget,
) -> Result<String, Refusal> {
    let answer = Answer::new(open, session, who, Opening::Full, budget)?;
    Ok(answer.json(&answer.instruction(), &Memory::of(open, session, budget)?))
}

/// What somebody needs to know who has forgotten everything. All of it is bounded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Memory<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Context::is_empty")]
    context: Context,
    finished: Vec<Finished>,
    /// More was finished before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_output: Option<Cow<'a, str>>,
    #[serde(flatten)]
    last_try: Option<LastTry>,
    /// What came from a file, this server cannot vouch for.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<&'a ImportOrigin>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finished {
    step_id: String,
    title: String,
    output: String,
    /// `workflow_status` with `stepId` returns all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_cut: bool,
    time: String,
}

/// What was wrong with the last output for the current step.
#[derive(Debug, Serialize)]
struct LastTry {
    attempt: u32,
    issues: Vec<String>,
    suggestions: Vec<String>,
}

impl<'a> Memory<'a> {
    fn of(open: &Open, session: &'a Session, budget: &Budget) -> Result<Self, Refusal> {
        let refused = |error| refusal(&session.id, error);
        let Summary { steps, is_cut } =
            open.sessions.summary(session, STEPS_MAX).map_err(refused)?;
        let outputs = open.sessions.outputs(session);
        let title = |step: &str, loops: &LoopState| {
            let Session { workflow, state, .. } = session;
            let title = engine::finished_title(workflow, state, step, loops, &outputs, budget);
            one_line(&title, TITLE_CHARS_MAX)
        };
        let finished: Vec<_> = steps
            .into_iter()
            .map(|done| Finished {
                title: title(&done.step, &done.loops),
                output: cut(done.output.trim(), OUTPUT_BYTES_MAX).into_owned(),
                is_cut: done.output.trim().len() > OUTPUT_BYTES_MAX,
                time: time_text(done.time),
                step_id: done.step,
            })
            .collect();
        outputs.finish().map_err(refused)?;
        let state = &session.state;
        let last = open.sessions.last_try(session).map_err(refused)?.and_then(complaints);
        Ok(Self {
            goal: state.goal.as_ref().map(|goal| cut(goal, GOAL_BYTES_MAX)),
            context: bounded(&state.context),
            finished,
            is_cut,
            waiting_output: state.waiting.as_ref().map(|w| cut(&w.output, WAITING_BYTES_MAX)),
            last_try: last.map(|(issues, suggestions)| LastTry {
                attempt: state.attempts,
                issues,
                suggestions,
            }),
            imported: state.imported.as_ref(),
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(ImportOrigin { session, owner, unverified, .. }) = self.imported {
            let owner = one_line(owner, OWNER_CHARS_MAX);
            text.push_str(&format!(
                "\nImported from a file, where it was session `{session}` of {owner}; {unverified} of its events (decisions \
                 of people, the start of a copy) are unverified."
            ));
        }
        if let Some(goal) = &self.goal {
            text.push_str(&format!("\nGoal: {goal}"));
        }
        if !self.context.is_empty() {
            text.push_str(&format!("\nContext: {}", json!(self.context)));
        }
        if !self.finished.is_empty() {
            text.push_str(if self.is_cut { "\nFinished last:" } else { "\nFinished:" });
        }
        for Finished { step_id, title, output, .. } in &self.finished {
            text.push_str(&format!("\n- `{step_id}` ({}): {output}", title));
        }
        if let Some(output) = &self.waiting_output {
            text.push_str(&format!("\nWhat waits:\n{output}"));
        }
        if let Some(LastTry { attempt, issues, suggestions }) = &self.last_try {
            let lines = issues.iter().chain(suggestions).map(String::as_str);
            let lines = lines.collect::<Vec<_>>().join("\n- ");
            text.push_str(&format!("\nAttempt {attempt} was not accepted:\n- {lines}"));
        }
        // The structured result has it as it was handed in.
        sanitize(&text).into_owned()
    }
}

/// Long values as the beginning of their JSON.
fn bounded(context: &Context) -> Context {
    let variables = context.iter().take(VARIABLES_MAX).map(|(name, value)| {
        let text = value.to_string();
        let is_long = text.len() > VARIABLE_BYTES_MAX;
        let value = if is_long { json!(cut(&text, VARIABLE_BYTES_MAX)) } else { value.clone() };
        (name.clone(), value)
    });
    variables.collect()
}

fn many(open: &Open, who: &Who, query: Option<&str>) -> Result<OpenSessions, Refusal> {
    let found = match query {
        Some(query) => open.search(who, query, SESSIONS_MAX).map(|sessions| {
            let has_more = sessions.len() == SESSIONS_MAX;
            let own = SessionList { sessions, has_more };
            OpenSessions { own, ..OpenSessions::default() }
        }),
        None => open.open_sessions(who, SESSIONS_MAX),
    };
    found.map_err(|error| from_store(&error))
}

fn listing(found: &OpenSessions, query: Option<&str>) -> Outcome {
    let OpenSessions { own, shared } = found;
    let mut parts = Vec::new();
    match (own.sessions.is_empty(), query) {
        (false, _) => parts.push(lines(&own.sessions, |_| String::new())),
        (true, Some(_)) => parts.push("No session matches.".to_owned()),
        (true, None) if shared.sessions.is_empty() => {
            parts.push("No session runs. workflow_start begins one.".to_owned());
        }
        (true, None) => {}
    }
    if !shared.sessions.is_empty() {
        let by = |meta: &Meta| format!(" of `{}`", one_line(&meta.owner, OWNER_CHARS_MAX));
        parts.push(format!("Shared with you:\n{}", lines(&shared.sessions, by)));
    }
    let mut next = String::new();
    if own.has_more {
        next.push_str("There may be more; a query finds them. ");
    }
    if shared.has_more {
        next.push_str("More are shared with you. ");
    }
    if !(own.sessions.is_empty() && shared.sessions.is_empty()) {
        parts.push(format!("{next}workflow_status with a sessionId shows one of them."));
    }
    let mut structured = json!({"sessions": rows(&own.sessions)});
    if !shared.sessions.is_empty() {
        let mut rows = rows(&shared.sessions);
        for (row, meta) in rows.iter_mut().zip(&shared.sessions) {
            row["owner"] = json!(meta.owner);
        }
        structured["sharedSessions"] = json!(rows);
    }
    let text = sanitize(&parts.join("\n\n")).into_owned();
    Outcome::Tool { text: text.into(), structured: structured.to_string() }
}

/// A line about each session. `by` says whose it is.
fn lines(sessions: &[Meta], by: impl Fn(&Meta) -> String) -> String {
    let lines = sessions.iter().map(|meta| {
        let Meta { id, workflow, goal, head, .. } = meta;
        let at = head.step.as_ref().map(|step| format!(", step `{step}`")).unwrap_or_default();
        let (by, status, touched) = (by(meta), head.status.name(), time_text(meta.touched));
        let imported = if meta.is_imported { ", imported" } else { "" };
        // On one line, so that no goal passes for another session.
        let goal = one_line(goal, GOAL_CHARS_MAX);
        let goal = if goal.is_empty() { goal } else { format!(": {goal}") };
        format!("- `{id}`{by}: `{workflow}`, {status}{imported}{at}, {touched}{goal}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn rows(sessions: &[Meta]) -> Vec<Value> {
    let rows = sessions.iter().map(|meta| {
        let mut row = json!({
            "sessionId": meta.id,
            "workflowId": meta.workflow,
            "goal": cut(&meta.goal, GOAL_BYTES_MAX),
            "status": meta.head.status.name(),
            "stepId": meta.head.step,
            "revision": meta.head.revision,
            "touched": time_text(meta.touched),
        });
        if meta.is_imported {
            row["isImported"] = json!(true);
        }
        row
    });
    rows.collect()
}
