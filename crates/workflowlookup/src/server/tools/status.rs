//! `workflow_status`: everything that an agent needs to go on with a session, or which sessions there are.

use mcp::Outcome;
use mcp::content::About;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::sessions::{Session, Summary};
use store::{Filter, Meta, Status};
use workflow::Context;

use super::advance::complaints;
use super::session_answer::{Answer, about_session, session_id_schema};
use super::{cut, read_only};
use crate::app::App;
use crate::error::Refusal;
use crate::sessions::{Open, from_store, refusal, time_text};

/// How many finished steps are summed up, and how much of each output is shown.
const STEPS_MAX: usize = 30;
const OUTPUT_BYTES_MAX: usize = 400;
/// How much of an output that waits for a person.
const WAITING_BYTES_MAX: usize = 8 * 1024;
/// How much of a goal is shown, and of a context variable as JSON.
const GOAL_BYTES_MAX: usize = 2_000;
const VARIABLE_BYTES_MAX: usize = 400;
const VARIABLES_MAX: usize = 50;
/// How many sessions are shown.
const SESSIONS_MAX: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    session_id: Option<String>,
    query: Option<String>,
}

pub(super) fn about() -> About {
    about_session(
        "Look at a session",
        "Where a session stands and what its finished steps produced: call it to go on after your context was \
         compacted, in a new chat, or when a person has decided. Without sessionId: the sessions that match the \
         query (in goals, workflows and outputs), or all that run.",
        read_only(),
        json!({
            "type": "object",
            "properties": {
                "sessionId": session_id_schema(),
                "query": {"type": "string", "description": "Words to look for"},
            },
            "additionalProperties": false,
        }),
        json!({
            "goal": {"type": "string"},
            "context": {"type": "object"},
            "finished": {"type": "array", "items": {"type": "object"}},
            "issues": {"type": "array", "description": "What was wrong last"},
            "sessions": {"type": "array", "items": {"type": "object"}},
        }),
    )
}

pub(super) fn call(app: &App, arguments: Arguments) -> Result<Outcome, Refusal> {
    match arguments {
        Arguments { session_id: Some(_), query: Some(_) } => Err(Refusal::InvalidParams {
            details: "give sessionId or query, not both".to_owned(),
            hint: None,
        }),
        Arguments { session_id: Some(id), query: None } => one(&*app.sessions().get()?, &id),
        Arguments { session_id: None, query } => {
            let open = app.sessions().get_if_any()?;
            let found = open.map(|open| many(&open, query.as_deref())).transpose()?;
            Ok(listing(&found.unwrap_or_default(), query.as_deref()))
        }
    }
}

fn one(open: &Open, id: &str) -> Result<Outcome, Refusal> {
    let session = open.sessions.open(id).map_err(|error| refusal(id, error))?;
    let (answer, more) = (Answer::of(&session)?, more(open, &session)?);
    let mut before = format!("Workflow `{}`.", session.state.workflow_id);
    if let Some(Value::String(goal)) = more.get("goal") {
        before.push_str(&format!("\nGoal: {goal}"));
    }
    if let Some(context) = more.get("context") {
        before.push_str(&format!("\nContext: {context}"));
    }
    let finished = more.get("finished").and_then(Value::as_array).into_iter().flatten();
    let finished: Vec<String> = finished
        .map(|done| {
            let text = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
            format!("- `{}` ({}): {}", text("stepId"), text("title"), text("output"))
        })
        .collect();
    if !finished.is_empty() {
        let is_cut = more.get("isCut") == Some(&json!(true));
        let heading = if is_cut { "Finished last" } else { "Finished" };
        before.push_str(&format!("\n{heading}:\n{}", finished.join("\n")));
    }
    if let Some(Value::String(output)) = more.get("waitingOutput") {
        before.push_str(&format!("\nWhat waits:\n{output}"));
    }
    if let (Some(attempt), Some(issues)) = (more.get("attempt"), more.get("issues")) {
        before.push_str(&format!("\nAttempt {attempt} was not accepted:"));
        for issue in issues.as_array().into_iter().flatten().filter_map(Value::as_str) {
            before.push_str(&format!("\n- {issue}"));
        }
    }
    Ok(answer.outcome(&format!("{before}\n\n{}", answer.text()), &more))
}

