//! What there is to consent to in a folder. What is recorded is the content that was shown, whatever becomes of the file
//! meanwhile.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use catalog::{Digest, Shadow, Snapshot};
use registry::limits::FILE_BYTES_MAX;
use registry::place::{self, Kind};
use registry::{Draft, Format, Places, Reader, Trust};
use serde_json::{Value, json};

use crate::cli::terminal::{DIM, HEADING};
use crate::cli::{SourceOptions, Terminal};

use service::trust::{Consent, TrustError, is_in_workspace};
use untrusted_text::spell_out;

/// How much of one thing is shown; of longer ones the beginning and the end.
const SHOWN_CHARS_MAX: usize = 2_000;

pub(super) struct Review {
    registries: Vec<RegistryReview>,
    /// Why other files cannot be reviewed: no consent covers them.
    pub(super) problems: Vec<String>,
    workflows: Vec<WorkflowReview>,
}

/// A file that names servers.
pub(super) struct RegistryReview {
    path: PathBuf,
    text: String,
    trust: Trust,
    servers: Vec<Draft>,
}

/// A file that takes the place of a workflow of the product's or the user's, or would.
pub(super) struct WorkflowReview {
    id: String,
    path: PathBuf,
    digest: Digest,
    /// The file that does not count then.
    overrides: String,
    is_trusted: bool,
}

impl Review {
    pub(super) fn of(folder: &Path, sources: &SourceOptions) -> Self {
        let reviews = registries(&sources.registry_to_review(folder)).into_iter();
        let (registries, problems): (Vec<_>, Vec<_>) = reviews.partition(Result::is_ok);
        let registries = registries.into_iter().filter_map(Result::ok).collect();
        let problems = problems.into_iter().filter_map(Result::err).collect();
        let snapshot = sources.snapshot_to_review(folder);
        let workflows =
            snapshot.untrusted().filter_map(|shadow| WorkflowReview::of(&snapshot, shadow, false));
        let trusted =
            snapshot.overrides().filter_map(|shadow| WorkflowReview::of(&snapshot, shadow, true));
        let workflows = workflows.chain(trusted).collect();
        Self { registries, problems, workflows }
    }

    /// Whether something waits for consent.
    pub(super) fn is_open(&self) -> bool {
        self.registries.iter().any(RegistryReview::is_open)
            || self.workflows.iter().any(|workflow| !workflow.is_trusted)
    }

    /// Consent to all that was not trusted.
    pub(super) fn consents(&self) -> Result<Vec<Consent>, TrustError> {
        let registries = self.registries.iter().filter(|one| one.is_open());
        let workflows = self.workflows.iter().filter(|workflow| !workflow.is_trusted);
        let workflows =
            workflows.map(|workflow| Consent::to_workflow(&workflow.path, &workflow.digest));
        registries.map(RegistryReview::consent).chain(workflows).collect()
    }

    pub(super) fn print(&self, terminal: &mut Terminal) -> io::Result<()> {
        for registry in &self.registries {
            for (at, line) in registry.lines().iter().enumerate() {
                terminal.styled(if at == 0 { HEADING } else { Default::default() }, line)?;
            }
        }
        if !self.workflows.is_empty() {
            terminal.styled(HEADING, "Workflows that take the place of others")?;
        }
        for workflow in &self.workflows {
            let state = if workflow.is_trusted { "trusted" } else { "not trusted" };
            let path = shown(&workflow.path.display().to_string());
            let line = format!(
                "  {}: {path} overrides {} ({state})",
                workflow.id,
                shown(&workflow.overrides)
            );
            terminal.styled(if workflow.is_trusted { DIM } else { Default::default() }, &line)?;
        }
        Ok(())
    }

    pub(super) fn as_json(&self, is_recorded: bool) -> Value {
        let workflows = self.workflows.iter().map(|workflow| {
            json!({
                "id": workflow.id,
                "file": workflow.path,
                "overrides": workflow.overrides,
                "trusted": workflow.is_trusted || is_recorded,
            })
        });
        json!({
            "registries": self.registries.iter().map(|one| one.as_json(is_recorded)).collect::<Vec<_>>(),
            "workflows": workflows.collect::<Vec<_>>(),
            "problems": self.problems,
            "recorded": is_recorded,
        })
    }
}

/// The files of a registry that need consent, or why one cannot be reviewed.
pub(super) fn registries(places: &Places) -> Vec<Result<RegistryReview, String>> {
    let needs_consent = |kind, path: &Path| kind != Kind::User || is_in_workspace(path);
    let files = places.files().into_iter().filter(|(kind, path)| needs_consent(*kind, path));
    let reviews = files.filter_map(|(kind, path)| match place::text(&path) {
        Ok(Some(text)) => Some(RegistryReview::of(kind, path, text, places)),
        Ok(None) if kind == Kind::Named => {
            Some(Err(format!("`{}` does not exist", path.display())))
        }
        Ok(None) => None,
        Err(finding) => Some(Err(finding.to_string())),
    });
    reviews.collect()
}

