//! The catalogue at one moment: never changed, only replaced. Lookups borrow from it and copy nothing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use workflow::nearest::nearest;
use workflow::{Finding, Workflow};

use crate::load::Stamp;
use crate::source::Source;

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
    /// The id is a guess by the file's name.
    pub(crate) is_guess: bool,
    pub(crate) stamp: Option<Stamp>,
}

/// A definition that is not served because a later one has its id.
#[derive(Debug, Clone)]
pub struct Shadow {
    pub entry: Arc<Entry>,
    pub by: Arc<Entry>,
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
    /// Puts entries in order: later ones win by id. A guessed id never hides a good workflow.
    pub(crate) fn new(sources: Vec<SourceReport>, entries: Vec<Arc<Entry>>) -> Self {
        let mut by_id: HashMap<Box<str>, Arc<Entry>> = HashMap::with_capacity(entries.len());
        let mut lost = Vec::new();
        for entry in entries {
            let loses = by_id
                .get(&entry.id)
                .is_some_and(|earlier| entry.is_guess && earlier.workflow.is_some());
            if loses {
                lost.push(entry);
            } else if let Some(earlier) = by_id.insert(entry.id.clone(), entry) {
                lost.push(earlier);
            }
        }
        let mut served: Vec<Arc<Entry>> = by_id.values().cloned().collect();
        served.sort_by(|left, right| left.id.cmp(&right.id));
        let shadows = lost
            .into_iter()
            .filter_map(|entry| Some(Shadow { by: Arc::clone(by_id.get(&entry.id)?), entry }))
            .collect();
        Self { sources, by_id, served, shadows }
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
