//! `session list`: the sessions that there are, newest first: the user's own, and apart from them those of others.

use clap::{Args, ValueEnum};
use serde::Serialize;
use store::limits::PAGE_MAX;
use store::{Filter, Meta, Status, Store};

use super::{open_if_any, say_none};
use crate::cli::terminal::{DIM, YELLOW};
use crate::cli::{Ended, Outcome, SourceOptions, Terminal};
use service::sessions::{Open, from_store, time_text};
use service::words::one_line;

/// How much of a goal, and of a name, a line has room for.
const GOAL_CHARS_MAX: usize = 60;
const NAME_CHARS_MAX: usize = 40;
/// How many pages are looked through for sessions of others.
const PAGES_MAX: usize = 10;

/// List the sessions, newest first: your own, and apart from them those of others
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
    /// How many at most of your own, and how many of others
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
    #[serde(flatten)]
    own: List<'a>,
    others: List<'a>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    sessions: Vec<Line<'a>>,
    /// There are more than were asked for.
    has_more: bool,
}

/// Sessions of the user, or of others.
#[derive(Debug, Default)]
struct FoundSessions {
    sessions: Vec<Meta>,
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
    is_imported: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let open = open_if_any(sources)?;
    let (own, others) = match &open {
        Some(open) => find(open, arguments).map_err(|error| from_store(&error))?,
        None => Default::default(),
    };
    if arguments.json {
        terminal.json(&Listing { own: List::of(&own), others: List::of(&others) })?;
        return Ok(Outcome::Good);
    }
    if own.sessions.is_empty() && others.sessions.is_empty() {
        if !arguments.is_filtered() || open.is_none() {
            return say_none(terminal);
        }
        let hint = "`workflowlookup session list` without options shows all";
        terminal.complain(YELLOW, "warning", "no session matches", Some(hint))?;
    }
    let mut headings = vec!["ID", "WORKFLOW", "STATUS", "STEP", "REVISION", "LAST TOUCHED", "GOAL"];
    if !own.sessions.is_empty() {
        terminal.table(&headings, &own.sessions.iter().map(row).collect::<Vec<_>>())?;
    }
    if !others.sessions.is_empty() {
        if terminal.is_terminal() {
            let space = if own.sessions.is_empty() { "" } else { "\n" };
            terminal.line(&format!("{space}Sessions of others:"))?;
        }
        headings.push("OWNER");
        let rows = others.sessions.iter().map(|meta| {
            let owner = one_line(&meta.owner, NAME_CHARS_MAX);
            row(meta).into_iter().chain([owner]).collect()
        });
        terminal.table(&headings, &rows.collect::<Vec<_>>())?;
    }
    if own.has_more || others.has_more {
        let hint =
            "say how many with `--limit`, or which with `--status`, `--workflow` and `--search`";
        terminal.complain(DIM, "note", "there are more", Some(hint))?;
    }
    Ok(Outcome::Good)
}

/// The user's own sessions and those of others, at most as many of each as were asked for.
fn find(
    open: &Open,
    arguments: &Arguments,
) -> Result<(FoundSessions, FoundSessions), store::Error> {
    let (store, user) = (open.sessions.store(), &open.user);
    let limit = usize::try_from(arguments.limit).unwrap_or(PAGE_MAX);
    let status = arguments.status.map(Status::from);
    let Some(words) = &arguments.search else {
        let filter = Filter {
            statuses: status.into_iter().collect(),
            workflow: arguments.workflow.clone(),
            ..Filter::default()
        };
        let own = Filter { owner: Some(user.clone()), limit, ..filter.clone() };
        let page = store.list(&own)?;
        let own = FoundSessions { has_more: page.next.is_some(), sessions: page.sessions };
        return Ok((own, others(store, user, filter, limit)?));
    };
    let mut found = store.search(words, None, PAGE_MAX)?;
    found.retain(|meta| {
        status.is_none_or(|status| meta.head.status == status)
            && arguments.workflow.as_ref().is_none_or(|workflow| meta.workflow == *workflow)
    });
    let (own, others) = found.into_iter().partition(|meta| meta.owner == *user);
    Ok((FoundSessions::cut(own, limit), FoundSessions::cut(others, limit)))
}

/// Looks through the newest sessions of all.
fn others(
    store: &Store,
    user: &str,
    filter: Filter,
    limit: usize,
) -> Result<FoundSessions, store::Error> {
    let (mut found, mut filter) = (Vec::new(), Filter { limit: PAGE_MAX, ..filter });
    for _ in 0..PAGES_MAX {
        let page = store.list(&filter)?;
        found.extend(page.sessions.into_iter().filter(|meta| meta.owner != user));
        filter.before = page.next;
        if filter.before.is_none() || found.len() > limit {
            break;
        }
    }
    let found = FoundSessions::cut(found, limit);
    Ok(FoundSessions { has_more: found.has_more || filter.before.is_some(), ..found })
}

impl FoundSessions {
    fn cut(mut sessions: Vec<Meta>, limit: usize) -> Self {
        let has_more = sessions.len() > limit;
        sessions.truncate(limit);
        Self { sessions, has_more }
    }
}

fn row(meta: &Meta) -> Vec<String> {
    let name = |text: &str| one_line(text, NAME_CHARS_MAX);
    vec![
        meta.id.clone(),
        name(&meta.workflow),
        match meta.is_imported {
            true => format!("{} (imported)", meta.head.status.name()),
            false => meta.head.status.name().to_owned(),
        },
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

impl<'a> List<'a> {
    fn of(FoundSessions { sessions, has_more }: &'a FoundSessions) -> Self {
        Self { sessions: sessions.iter().map(Line::of).collect(), has_more: *has_more }
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
            is_imported: meta.is_imported,
        }
    }
}