impl RegistryReview {
    fn of(kind: Kind, path: PathBuf, text: String, places: &Places) -> Result<Self, String> {
        let file = path.display().to_string();
        let (format, variables) = (Format::of(&path), &places.variables);
        let reader = Reader { file: Some(&file), format, base: path.parent(), variables };
        let reading = reader.read_unexpanded(&text);
        if !reading.is_whole {
            let findings: Vec<String> = reading.findings.iter().map(ToString::to_string).collect();
            return Err(format!("the registry `{file}` cannot be read\n{}", findings.join("\n")));
        }
        let trust = match &places.trust {
            Some(policy) => policy.trust(kind, &path, &text),
            None => Trust::Missing,
        };
        let servers = reading.servers.into_iter().map(|server| server.draft).collect();
        Ok(Self { path, text, trust, servers })
    }

    pub(super) fn is_open(&self) -> bool {
        self.trust != Trust::Given
    }

    pub(super) fn consent(&self) -> Result<Consent, TrustError> {
        Consent::to_registry(&self.path, &self.text)
    }

    fn state(&self) -> &'static str {
        match self.trust {
            Trust::Given => "trusted",
            Trust::Outdated { .. } => "changed",
            Trust::Missing => "untrusted",
        }
    }

    /// What it would run, in lines that no text of the file can add to.
    pub(super) fn lines(&self) -> Vec<String> {
        let state = match self.trust {
            Trust::Given => "trusted",
            Trust::Outdated { .. } => "changed since it was trusted",
            Trust::Missing => "not trusted",
        };
        let mut lines = vec![format!("{} ({state})", shown(&self.path.display().to_string()))];
        for draft in &self.servers {
            let what = match (draft.is_disabled, draft.transport()) {
                (true, _) => "is disabled:",
                (false, Some("stdio")) => "starts",
                (false, Some(_)) => "connects to",
                (false, None) => "cannot be used:",
            };
            lines.push(format!("  {} {what} {}", shown(&draft.id), shown(&draft.verbatim())));
            let mut more = |label: &str, text: &str| {
                lines.push(format!("    {label}: {}", shown(text)));
            };
            if let Some(folder) = draft.cwd() {
                more("in the folder", folder);
            }
            for (name, value) in draft.verbatim_settings() {
                more("with", &format!("{name}={value}"));
            }
            for (name, value) in draft.verbatim_credentials() {
                more(name, value);
            }
            let variables: Vec<String> = draft.variables().into_iter().collect();
            if !variables.is_empty() {
                more("reads the variables", &variables.join(", "));
            }
            if !draft.always_allowed().is_empty() {
                more("asks nobody before it calls", &draft.always_allowed().join(", "));
            }
            if draft.is_never_confirmed() {
                lines.push("    asks nobody before any call (sensitivity: low)".to_owned());
            }
            if draft.is_unconfined() {
                lines.push("    unconfined: it can leave processes behind".to_owned());
            }
        }
        lines
    }

    fn as_json(&self, is_recorded: bool) -> Value {
        let servers = self.servers.iter().map(|draft| {
            json!({
                "id": draft.id,
                "disabled": draft.is_disabled,
                "transport": draft.transport(),
                "reached": draft.verbatim(),
                "cwd": draft.cwd(),
                "sets": by_name(draft.verbatim_settings()),
                "credentials": by_name(draft.verbatim_credentials()),
                "variables": draft.variables(),
                "alwaysAllow": draft.always_allowed(),
                "neverConfirmed": draft.is_never_confirmed(),
                "unconfined": draft.is_unconfined(),
            })
        });
        json!({
            "file": self.path,
            "state": if is_recorded { "trusted" } else { self.state() },
            "servers": servers.collect::<Vec<_>>(),
        })
    }
}

impl WorkflowReview {
    fn of(snapshot: &Snapshot, shadow: &Shadow, is_trusted: bool) -> Option<Self> {
        let (file, other) = match is_trusted {
            true => (&shadow.by, &shadow.entry),
            false => (&shadow.entry, &shadow.by),
        };
        let source = &snapshot.sources[other.source].source;
        let overrides = match source {
            catalog::Source::Bundled(_) => "the bundled one".to_owned(),
            catalog::Source::Folder { .. } => other.path.display().to_string(),
        };
        Some(Self {
            id: file.id.to_string(),
            path: file.path.to_path_buf(),
            digest: file.digest?,
            overrides,
            is_trusted,
        })
    }
}

/// The content of a file that is trusted; none where it cannot be read.
pub(super) fn content(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path).ok()?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A folder as the record knows it. One that is gone is taken as it is named.
pub(super) fn folder_of(folder: &Path) -> io::Result<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder))
}

fn by_name(pairs: Vec<(&str, &str)>) -> Value {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

/// A text of a stranger's on one line, with everything in it to be seen.
fn shown(text: &str) -> String {
    let text = text.replace('\n', "\\n");
    let text = spell_out(&text);
    let count = text.chars().count();
    if count <= SHOWN_CHARS_MAX {
        return text.into_owned();
    }
    let half = SHOWN_CHARS_MAX / 2;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    format!("{begin} [{} CHARACTERS ARE NOT SHOWN] {end}", count - 2 * half)
}