/// A session as a resource: the same for a machine.
pub(crate) fn resource(open: &Open, session: &Session) -> Result<String, Refusal> {
    Ok(Answer::of(session)?.json(&more(open, session)?))
}

/// What somebody needs to know who has forgotten everything. All of it is bounded.
fn more(open: &Open, session: &Session) -> Result<Map<String, Value>, Refusal> {
    let summary = open.sessions.summary(session, STEPS_MAX);
    let Summary { steps, is_cut } = summary.map_err(|error| refusal(&session.id, error))?;
    let finished = steps.into_iter().map(|done| {
        let title = session.workflow.step(&done.step).map(|step| step.title().to_owned());
        let output = cut(done.output.trim(), OUTPUT_BYTES_MAX);
        json!({"stepId": done.step, "title": title, "output": output, "time": time_text(done.time)})
    });
    let mut more = Map::new();
    if let Some(goal) = &session.state.goal {
        more.insert("goal".to_owned(), json!(cut(goal, GOAL_BYTES_MAX)));
    }
    if !session.state.context.is_empty() {
        more.insert("context".to_owned(), Value::Object(bounded(&session.state.context)));
    }
    more.insert("finished".to_owned(), finished.collect());
    if let Some(waiting) = &session.state.waiting {
        let output = cut(&waiting.output, WAITING_BYTES_MAX);
        more.insert("waitingOutput".to_owned(), json!(output));
    }
    let last = open.sessions.last_try(session).map_err(|error| refusal(&session.id, error))?;
    if let Some((issues, suggestions)) = last.and_then(complaints) {
        more.insert("attempt".to_owned(), json!(session.state.attempts));
        more.insert("issues".to_owned(), json!(issues));
        more.insert("suggestions".to_owned(), json!(suggestions));
    }
    if is_cut {
        more.insert("isCut".to_owned(), json!(true));
    }
    Ok(more)
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

fn many(open: &Open, query: Option<&str>) -> Result<Vec<Meta>, Refusal> {
    let store = open.sessions.store();
    let found = match query {
        Some(query) => store.search(query, Some(&open.user), SESSIONS_MAX),
        None => store.list(&running(open, SESSIONS_MAX)).map(|page| page.sessions),
    };
    found.map_err(|error| from_store(&error))
}

/// The caller's sessions that have not come to their end.
pub(crate) fn running(open: &Open, limit: usize) -> Filter {
    Filter {
        owner: Some(open.user.clone()),
        statuses: vec![Status::Running, Status::Waiting],
        limit,
        ..Filter::default()
    }
}

fn listing(sessions: &[Meta], query: Option<&str>) -> Outcome {
    let lines = sessions.iter().map(|meta| {
        let Meta { id, workflow, goal, head, .. } = meta;
        let at = head.step.as_ref().map(|step| format!(", step `{step}`")).unwrap_or_default();
        let status = status_word(head.status);
        let goal = if goal.is_empty() { String::new() } else { format!(": {}", cut(goal, 200)) };
        format!("- `{id}`: `{workflow}`, {status}{at}, {}{goal}", time_text(meta.touched))
    });
    let lines: Vec<String> = lines.collect();
    let text = match (lines.is_empty(), query) {
        (true, Some(_)) => "No session matches.".to_owned(),
        (true, None) => "No session runs. workflow_start begins one.".to_owned(),
        (false, _) => {
            let is_cut = lines.len() == SESSIONS_MAX;
            let cut = if is_cut { "There may be more; a query finds them. " } else { "" };
            let lines = lines.join("\n");
            format!("{lines}\n\n{cut}workflow_status with a sessionId shows one of them.")
        }
    };
    let found = sessions.iter().map(|meta| {
        json!({
            "sessionId": meta.id,
            "workflowId": meta.workflow,
            "goal": cut(&meta.goal, GOAL_BYTES_MAX),
            "status": status_word(meta.head.status),
            "stepId": meta.head.step,
            "revision": meta.head.revision,
            "touched": time_text(meta.touched),
        })
    });
    let structured = json!({"sessions": found.collect::<Vec<_>>()});
    Outcome::Tool { text: text.into(), structured: structured.to_string() }
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Waiting => "waiting for a person",
        Status::Complete => "complete",
    }
}
