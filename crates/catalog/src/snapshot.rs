//! The catalogue at one moment: never changed, only replaced. Lookups borrow from it and copy nothing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use workflow::nearest::nearest;
use workflow::{Finding, Workflow};

use crate::load::Stamp;
use crate::source::{Digest, Kind, OverridePolicy, Source};

/// One file, good or broken.
#[derive(Debug)]
pub struct Entry {
    /// The id by which it answers: its own, or where that cannot be read, the file's name.
    pub id: Box<str>,
    /// Which source it came from, as an index into [`Snapshot::sources`].
    pub source: usize,
    /// The file, or the name of a bundled definition.
    pub path: Box<Path>,
    /// Absent where the definition cannot be used; the findings say why.
    pub workflow: Option<Workflow>,
    pub findings: Box<[Finding]>,
    /// Of the content that was read, where it may need consent to override another.
    pub digest: Option<Digest>,
    /// The id is a guess by the file's name.
    pub(crate) is_guess: bool,
    pub(crate) stamp: Option<Stamp>,
}

/// A definition that is not served because another one has its id.
#[derive(Debug, Clone)]
pub struct Shadow {
    pub entry: Arc<Entry>,
    pub by: Arc<Entry>,
    pub reason: ShadowReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShadowReason {
    /// A later file counts.
    Overridden,
    /// It would override a trusted one, and nobody has consented to that.
    Untrusted,
}

/// What was found in a source.
#[derive(Debug)]
pub struct SourceReport {
    pub source: Source,
    pub state: SourceState,
    /// Findings that belong to no single file.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceState {
    Read,
    Missing,
    Unreadable,
}

#[derive(Debug, Default)]
pub struct Snapshot {
    pub sources: Vec<SourceReport>,
    by_id: HashMap<Box<str>, Arc<Entry>>,
    /// The entries that answer, by id.
    served: Vec<Arc<Entry>>,
    shadows: Vec<Shadow>,
}

impl Snapshot {
    /// Puts entries in order: later ones win by id. A guessed id never hides a good workflow, and a file that is not
    /// trusted never hides one that is.
    ///
    /// A file that overrides others by consent and changes without it keeps the content that it had in `before`: without
    /// that, any edit would bring back what was overridden, perhaps without its gate. Removing the file does.
    pub(crate) fn new(
        before: &Self,
        sources: Vec<SourceReport>,
        entries: Vec<Arc<Entry>>,
        policy: &dyn OverridePolicy,
    ) -> Self {
        let is_trusted = |entry: &Entry| match &sources[entry.source].source {
            Source::Bundled(_) | Source::Folder { kind: Kind::User, .. } => true,
            Source::Folder { kind, .. } => {
                let digest = entry.digest.as_ref();
                digest.is_some_and(|digest| policy.may_override(*kind, &entry.path, digest))
            }
        };
        let overriding = before.overrides().map(|shadow| &shadow.by).filter(|by| is_trusted(by));
        let overriding: HashMap<(usize, &Path), &Arc<Entry>> =
            overriding.map(|by| ((by.source, &*by.path), by)).collect();
        let mut withheld = Vec::new();
        let mut by_id: HashMap<Box<str>, Arc<Entry>> = HashMap::with_capacity(entries.len());
        let mut lost = Vec::new();
        for entry in entries {
            let entry = match overriding.get(&(entry.source, &*entry.path)).copied() {
                Some(kept) if !is_trusted(&entry) => {
                    if before.untrusted().all(|shadow| !Arc::ptr_eq(&shadow.entry, &entry)) {
                        policy.on_withheld(&entry.path);
                    }
                    let by = Arc::clone(kept);
                    withheld.push(Shadow { entry, by, reason: ShadowReason::Untrusted });
                    Arc::clone(kept)
                }
                _ => entry,
            };
            let loses = by_id.get(&entry.id).and_then(|earlier| {
                if entry.is_guess && earlier.workflow.is_some() {
                    return Some(ShadowReason::Overridden);
                }
                let is_denied = is_trusted(earlier) && !is_trusted(&entry);
                is_denied.then_some(ShadowReason::Untrusted)
            });
            if let Some(reason) = loses {
                lost.push((entry, reason));
            } else if let Some(earlier) = by_id.insert(entry.id.clone(), entry) {
                lost.push((earlier, ShadowReason::Overridden));
            }
        }
        let mut served: Vec<Arc<Entry>> = by_id.values().cloned().collect();
        served.sort_by(|left, right| left.id.cmp(&right.id));
        let shadows = lost.into_iter().filter_map(|(entry, reason)| {
            Some(Shadow { by: Arc::clone(by_id.get(&entry.id)?), entry, reason })
        });
        // The latest state of a file comes last: by it the next load knows the file.
        let shadows = shadows.chain(withheld).collect();
        Self { sources, by_id, served, shadows }
    }

    /// The definitions of the product or the user that a project's or a named file takes the place of.
    pub fn overrides(&self) -> impl Iterator<Item = &Shadow> {
        let is_own = |entry: &Entry| match &self.sources[entry.source].source {
            Source::Bundled(_) => true,
            Source::Folder { kind, .. } => *kind == Kind::User,
        };
        self.shadows.iter().filter(move |shadow| {
            shadow.reason == ShadowReason::Overridden
                && is_own(&shadow.entry)
                && !is_own(&shadow.by)
        })
    }

    /// Files that would override a trusted definition, or change one that does, without consent to that content.
    pub fn untrusted(&self) -> impl Iterator<Item = &Shadow> {
        self.shadows.iter().filter(|shadow| shadow.reason == ShadowReason::Untrusted)
    }

    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.by_id.get(id).map(|entry| &**entry)
    }

    /// The id that may have been meant.
    pub fn nearest(&self, id: &str) -> Option<&str> {
        nearest(id, self.served.iter().map(|entry| &*entry.id))
    }

    /// What answers, good and broken, in the order of ids.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.served
    }

    /// The good ones, in the order of ids.
    pub fn workflows(&self) -> impl Iterator<Item = &Workflow> {
        self.served.iter().filter_map(|entry| entry.workflow.as_ref())
    }

    pub fn shadows(&self) -> &[Shadow] {
        &self.shadows
    }

    /// Every file, whether it answers or is hidden.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.served.iter().chain(self.shadows.iter().map(|shadow| &shadow.entry))
    }
}
