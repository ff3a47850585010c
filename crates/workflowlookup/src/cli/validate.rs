//! `validate PATH…`: everything that is wrong with files and folders of workflows.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::Context as _;
use catalog::{Catalog, Examination, Kind, Source, Watch, examine};
use clap::Args;
use serde_json::json;
use workflow::finding::render;
use workflow::{Code, Finding, Format, Severity};

use super::terminal::{DIM, GREEN, RED, YELLOW};
use super::{Ended, Outcome, Terminal};
use service::error::Refusal;
use service::words::plural;

/// Check workflow files: every problem at once, with its place and what to try
///
/// The exit status is 0 where nothing is wrong, 1 where something is, and 2 where we failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  workflowlookup validate workflows/
  workflowlookup validate my-workflow.yaml --deny-warnings
  workflowlookup validate workflows/ --watch")]
pub(crate) struct Arguments {
    /// Files, and folders with everything in them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Exit with 1 on a warning too
    #[arg(long)]
    deny_warnings: bool,
    /// Go on, and check again after each edit
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    files: usize,
    errors: usize,
    warnings: usize,
}

impl Tally {
    fn count(&mut self, finding: &Finding) {
        match finding.severity() {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
    }

    fn outcome(self, deny_warnings: bool) -> Outcome {
        if self.errors > 0 || (deny_warnings && self.warnings > 0) {
            Outcome::Bad
        } else {
            Outcome::Good
        }
    }
}

pub(crate) fn run(arguments: &Arguments, terminal: &mut Terminal) -> Ended {
    if arguments.watch {
        return watch(arguments, terminal);
    }
    let examinations = examine_all(&arguments.paths);
    if arguments.json {
        let mut tally = Tally::default();
        let mut findings = Vec::new();
        for examination in &examinations {
            each_finding(examination, &mut tally, &mut |finding, _| {
                findings.push(finding.clone());
                Ok(())
            })?;
        }
        terminal.json(&json!({
            "files": tally.files,
            "errors": tally.errors,
            "warnings": tally.warnings,
            "findings": findings,
        }))?;
        return Ok(tally.outcome(arguments.deny_warnings));
    }
    let tally = print(&examinations, terminal)?;
    Ok(tally.outcome(arguments.deny_warnings))
}

/// Looks at everything; a path that is not there is a finding like any other.
fn examine_all(paths: &[PathBuf]) -> Vec<Examination> {
    let examined = paths.iter().map(|path| {
        examine(path).unwrap_or_else(|error| {
            let message = match error.kind() {
                io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
                _ => format!("cannot be read: {error}"),
            };
            let mut finding =
                Finding::on_file(Code::Unreadable, message, "see whether the path is right");
            finding.file = Some(path.display().to_string().into());
            Examination { files: Vec::new(), findings: vec![finding] }
        })
    });
    examined.collect()
}

/// Calls `visit` with every finding and the text in which it stands.
fn each_finding(
    examination: &Examination,
    tally: &mut Tally,
    visit: &mut dyn FnMut(&Finding, Option<&str>) -> io::Result<()>,
) -> io::Result<()> {
    for finding in &examination.findings {
        tally.count(finding);
        visit(finding, None)?;
    }
    for file in &examination.files {
        tally.files += 1;
        for finding in &file.reading.findings {
            tally.count(finding);
            visit(finding, file.text.as_deref())?;
        }
    }
    Ok(())
}

fn print(examinations: &[Examination], terminal: &mut Terminal) -> io::Result<Tally> {
    let mut tally = Tally::default();
    for examination in examinations {
        each_finding(examination, &mut tally, &mut |finding, text| {
            let style = match finding.severity() {
                Severity::Error => RED,
                Severity::Warning => YELLOW,
            };
            let rendered = render(finding, text);
            let (first, rest) = rendered.split_once('\n').unwrap_or((&rendered, ""));
            terminal.styled(style, first)?;
            terminal.line(rest)
        })?;
    }
    let Tally { files, errors, warnings } = tally;
    let files = plural(files, "file");
    if errors + warnings == 0 {
        terminal.styled(GREEN, &format!("{files} checked, nothing wrong"))?;
    } else {
        let counts = format!("{}, {}", plural(errors, "error"), plural(warnings, "warning"));
        let style = if errors > 0 { RED } else { YELLOW };
        terminal.styled(style, &format!("{files} checked: {counts}"))?;
    }
    terminal.flush()?;
    Ok(tally)
}

/// Checks again after each edit, until the process is ended. Prints only where something is different.
fn watch(arguments: &Arguments, terminal: &mut Terminal) -> Ended {
    let is_followed =
        |path: &&PathBuf| path.is_dir() || Format::of(&path.to_string_lossy()).is_some();
    if let Some(path) = arguments.paths.iter().find(|path| !is_followed(path)) {
        return Err(Refusal::InvalidParams {
            details: format!("`{}` cannot be watched", path.display()),
            hint: Some("watch folders, or files that end in .json, .yaml or .yml".to_owned()),
        }
        .into());
    }
    let folders =
        arguments.paths.iter().map(|path| if path.is_dir() { path.clone() } else { parent(path) });
    let folders: BTreeSet<PathBuf> = folders.collect();
    let sources = folders.into_iter().map(|path| Source::Folder { kind: Kind::Option, path });
    let catalog = Arc::new(Catalog::open(sources.collect()));
    let (edits, inbox) = channel();
    // Watched before the first look, so that no edit falls between the two.
    let _watch = Watch::start(catalog, move |_| {
        // The other end is there as long as we are.
        let _ = edits.send(());
    })
    .context("cannot watch for edits")?;
    let mut shown = examine_all(&arguments.paths);
    print(&shown, terminal)?;
    terminal.styled(DIM, "watching for edits; end with Ctrl-C")?;
    terminal.flush()?;
    while inbox.recv().is_ok() {
        let examined = examine_all(&arguments.paths);
        if examined != shown {
            terminal.line("")?;
            print(&examined, terminal)?;
            shown = examined;
        }
    }
    Ok(Outcome::Good)
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
