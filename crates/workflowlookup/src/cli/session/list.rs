//! `session list`: the sessions that there are, newest first.

use clap::{Args, ValueEnum};
use serde::Serialize;
use store::limits::PAGE_MAX;
use store::{Filter, Meta, Status, Store};

use super::{open_if_any, say_none};
use crate::cli::terminal::{DIM, YELLOW};
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::sessions::{from_store, time_text};
use service::words::one_line;

/// How much of a goal, and of a name, a line has room for.
const GOAL_CHARS_MAX: usize = 60;
const NAME_CHARS_MAX: usize = 40;

/// List the sessions, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup session list
  workflowlookup session list --status waiting
  workflowlookup session list --workflow investigate-bug --search 'login timeout' --json")]
pub(crate) struct Arguments {
    /// Only sessions that stand so
    #[arg(long)]
    status: Option<StatusOption>,
    /// Only sessions of this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Only sessions that have these words in their goal, workflow or outputs; the last that matched comes first
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=PAGE_MAX as u64))]
    limit: u64,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StatusOption {
    Running,
    Waiting,
    Complete,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing<'a> {
    sessions: Vec<Line<'a>>,
    /// There are more than were asked for.
    has_more: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    session_id: &'a str,
    workflow_id: &'a str,
    goal: &'a str,
    owner: &'a str,
    status: Status,
    step_id: Option<&'a str>,
    revision: u64,
    began: String,
    touched: String,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let open = open_if_any(sources)?;
    let (found, has_more) = match &open {
        Some(open) => find(open.sessions.store(), arguments).map_err(|error| from_store(&error))?,
        None => Default::default(),
    };
    if arguments.json {
        let sessions = found.iter().map(Line::of).collect();
        terminal.json(&Listing { sessions, has_more })?;
        return Ok(Outcome::Good);
    }
    let headings = ["ID", "WORKFLOW", "STATUS", "STEP", "REVISION", "LAST TOUCHED", "GOAL"];
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    if !rows.is_empty() {
        terminal.table(&headings, &rows)?;
    } else if arguments.is_filtered() && open.is_some() {
        let hint = "`workflowlookup session list` without options shows all";
        terminal.complain(YELLOW, "warning", "no session matches", Some(hint))?;
    } else {
        return say_none(terminal);
    }
    if has_more {
        let hint =
            "say how many with `--limit`, or which with `--status`, `--workflow` and `--search`";
        terminal.complain(DIM, "note", "there are more", Some(hint))?;
    }
    Ok(Outcome::Good)
}

/// At most as many as were asked for, and whether there are more.
fn find(store: &Store, arguments: &Arguments) -> Result<(Vec<Meta>, bool), store::Error> {
    let limit = usize::try_from(arguments.limit).unwrap_or(PAGE_MAX);
    let status = arguments.status.map(Status::from);
    let Some(words) = &arguments.search else {
        let statuses = status.into_iter().collect();
        let workflow = arguments.workflow.clone();
        let page = store.list(&Filter { statuses, workflow, limit, ..Filter::default() })?;
        return Ok((page.sessions, page.next.is_some()));
    };
    let mut found = store.search(words, None, PAGE_MAX)?;
    found.retain(|meta| {
        status.is_none_or(|status| meta.head.status == status)
            && arguments.workflow.as_ref().is_none_or(|workflow| meta.workflow == *workflow)
    });
    let has_more = found.len() > limit;
    found.truncate(limit);
    Ok((found, has_more))
}

fn row(meta: &Meta) -> Vec<String> {
    let name = |text: &str| one_line(text, NAME_CHARS_MAX);
    vec![
        meta.id.clone(),
        name(&meta.workflow),
        meta.head.status.name().to_owned(),
        meta.head.step.as_deref().map_or("-".to_owned(), name),
        meta.head.revision.to_string(),
        time_text(meta.touched),
        one_line(&meta.goal, GOAL_CHARS_MAX),
    ]
}

impl Arguments {
    fn is_filtered(&self) -> bool {
        self.status.is_some() || self.workflow.is_some() || self.search.is_some()
    }
}

impl From<StatusOption> for Status {
    fn from(status: StatusOption) -> Self {
        match status {
            StatusOption::Running => Self::Running,
            StatusOption::Waiting => Self::Waiting,
            StatusOption::Complete => Self::Complete,
        }
    }
}

impl<'a> Line<'a> {
    fn of(meta: &'a Meta) -> Self {
        Self {
            session_id: &meta.id,
            workflow_id: &meta.workflow,
            goal: &meta.goal,
            owner: &meta.owner,
            status: meta.head.status,
            step_id: meta.head.step.as_deref(),
            revision: meta.head.revision,
            began: time_text(meta.created),
            touched: time_text(meta.touched),
        }
    }
}
