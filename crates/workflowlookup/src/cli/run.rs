//! `run WORKFLOW`: walk a workflow in the terminal, as a session that is kept. What is begun or found here is walked
//! in `run/walk.rs`.

use std::sync::Arc;

use clap::Args;
use store::sessions::{Session, Start};
use store::{Filter, Status};

use super::context::ContextOption;
use super::next::quoted;
use super::session::whole_id;
use super::terminal::DIM;
use super::{Ended, Failure, SourceOptions, Terminal};
use past::Past;
use service::app;
use service::error::Refusal;
use service::sessions::{Open, from_store, new_id, now, refusal};
use walk::Walk;

mod editor;
mod gate;
mod hand_in;
mod input;
mod past;
mod show;
mod typing;
mod walk;
mod wrap;

/// Others ask, and show texts, in the same way.
pub(super) use input::Input;
pub(super) use wrap::lines;

/// Walk a workflow in the terminal
///
/// Each step is shown, and its output is checked as you hand it in. Everything accepted is kept: leave when you
/// like, and go on with `--resume`. Where standard input is no terminal, the outputs are read from it, each ended by
/// a line that has only a dot; the exit status is 1 where it ends before the workflow is complete.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup run investigate-bug --goal 'the clock is an hour late'
  workflowlookup run investigate-bug --context fixRequested=true
  workflowlookup run --resume
  workflowlookup run investigate-bug --resume")]
pub(crate) struct Arguments {
    /// The workflow's id, as `list` shows it
    #[arg(required_unless_present = "resume")]
    workflow: Option<String>,
    /// What is to be reached, in your words; you find the session by it later
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,
    #[command(flatten)]
    context: ContextOption,
    /// Go on with a session; without its ID, with the newest that is not complete
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["goal", "pairs"])]
    resume: Option<Option<String>>,
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let (open, session, past) = match &arguments.resume {
        None => {
            let (open, session) = begin(arguments, sources, terminal)?;
            show::beginning(terminal, &session, &Lines::of(&session, sources).resume)?;
            (open, session, Past::default())
        }
        Some(id) => {
            let (open, session) = find(id.as_deref(), arguments.workflow.as_deref(), sources)?;
            let past = Past::of(&open.sessions, &session)?;
            let summary = open.sessions.summary(&session, show::SUMMARY_MAX);
            let summary = summary.map_err(|error| refusal(&session.id, error))?;
            show::resumed(terminal, &session, &summary, past.finished)?;
            (open, session, past)
        }
    };
    let lines = Lines::of(&session, sources);
    Walk::new(open, session, past, lines, terminal).go()
}

/// What to type into a shell later.
struct Lines {
    /// Goes on from here.
    resume: String,
    /// Shows what came out.
    report: String,
}

impl Lines {
    fn of(session: &Session, sources: &SourceOptions) -> Self {
        let line = |words: [&str; 4]| {
            let words = words.into_iter().map(str::to_owned).chain(sources.store_words());
            let words: Vec<String> = words.map(|word| quoted(&word)).collect();
            words.join(" ")
        };
        let id = &*session.id;
        Self {
            resume: line(["workflowlookup", "run", "--resume", id]),
            report: line(["workflowlookup", "session", "show", id]) + " --markdown",
        }
    }
}

fn begin(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Result<(Arc<Open>, Arc<Session>), Failure> {
    let app = sources.open(terminal)?;
    let snapshot = app.snapshot();
    let id = arguments.workflow.as_deref().unwrap_or_default();
    // What makes no sense is refused before there is a file of ours.
    let workflow = app::find(&snapshot, id)?;
    if let Some(whose) = app::overridden(&snapshot, workflow) {
        let message = format!("this `{id}` overrides the {whose} workflow of the same id");
        terminal.complain(DIM, "note", &message, None)?;
    }
    let context = arguments.context.read()?;
    let open = app.sessions().get()?;
    let start = Start {
        id: new_id()?,
        owner: open.user.clone(),
        goal: arguments.goal.clone(),
        context,
        time: now(),
        ..Start::default()
    };
    let session =
        open.sessions.start(workflow, start).map_err(|error| refusal(&workflow.id, error))?;
    Ok((open, session))
}

/// The session to go on with. Its definition is its own, so the catalogue is not even loaded.
fn find(
    id: Option<&str>,
    workflow: Option<&str>,
    sources: &SourceOptions,
) -> Result<(Arc<Open>, Arc<Session>), Failure> {
    let open = sources.unloaded().sessions().get_if_any()?;
    let Some(open) = open else {
        return Err(match id {
            Some(id) => Refusal::SessionNotFound { id: id.to_owned() }.into(),
            None => none_to_resume(workflow).into(),
        });
    };
    let id = match id.map(|id| (id, whole_id(&open, id))) {
        // What stands behind `--resume` was meant as a workflow.
        Some((id, Err(Refusal::SessionNotFound { .. }))) if newest(&open, Some(id))?.is_some() => {
            return Err(invalid(
                format!("there is no session `{id}`"),
                format!("`workflowlookup run {id} --resume` goes on with the newest of `{id}`"),
            )
            .into());
        }
        Some((_, id)) => id?,
        None => newest(&open, workflow)?.ok_or_else(|| none_to_resume(workflow))?,
    };
    let session = open.sessions.open(&id).map_err(|error| refusal(&id, error))?;
    let of = &session.state.workflow_id;
    if let Some(workflow) = workflow.filter(|workflow| workflow != of) {
        return Err(invalid(
            format!("session `{id}` is of workflow `{of}`, not `{workflow}`"),
            format!("`workflowlookup run --resume {id}` goes on with it"),
        )
        .into());
    }
    Ok((open, session))
}

/// The session of this user that was begun last of those that are not complete.
fn newest(open: &Open, workflow: Option<&str>) -> Result<Option<String>, Refusal> {
    let filter = Filter {
        owner: Some(open.user.clone()),
        statuses: vec![Status::Running, Status::Waiting],
        workflow: workflow.map(str::to_owned),
        before: None,
        limit: 1,
    };
    let page = open.sessions.store().list(&filter).map_err(|error| from_store(&error))?;
    Ok(page.sessions.into_iter().next().map(|meta| meta.id))
}

fn none_to_resume(workflow: Option<&str>) -> Refusal {
    let of = workflow.map(|workflow| format!(" of workflow `{workflow}`")).unwrap_or_default();
    let workflow = workflow.unwrap_or("WORKFLOW");
    invalid(
        format!("there is no session{of} to go on with"),
        format!("`workflowlookup run {workflow}` begins one"),
    )
}

fn invalid(details: String, hint: String) -> Refusal {
    Refusal::InvalidParams { details, hint: Some(hint) }
}
