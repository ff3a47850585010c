//! Workspace trust: which files of a folder a person has consented to, by their content. A file that can start programs,
//! read the environment or replace a workflow takes effect only when it is trusted.
//!
//! - The user's own files are trusted, unless they lie inside the workspace.
//! - A project's files need consent, and so do files named by options or the environment that lie inside the workspace.
//! - Other named files are trusted with the content that they had at the start.
//!
//! Decisions are made when a file is loaded, never per call. They protect from a folder, and from an agent that can only
//! write files; an agent with a shell of the same user can give consent itself.

mod record;
mod workspace;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use catalog::{Digest, OverridePolicy};
use parking_lot::{Mutex, MutexGuard};
use registry::place;
use registry::{Trust, TrustPolicy};

pub use record::{Consent, TrustError, TrustRecord, digest_of, key};
use workspace::{lies_within, workspace};

/// Knows what is trusted in this process: by the record, and by what was named at the start.
pub struct WorkspaceTrust {
    /// None where the platform has no folder for it: then nothing is recorded, and nothing is trusted by it.
    record: Option<TrustRecord>,
    workspace: OnceLock<Option<PathBuf>>,
    start: Mutex<Start>,
    seen: Mutex<Seen>,
}

/// What named files held when we started.
#[derive(Default)]
struct Start {
    registry: Option<(PathBuf, String)>,
    workflows: HashSet<(PathBuf, Digest)>,
    /// The first load is over: what comes later is a change.
    is_over: bool,
}

/// The record as it was read last.
#[derive(Default)]
struct Seen {
    revision: Option<u64>,
    consents: Arc<Vec<Consent>>,
}

impl WorkspaceTrust {
    /// `named` is a registry that was named by an option or the environment. It is read now, so that a change from here on
    /// counts as one.
    pub fn new(record: Option<TrustRecord>, named: Option<&Path>) -> Arc<Self> {
        let trust = Self {
            record,
            workspace: OnceLock::new(),
            start: Mutex::default(),
            seen: Mutex::default(),
        };
        if let Some(path) = named.filter(|path| !trust.is_inside(path)) {
            let text = place::text(path).ok().flatten();
            trust.start().registry = key(path).ok().zip(text);
        }
        Arc::new(trust)
    }

    /// Decides by the record alone: a file named at the start is not trusted for that. For a review, whose consent must
    /// count in other processes too.
    pub fn by_record(record: Option<TrustRecord>) -> Arc<Self> {
        let trust = Self::new(record, None);
        trust.end_start();
        trust
    }

    /// The first load of the workflows is over.
    pub(crate) fn end_start(&self) {
        self.start().is_over = true;
    }

    fn start(&self) -> MutexGuard<'_, Start> {
        self.start.lock()
    }

    /// Whether a file or folder belongs to the workspace, so that whoever works there may have written it.
    fn is_inside(&self, path: &Path) -> bool {
        let workspace = self.workspace.get_or_init(workspace);
        workspace.as_deref().is_some_and(|workspace| lies_within(path, workspace))
    }

    /// The consent to a file, where there is one. A record that cannot be read has none.
    fn consent(&self, key: &Path) -> Option<Consent> {
        self.consents().iter().find(|consent| Path::new(&consent.file) == key).cloned()
    }

    fn consents(&self) -> Arc<Vec<Consent>> {
        let Some(record) = &self.record else { return Arc::default() };
        // A folder must not bring its own consent.
        if self.is_inside(record.path()) {
            return Arc::default();
        }
        let revision = record.revision();
        let mut seen = self.seen.lock();
        if seen.revision != Some(revision) {
            seen.consents = Arc::new(record.read().unwrap_or_else(|error| {
                tracing::warn!("{error}; nothing is trusted by it");
                Vec::new()
            }));
            seen.revision = Some(revision);
        }
        Arc::clone(&seen.consents)
    }
}

/// Whether a file or folder belongs to the workspace of this process.
pub fn is_in_workspace(path: &Path) -> bool {
    workspace().is_some_and(|workspace| lies_within(path, &workspace))
}

impl TrustPolicy for WorkspaceTrust {
    fn trust(&self, kind: place::Kind, path: &Path, text: &str) -> Trust {
        if kind == place::Kind::User && !self.is_inside(path) {
            return Trust::Given;
        }
        let Ok(key) = key(path) else { return Trust::Missing };
        let consent = self.consent(&key);
        if consent.as_ref().is_some_and(|consent| consent.sha256 == digest_of(text.as_bytes())) {
            return Trust::Given;
        }
        let start = self.start();
        match start.registry.as_ref().filter(|(named, _)| *named == key) {
            Some((_, trusted)) if trusted == text => return Trust::Given,
            // Consent that was given later counts more.
            Some((_, trusted)) if consent.is_none() => {
                return Trust::Outdated { trusted: trusted.clone() };
            }
            _ => {}
        }
        match consent.and_then(|consent| consent.content) {
            Some(trusted) => Trust::Outdated { trusted },
            None => Trust::Missing,
        }
    }

