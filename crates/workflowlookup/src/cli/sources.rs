//! `sources`: where workflows come from, what hides what, and what is broken.

use std::io;
use std::sync::Arc;

use catalog::{Entry, Shadow, ShadowReason, Snapshot, SourceState};
use clap::Args;
use serde_json::{Value, json};
use workflow::finding::render;

use super::terminal::{DIM, HEADING};
use super::{Ended, Outcome, SourceOptions, Terminal};

/// Show where workflows come from, what hides what, and what is broken
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup sources
  workflowlookup --workflows ../team/workflows sources --json")]
pub(crate) struct Arguments {
    /// Print as JSON
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
    if arguments.json {
        terminal.json(&as_json(&snapshot))?;
    } else {
        print(&snapshot, terminal)?;
    }
    Ok(Outcome::Good)
}

fn state_name(state: SourceState) -> &'static str {
    match state {
        SourceState::Read => "read",
        SourceState::Missing => "missing",
        SourceState::Unreadable => "unreadable",
    }
}

/// The entries of one source, those that are hidden included.
fn entries_of(snapshot: &Snapshot, source: usize) -> Vec<(&Arc<Entry>, Option<&Shadow>)> {
    let served = snapshot.entries().iter().map(|entry| (entry, None));
    let hidden = snapshot.shadows().iter().map(|shadow| (&shadow.entry, Some(shadow)));
    let mut entries: Vec<_> =
        served.chain(hidden).filter(|(entry, _)| entry.source == source).collect();
    entries.sort_by(|(left, _), (right, _)| left.path.cmp(&right.path));
    entries
}

fn as_json(snapshot: &Snapshot) -> Value {
    let sources = snapshot.sources.iter().enumerate().map(|(index, report)| {
        let files = entries_of(snapshot, index).into_iter().map(|(entry, shadow)| {
            json!({
                "id": entry.id,
                "file": entry.path.display().to_string(),
                "usable": entry.workflow.is_some(),
                "hiddenBy": shadow.map(|shadow| shadow.by.path.display().to_string()),
                "untrusted": shadow.is_some_and(|it| it.reason == ShadowReason::Untrusted),
                "findings": entry.findings,
            })
        });
        json!({
            "source": report.source.name(),
            "path": report.source.to_string(),
            "state": state_name(report.state),
            "findings": report.findings,
            "files": files.collect::<Vec<_>>(),
        })
    });
    json!({"sources": sources.collect::<Vec<_>>()})
}

fn print(snapshot: &Snapshot, terminal: &mut Terminal) -> io::Result<()> {
    let mut rows = Vec::new();
    for (index, report) in snapshot.sources.iter().enumerate() {
        let entries = entries_of(snapshot, index);
        let usable = entries.iter().filter(|(entry, _)| entry.workflow.is_some()).count();
        let (all, broken) = (entries.len(), entries.len() - usable);
        let count = match report.state {
            SourceState::Read if broken == 0 => all.to_string(),
            SourceState::Read => format!("{all}, {broken} broken"),
            state => state_name(state).to_owned(),
        };
        rows.push(vec![report.source.name().to_owned(), count, report.source.to_string()]);
    }
    terminal.table(&["SOURCE", "FILES", "FOLDER"], &rows)?;
    let (untrusted, hidden): (Vec<&Shadow>, Vec<&Shadow>) =
        snapshot.shadows().iter().partition(|shadow| shadow.reason == ShadowReason::Untrusted);
    for (heading, shadows) in [
        ("Hidden by a later file with the same id", hidden),
        ("Not trusted, and so not in the place of another (`workflowlookup trust`)", untrusted),
    ] {
        if !shadows.is_empty() {
            terminal.line("")?;
            terminal.styled(HEADING, heading)?;
        }
        for shadow in shadows {
            let (hidden, by) = (shadow.entry.path.display(), shadow.by.path.display());
            terminal.line(&format!("  {}: {hidden} by {by}", shadow.entry.id))?;
        }
    }
    let in_files = snapshot.entries().iter().map(|entry| &**entry);
    let in_files = in_files.chain(snapshot.shadows().iter().map(|shadow| &*shadow.entry));
    let in_files = in_files.flat_map(|entry| entry.findings.iter());
    let in_folders = snapshot.sources.iter().flat_map(|report| &report.findings);
    let findings: Vec<_> = in_folders.chain(in_files).collect();
    if !findings.is_empty() {
        terminal.line("")?;
        terminal.styled(HEADING, "Findings")?;
        for finding in findings {
            terminal.text(&render(finding, None))?;
        }
        terminal.styled(DIM, "`workflowlookup validate FILE` shows them in place")?;
    }
    Ok(())
}
