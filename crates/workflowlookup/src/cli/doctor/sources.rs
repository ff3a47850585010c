//! What each source holds, what in it is broken, and what hides what.

use catalog::{Entry, Kind, ShadowReason, Snapshot, Source, SourceReport, SourceState};
use workflow::Finding;

use super::{Check, Level, plural};
use crate::cli::next::quoted;

const ABOUT: &str = "source";
/// How many single things are listed before the rest is only counted.
const LISTED_MAX: usize = 10;

pub(super) fn look(snapshot: &Snapshot) -> Vec<Check> {
    let mut checks = Vec::new();
    for (index, report) in snapshot.sources.iter().enumerate() {
        let served = snapshot.entries().iter();
        let hidden = snapshot.shadows().iter().map(|shadow| &shadow.entry);
        let entries = served.chain(hidden).filter(|entry| entry.source == index);
        let entries: Vec<&Entry> = entries.map(|entry| &**entry).collect();
        checks.extend(source(report, &entries));
    }
    if snapshot.workflows().next().is_none() {
        let check = Check::new(ABOUT, Level::Warning, "there is no workflow to hand out");
        checks.push(check.hint("`workflowlookup new ID` writes one to start from"));
    }
    checks.extend(shadows(snapshot));
    checks
}

fn source(report: &SourceReport, entries: &[&Entry]) -> Vec<Check> {
    let source = &report.source;
    let name = match source {
        Source::Bundled(_) => "the product itself".to_owned(),
        Source::Folder { kind, path } => {
            let kind = match kind {
                Kind::User => "your folder",
                Kind::Project => "the project's folder",
                Kind::Environment | Kind::Option => "the folder",
            };
            format!("{kind} `{}`", path.display())
        }
    };
    match report.state {
        SourceState::Missing if source.is_explicit() => {
            let check = Check::new(ABOUT, Level::Problem, format!("{name} does not exist"));
            vec![check.hint(format!("create it, or correct {}", asked_by(source)))]
        }
        SourceState::Missing => {
            vec![Check::new(ABOUT, Level::Ok, format!("{name} does not exist, and need not"))]
        }
        SourceState::Unreadable => {
            let why = report.findings.first().map(|finding| finding.message.to_string());
            let why = why.unwrap_or_else(|| "cannot be read".to_owned());
            let check = Check::new(ABOUT, Level::Problem, format!("{name} {why}"));
            vec![check.hint(match source {
                Source::Folder { path, .. } if path.is_dir() => {
                    let path = quoted(&path.display().to_string());
                    format!("allow yourself to read it: `chmod u+rx {path}`")
                }
                _ => "see whether it is a folder, and whether you may look into it".to_owned(),
            })]
        }
        SourceState::Read => {
            let files = plural(entries.len(), "workflow");
            let mut checks = vec![Check::new(ABOUT, Level::Ok, format!("{name} holds {files}"))];
            checks.extend(broken(source, &name, entries));
            checks.extend(report.findings.iter().map(folder_finding));
            checks
        }
    }
}

fn asked_by(source: &Source) -> &'static str {
    match source {
        Source::Folder { kind: Kind::Environment, .. } => "`WORKFLOW_STORAGE_PATH`",
        _ => "`--workflows`",
    }
}

/// What `validate` would say about the files, in short.
fn broken(source: &Source, name: &str, entries: &[&Entry]) -> Vec<Check> {
    let count = |wanted: &dyn Fn(&Entry) -> bool| entries.iter().filter(|e| wanted(e)).count();
    let has_error = |entry: &Entry| entry.findings.iter().any(Finding::is_error);
    let unusable = count(&|entry| entry.workflow.is_none());
    let flawed = count(&|entry| entry.workflow.is_some() && has_error(entry));
    let warned = count(&|entry| !entry.findings.is_empty() && !has_error(entry));
    let said = [
        (unusable, Level::Problem, "cannot be used"),
        (flawed, Level::Problem, "can be used only in part"),
        (warned, Level::Note, "could be better"),
    ];
    let all = entries.len();
    let said = said.into_iter().filter(|(number, ..)| *number > 0);
    said.map(|(number, level, what)| {
        let message = format!("{number} of {} in {name} {what}", plural(all, "workflow"));
        let hint = format!(
            "`workflowlookup validate {}` shows what is wrong",
            quoted(&source.to_string())
        );
        Check::new(ABOUT, level, message).hint(hint)
    })
    .collect()
}

/// A finding that belongs to no single file: a folder in a folder that cannot be read, for example.
fn folder_finding(finding: &Finding) -> Check {
    let level = if finding.is_error() { Level::Problem } else { Level::Warning };
    let place = finding.file.as_deref().unwrap_or("a folder");
    let check = Check::new(ABOUT, level, format!("`{place}`: {}", finding.message));
    match &finding.hint {
        Some(hint) => check.hint(hint.to_string()),
        None => check,
    }
}

fn shadows(snapshot: &Snapshot) -> Vec<Check> {
    let shadows = snapshot.shadows();
    let listed = shadows.iter().take(LISTED_MAX).map(|shadow| {
        let (hidden, by) = (shadow.entry.path.display(), shadow.by.path.display());
        let id = &shadow.entry.id;
        if shadow.reason == ShadowReason::Untrusted {
            let message =
                format!("`{hidden}` is not trusted, so `{by}` stays the `{id}` that counts");
            let check = Check::new(ABOUT, Level::Warning, message);
            return check.hint("`workflowlookup trust` shows what it would override, and asks");
        }
        let message = format!("`{by}` hides `{hidden}`: both are `{id}`");
        Check::new(ABOUT, Level::Note, message)
    });
    let mut checks: Vec<Check> = listed.collect();
    if let Some(more) = shadows.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        let message = format!("{} more hidden in this way", plural(more, "file"));
        let check = Check::new(ABOUT, Level::Note, message);
        checks.push(check.hint("`workflowlookup sources` shows them all"));
    }
    checks
}
