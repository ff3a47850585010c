//! Watching the sources: an edit, a new file or a removed one is served within a second, without a
//! restart. A burst of edits costs one reload, and a file that somebody is still writing keeps its
//! last state until it is closed.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::catalog::{Catalog, Change};

/// A burst is over when nothing happens for this long…
const QUIET: Duration = Duration::from_millis(60);
/// …or has lasted this long: an editor that never stops must not keep edits invisible.
const BURST_MAX: Duration = Duration::from_millis(400);
/// A file that was written to and not closed is taken as it is after this long.
#[cfg(target_os = "linux")]
const OPEN_MAX: Duration = Duration::from_secs(10);
/// Elsewhere the closing of a file is not told, so a pause must do.
#[cfg(not(target_os = "linux"))]
const OPEN_MAX: Duration = Duration::from_millis(200);
/// A file that was created and neither written to nor closed is taken after this long.
const CREATED_MAX: Duration = Duration::from_millis(200);
/// How often to look where the system cannot tell about changes.
const POLL: Duration = Duration::from_secs(1);

/// A running watch; it ends when this is dropped.
#[derive(Debug)]
pub struct Watch {
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Event(notify::Result<Event>),
    Stop,
}

impl Watch {
    /// Keeps the catalogue current. `changed` is called after each reload that changed something, on
    /// the watching thread.
    pub fn start(
        catalog: Arc<Catalog>,
        changed: impl FnMut(&Change) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (messages, inbox) = channel();
        let events = messages.clone();
        let watcher = notify::recommended_watcher(move |event| {
            // The other end is gone only when the watch ends.
            let _ = events.send(Message::Event(event));
        });
        let mut watching = Watching {
            catalog,
            changed: Box::new(changed),
            watcher: watcher.ok(),
            armed: HashMap::new(),
            must_poll: false,
        };
        // Armed before the first look, so that nothing falls between the two.
        watching.arm();
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watching.run(&inbox))?;
        Ok(Self { messages, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watching {
    catalog: Arc<Catalog>,
    changed: Box<dyn FnMut(&Change) + Send>,
    watcher: Option<RecommendedWatcher>,
    /// The folders that are watched, and how.
    armed: HashMap<PathBuf, RecursiveMode>,
    must_poll: bool,
}

/// What has happened since the last reload.
#[derive(Default)]
struct Burst {
    touched: HashSet<PathBuf>,
    since: Option<Instant>,
    must_look: bool,
}

impl Watching {
    fn run(&mut self, inbox: &Receiver<Message>) {
        let mut burst = Burst::default();
        // What changed between loading and arming is found by a first look.
        burst.begin();
        // Files that were written to and not closed yet, with when they are taken all the same.
        let mut open: HashMap<PathBuf, Instant> = HashMap::new();
        loop {
            match inbox.recv_timeout(self.patience(&burst, &open)) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Event(event)) => {
                    self.take(event, &mut burst, &mut open);
                    let is_over = burst.since.is_some_and(|since| since.elapsed() >= BURST_MAX);
                    if !is_over {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            let given_up = open.extract_if(|_, deadline| *deadline <= now);
            burst.touched.extend(given_up.map(|(path, _)| path));
            if burst.must_look || self.must_poll || !burst.touched.is_empty() {
                let Burst { touched, .. } = std::mem::take(&mut burst);
                let is_unsettled = self.reload(&touched, &open);
                if is_unsettled {
                    burst.begin();
                    burst.touched = touched;
                }
            }
        }
    }

    /// How long to wait for the next event before acting.
    fn patience(&self, burst: &Burst, open: &HashMap<PathBuf, Instant>) -> Duration {
        if burst.since.is_some() {
            return QUIET;
        }
        let idle = if self.must_poll { POLL } else { Duration::from_secs(3600) };
        let waits =
            open.values().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        waits.chain([idle]).min().unwrap_or(idle)
    }

    fn take(
        &mut self,
        event: notify::Result<Event>,
        burst: &mut Burst,
        open: &mut HashMap<PathBuf, Instant>,
    ) {
        let Ok(event) = event else {
            // The queue overflowed or a watch was lost: look at everything.
            burst.begin();
            return;
        };
        if event.need_rescan() {
            burst.begin();
        }
        for path in event.paths {
            if !self.concerns(&path) {
                continue;
            }
            match event.kind {
                EventKind::Modify(ModifyKind::Data(_)) => {
                    open.insert(path, Instant::now() + OPEN_MAX);
                    continue;
                }
                // Whoever creates a file mostly writes to it next; a hard link is there at once.
                EventKind::Create(CreateKind::File) => {
                    open.insert(path, Instant::now() + CREATED_MAX);
                    continue;
                }
                EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
                EventKind::Access(_) => continue,
                EventKind::Remove(_) => {
                    // A folder that comes back needs a new watch.
                    self.armed.remove(&path);
                }
                _ => {}
            }
            open.remove(&path);
            burst.touched.insert(path);
            burst.begin();
        }
    }

    /// Whether a path is a source, inside one, or on the way to one that does not exist yet.
    fn concerns(&self, path: &Path) -> bool {
        self.catalog.folders().any(|folder| {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
            path.starts_with(&folder) || folder.starts_with(path)
        })
    }

    /// Whether it must be done again shortly.
    fn reload(&mut self, touched: &HashSet<PathBuf>, open: &HashMap<PathBuf, Instant>) -> bool {
        self.arm();
        let (change, is_unsettled) =
            self.catalog.reload(touched.iter().cloned(), open.keys().cloned());
        if !change.is_empty() {
            (self.changed)(&change);
        }
        is_unsettled
    }

    /// Watches every source, or the nearest folder above one that does not exist yet.
    fn arm(&mut self) {
        let mut wanted: HashMap<PathBuf, RecursiveMode> = HashMap::new();
        for folder in self.catalog.folders() {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
            if folder.is_dir() {
                wanted.insert(folder, RecursiveMode::Recursive);
            } else if let Some(above) = folder.ancestors().skip(1).find(|above| above.is_dir()) {
                wanted.entry(above.to_path_buf()).or_insert(RecursiveMode::NonRecursive);
            }
        }
        let Some(watcher) = &mut self.watcher else {
            self.must_poll = true;
            return;
        };
        self.armed.retain(|path, mode| {
            let stays = wanted.get(path) == Some(mode);
            if !stays {
                let _ = watcher.unwatch(path);
            }
            stays
        });
        self.must_poll = false;
        for (path, mode) in wanted {
            if let Entry::Vacant(slot) = self.armed.entry(path) {
                match watcher.watch(slot.key(), mode) {
                    Ok(()) => drop(slot.insert(mode)),
                    // Out of watches, or gone again: polling finds it.
                    Err(_) => self.must_poll = true,
                }
            }
        }
    }
}

impl Burst {
    fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.must_look = true;
    }
}