    fn revision(&self) -> u64 {
        self.record.as_ref().map_or(0, TrustRecord::revision)
    }

    fn record(&self) -> Option<PathBuf> {
        let record = self.record.as_ref()?;
        // It may be there, or the one above may be missing: then that is watched.
        let _ = record.make_watchable();
        Some(record.path().to_owned())
    }
}

impl OverridePolicy for WorkspaceTrust {
    fn may_override(&self, kind: catalog::Kind, path: &Path, digest: &Digest) -> bool {
        let Ok(key) = key(path) else { return false };
        let sha256 = record::hex(digest);
        if self.consent(&key).is_some_and(|consent| consent.sha256 == sha256) {
            return true;
        }
        if kind == catalog::Kind::Project || self.is_inside(path) {
            return false;
        }
        let mut start = self.start();
        let file = (key, *digest);
        if !start.is_over {
            start.workflows.insert(file);
            return true;
        }
        start.workflows.contains(&file)
    }

    fn on_withheld(&self, path: &Path) {
        tracing::warn!(
            file = %path.display(),
            "changed workflow is not trusted: its trusted content stays in effect; run `workflowlookup trust`, or restart if \
             an option names its folder"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const OTHER: &str = r#"[{"id": "a", "mcp": {"command": "y"}}]"#;
    const TEXT: &str = r#"[{"id": "a", "mcp": {"command": "x"}}]"#;

    fn record(folder: &Path) -> TrustRecord {
        TrustRecord::at(folder.join("state").join("trust.json"))
    }

    #[test]
    fn consent_is_to_one_content_of_one_file() {
        let root = tempfile::tempdir().unwrap();
        let file = |folder: &str| {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            root.path().join(folder).join("mcp.registry.json")
        };
        let (one, other) = (file("one"), file("other"));
        let record = record(root.path());
        let trust = WorkspaceTrust::new(Some(record.clone()), None);
        let project = place::Kind::Project;
        assert_eq!(trust.trust(project, &one, TEXT), Trust::Missing);
        record.grant([Consent::to_registry(&one, TEXT).unwrap()]).unwrap();
        assert_eq!(trust.trust(project, &one, TEXT), Trust::Given);
        assert_eq!(trust.trust(project, &other, TEXT), Trust::Missing);
        assert_eq!(trust.trust(project, &one, OTHER), Trust::Outdated { trusted: TEXT.to_owned() });
        record.revoke(|file| file.starts_with(root.path().canonicalize().unwrap())).unwrap();
        assert_eq!(trust.trust(project, &one, TEXT), Trust::Missing);
        assert_eq!(trust.trust(place::Kind::User, &one, TEXT), Trust::Given);
    }

    #[test]
    fn named_registry_is_trusted_as_it_was_at_the_start() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mine.json");
        fs::write(&path, TEXT).unwrap();
        let trust = WorkspaceTrust::new(Some(record(root.path())), Some(&path));
        let named = place::Kind::Named;
        assert_eq!(trust.trust(named, &path, TEXT), Trust::Given);
        let outdated = Trust::Outdated { trusted: TEXT.to_owned() };
        assert_eq!(trust.trust(named, &path, OTHER), outdated);
        // The sources of this crate are the workspace of its tests.
        let inside = Path::new("Cargo.toml");
        let trust = WorkspaceTrust::new(Some(record(root.path())), Some(inside));
        assert_eq!(
            trust.trust(named, inside, &fs::read_to_string(inside).unwrap()),
            Trust::Missing
        );
    }

    #[test]
    fn named_workflows_override_as_they_were_at_the_start() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("release.json");
        let trust = WorkspaceTrust::new(Some(record(root.path())), None);
        let (first, later) = ([1; 32], [2; 32]);
        assert!(trust.may_override(catalog::Kind::Option, &path, &first));
        assert!(!trust.may_override(catalog::Kind::Project, &path, &first));
        assert!(!trust.may_override(catalog::Kind::Option, Path::new("src/release.json"), &first));
        let reviewed = WorkspaceTrust::by_record(Some(record(root.path())));
        assert!(!reviewed.may_override(catalog::Kind::Option, &path, &first));
        trust.end_start();
        assert!(trust.may_override(catalog::Kind::Option, &path, &first));
        assert!(!trust.may_override(catalog::Kind::Option, &path, &later));
        let record = record(root.path());
        record.grant([Consent::to_workflow(&path, &later).unwrap()]).unwrap();
        assert!(trust.may_override(catalog::Kind::Project, &path, &later));
        assert!(!trust.may_override(catalog::Kind::Project, &path, &first));
    }
}
