//! `list`: the workflows that there are.

use clap::Args;

use super::terminal::{DIM, YELLOW};
use super::{Ended, Outcome, SourceOptions, Terminal};
use service::app::{self, Filter};

/// List the workflows
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup list
  workflowlookup list release notes
  workflowlookup list --category development --json")]
pub(crate) struct Arguments {
    /// Words that must occur in the id, name, description or category
    words: Vec<String>,
    /// Only workflows of this category
    #[arg(long)]
    category: Option<String>,
    /// Print what the tool `workflow_list` returns
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(
    arguments: &Arguments,
    sources: &SourceOptions,
    terminal: &mut Terminal,
) -> Ended {
    let app = sources.open(terminal)?;
    let snapshot = app.snapshot();
    let filter = Filter { category: arguments.category.clone(), words: arguments.words.clone() };
    let listing = app::list(&snapshot, &filter);
    if arguments.json {
        terminal.json(&listing)?;
        return Ok(Outcome::Good);
    }
    let rows: Vec<Vec<String>> = listing
        .workflows
        .iter()
        .map(|workflow| {
            [workflow.id, workflow.version, workflow.category, workflow.name]
                .map(str::to_owned)
                .to_vec()
        })
        .collect();
    terminal.table(&["ID", "VERSION", "CATEGORY", "NAME"], &rows)?;
    let broken = snapshot.entries().iter().filter(|entry| entry.workflow.is_none()).count();
    if broken > 0 {
        let message = match broken {
            1 => "one file cannot be used".to_owned(),
            many => format!("{many} files cannot be used"),
        };
        let hint = Some("`workflowlookup sources` shows which, and why");
        terminal.complain(YELLOW, "warning", &message, hint)?;
    }
    let overriding: Vec<&str> = listing
        .workflows
        .iter()
        .filter(|workflow| workflow.overrides.is_some())
        .map(|workflow| workflow.id)
        .collect();
    if !overriding.is_empty() {
        let message = format!("overriding others of the same id: {}", overriding.join(", "));
        let hint = Some("`workflowlookup sources` shows which");
        terminal.complain(DIM, "note", &message, hint)?;
    }
    let untrusted: Vec<&str> = snapshot.untrusted().map(|shadow| &*shadow.entry.id).collect();
    if !untrusted.is_empty() {
        let message =
            format!("not overridden, for nobody has trusted the files: {}", untrusted.join(", "));
        let hint = Some("`workflowlookup trust` shows them, and asks");
        terminal.complain(YELLOW, "warning", &message, hint)?;
    }
    if rows.is_empty() {
        let (message, hint) = if snapshot.entries().is_empty() {
            ("there is no workflow", "`workflowlookup new ID` writes one to start from")
        } else {
            ("no workflow matches", "`workflowlookup list` without words shows all")
        };
        terminal.complain(YELLOW, "warning", message, Some(hint))?;
    }
    Ok(Outcome::Good)
}
