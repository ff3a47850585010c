//! The catalogue: the current snapshot, and replacing it as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use workflow::Workflow;

use crate::load::{Known, load};
use crate::snapshot::{Entry, Snapshot};
use crate::source::{NoProject, OverridePolicy, Source};

pub struct Catalog {
    sources: Vec<Source>,
    policy: Arc<dyn OverridePolicy>,
    current: RwLock<Arc<Snapshot>>,
    /// One reload at a time, so that a later one never loses to an earlier one.
    reloading: Mutex<()>,
}

/// What a reload changed, by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    pub added: Vec<Box<str>>,
    pub changed: Vec<Box<str>>,
    pub removed: Vec<Box<str>>,
    /// Whether a list of all workflows reads differently now.
    pub lists: bool,
}

impl Change {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }

    fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let mut change = Self::default();
        for entry in after.entries() {
            match before.get(&entry.id) {
                None => change.added.push(entry.id.clone()),
                Some(earlier) if !std::ptr::eq(earlier, &**entry) => {
                    change.lists |= listed(earlier) != listed(entry);
                    change.changed.push(entry.id.clone());
                }
                Some(_) => {}
            }
        }
        let gone = before.entries().iter().filter(|entry| after.get(&entry.id).is_none());
        change.removed.extend(gone.map(|entry| entry.id.clone()));
        change.lists |= !change.added.is_empty() || !change.removed.is_empty();
        change
    }
}

/// What lists show of a workflow; nothing, where it cannot be used.
fn listed(entry: &Entry) -> Option<impl PartialEq + '_> {
    let workflow = entry.workflow.as_ref()?;
    let Workflow { name, description, version, clarification_prompts, .. } = workflow;
    Some((name, description, version, workflow.category(), clarification_prompts))
}

impl Catalog {
    /// A catalogue that is empty until [`Catalog::load`] fills it.
    pub fn new(sources: Vec<Source>) -> Self {
        Self::with_policy(sources, Arc::new(NoProject))
    }

    /// The same, with a say in what overrides what.
    pub fn with_policy(sources: Vec<Source>, policy: Arc<dyn OverridePolicy>) -> Self {
        Self { sources, policy, current: RwLock::default(), reloading: Mutex::new(()) }
    }

    /// A catalogue with everything that the sources hold.
    pub fn open(sources: Vec<Source>) -> Self {
        let catalog = Self::new(sources);
        catalog.load();
        catalog
    }

    /// Loads everything that the sources hold.
    pub fn load(&self) {
        let _turn = self.reloading.lock();
        let (reports, entries) = load(&self.sources, &Known::default());
        let before = self.snapshot();
        self.replace(Arc::new(Snapshot::new(&before, reports, entries, &*self.policy)));
    }

    /// The catalogue as it is now. Hold it as long as an answer takes: it does not change.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let current = self.current.read();
        Arc::clone(&current)
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().filter_map(|source| match source {
            Source::Folder { path, .. } => Some(path.as_path()),
            Source::Bundled(_) => None,
        })
    }

    /// Looks at all sources again. Files that have not changed are not read again, unless `touched`
    /// names them; `unfinished` ones keep their last state. Says too after how long some file
    /// must be looked at again.
    pub(crate) fn reload(
        &self,
        touched: impl IntoIterator<Item = PathBuf>,
        unfinished: impl IntoIterator<Item = PathBuf>,
    ) -> (Change, Option<Duration>) {
        let _turn = self.reloading.lock();
        let before = self.snapshot();
        let files = before.files().map(|entry| ((entry.source, &*entry.path), entry));
        let known = Known {
            entries: files.collect(),
            touched: touched.into_iter().collect(),
            unfinished: unfinished.into_iter().collect(),
            is_watched: true,
            rest_ms: AtomicU64::new(0),
        };
        let (reports, entries) = load(&self.sources, &known);
        let after = Arc::new(Snapshot::new(&before, reports, entries, &*self.policy));
        let change = Change::between(&before, &after);
        self.replace(after);
        let rest = known.rest_ms.into_inner();
        (change, (rest > 0).then(|| Duration::from_millis(rest)))
    }

    fn replace(&self, snapshot: Arc<Snapshot>) {
        *self.current.write() = snapshot;
    }
}
