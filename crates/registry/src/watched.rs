//! The registry as a running server sees it: an edit counts within a second, and nobody reads a file that has not
//! changed. A file that cannot be read any more keeps its last good state, for somebody may be in the middle of an edit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::load::{Part, Registry, State, assemble, load};
use super::place::{Kind, Places, Stamp};

/// How often the files are looked at, at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A file that was written less than this before it was read is read once more.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// A registry that follows its files.
pub struct Watched {
    places: Places,
    look_interval: Duration,
    began: Instant,
    /// When somebody looked last, in milliseconds since the beginning; at first nobody has.
    looked: AtomicU64,
    current: RwLock<Arc<Registry>>,
    /// Held by who looks.
    files: Mutex<Vec<Followed>>,
    /// Of the trust that the files were read with.
    trust_revision: AtomicU64,
}

/// A file that is followed.
struct Followed {
    /// None where it has to be read again in any case.
    stamp: Option<Stamp>,
    part: Part,
}

impl Watched {
    /// Reads everything once.
    pub fn new(places: Places) -> Self {
        Self::looking_every(places, LOOK_INTERVAL)
    }

    /// The same with another interval, for tests.
    pub fn looking_every(places: Places, look_interval: Duration) -> Self {
        let trust_revision = AtomicU64::new(places.trust_revision());
        let files = places.files();
        let files = files.into_iter().map(|(kind, path)| Followed::new(kind, &path, &places));
        let files: Vec<Followed> = files.collect();
        let registry = assemble(files.iter().map(|file| &file.part), None);
        Self {
            places,
            look_interval,
            began: Instant::now(),
            looked: AtomicU64::new(0),
            current: RwLock::new(Arc::new(registry)),
            files: Mutex::new(files),
            trust_revision,
        }
    }

    /// A registry that stays as it is, for commands that are over soon.
    pub fn fixed(registry: Registry) -> Self {
        Self {
            places: Places::default(),
            look_interval: LOOK_INTERVAL,
            began: Instant::now(),
            looked: AtomicU64::new(0),
            current: RwLock::new(Arc::new(registry)),
            files: Mutex::default(),
            trust_revision: AtomicU64::new(0),
        }
    }

    /// The registry as it is now. Mostly this is one read of a lock; once a second, the files are asked whether they
    /// changed.
    pub fn current(&self) -> Arc<Registry> {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let looked = self.looked.load(Ordering::Relaxed);
        let interval = u64::try_from(self.look_interval.as_millis()).unwrap_or(u64::MAX);
        let is_due = now.saturating_sub(looked) >= interval;
        // One looks, and the others go on with what there is.
        if is_due
            && self
                .looked
                .compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.look();
        }
        Arc::clone(&self.current.read())
    }

    /// Looks now, whenever somebody looked last.
    pub fn look(&self) {
        let mut files = self.files.lock();
        let revision = self.places.trust_revision();
        let is_trust_same = self.trust_revision.swap(revision, Ordering::Relaxed) == revision;
        let mut is_changed = false;
        for file in files.iter_mut() {
            is_changed |= match is_trust_same {
                true => file.look(&self.places),
                false => file.read_again(&self.places),
            };
        }
        if !is_changed {
            return;
        }
        let earlier = Arc::clone(&self.current.read());
        let mut registry = assemble(files.iter().map(|file| &file.part), Some(&earlier));
        registry.generation = earlier.generation + 1;
        let changed = registry.changed_since(&earlier);
        tracing::info!(?changed, "the registry has changed");
        for finding in registry.findings.iter().filter(|new| !earlier.findings.contains(new)) {
            tracing::warn!("{finding}");
        }
        *self.current.write() = Arc::new(registry);
    }
}

impl Followed {
    fn new(kind: Kind, path: &Path, places: &Places) -> Self {
        let (stamp, part) = fresh(kind, path, places);
        Self { stamp, part }
    }

    /// Whether it is other than it was.
    fn look(&mut self, places: &Places) -> bool {
        let stamp = Stamp::look(&self.part.path);
        if stamp.is_none() && self.part.state == State::Absent {
            return false;
        }
        if stamp.is_some() && stamp == self.stamp {
            return false;
        }
        let former = self.part.clone();
        let is_changed = self.read_again(places);
        if self.part.state != State::Broken || !matches!(former.state, State::Read | State::Kept) {
            return is_changed;
        }
        self.part.state = State::Kept;
        self.part.reading.servers.clone_from(&former.reading.servers);
        !self.part.is_same(&former)
    }

    /// The same, whether it was changed or not, and without keeping what was good: nobody may trust that any more.
    fn read_again(&mut self, places: &Places) -> bool {
        let (stamp, part) = fresh(self.part.kind, &self.part.path, places);
        self.stamp = stamp;
        let is_same = part.is_same(&self.part);
        self.part = part;
        !is_same
    }
}

fn fresh(kind: Kind, path: &Path, places: &Places) -> (Option<Stamp>, Part) {
    let loaded = load(kind, path, places);
    let stamp = match &loaded {
        Ok(Some((content, _))) => Some(content.stamp.clone()),
        _ => None,
    };
    let stamp = stamp.filter(|stamp| stamp.is_settled(SETTLED_AFTER));
    (stamp, Part::of(kind, path.to_path_buf(), loaded))
}
