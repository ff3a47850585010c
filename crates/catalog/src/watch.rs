//! Watching the sources: an edit, a new file or a removed one is served within a second, without a
//! restart. A burst of edits costs one reload, and a file that somebody is still writing keeps its
//! last state until it is closed.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use workflow::{Format, Scrutiny};

use crate::catalog::{Catalog, Change};
use crate::load::read_with;

/// A burst is over when nothing happens for this long…
const QUIET: Duration = Duration::from_millis(60);
/// …or has lasted this long: an editor that never stops must not keep edits invisible.
const BURST_MAX: Duration = Duration::from_millis(400);
/// A file that was written to and not closed is taken after this long, if it can be used.
#[cfg(target_os = "linux")]
const OPEN_MAX: Duration = Duration::from_secs(10);
/// Elsewhere the closing of a file is not told, so a pause must do.
#[cfg(not(target_os = "linux"))]
const OPEN_MAX: Duration = Duration::from_millis(200);
/// A file that was created and neither written to nor closed is taken after this long.
const CREATED_MAX: Duration = Duration::from_millis(200);
/// How many events may wait for us.
const EVENTS_MAX: usize = 4_096;
/// How often to look where the system cannot tell about changes.
const POLL: Duration = Duration::from_secs(1);

/// A running watch; it ends when this is dropped.
#[derive(Debug)]
pub struct Watch {
    messages: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
}

/// Files beside the sources that somebody wants to hear about.
#[derive(Default)]
pub struct Beside {
    pub files: Vec<PathBuf>,
    /// One of them may be another than it was. Called on the watching thread; a burst of edits is one call.
    pub touched: Option<Box<dyn FnMut() + Send>>,
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
        Self::start_with(catalog, changed, Beside::default())
    }

    /// The same, with an eye on other files.
    pub fn start_with(
        catalog: Arc<Catalog>,
        changed: impl FnMut(&Change) + Send + 'static,
        mut beside: Beside,
    ) -> std::io::Result<Self> {
        beside.files = beside.files.iter().map(|file| absolute(file)).collect();
        let (messages, inbox) = sync_channel(EVENTS_MAX);
        let events = messages.clone();
        let has_lost = Arc::new(AtomicBool::new(false));
        let loses = Arc::clone(&has_lost);
        let watcher = notify::recommended_watcher(move |event| {
            // What does not fit is made up for by a look at everything.
            if events.try_send(Message::Event(event)).is_err() {
                loses.store(true, Ordering::Relaxed);
            }
        });
        let mut watching = Watching {
            catalog,
            changed: Box::new(changed),
            beside,
            watcher: watcher.ok(),
            armed: HashMap::new(),
            must_poll: false,
            has_lost,
        };
        // Armed before the first look, so that nothing falls between the two.
        watching.arm();
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watching.run(&inbox))?;
        Ok(Self { messages, thread: Some(thread) })
    }
}

impl Watch {
    /// Ends the watch without waiting for a reload that is under way.
    pub fn let_go(mut self) {
        let _ = self.messages.try_send(Message::Stop);
        self.thread = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = self.messages.send(Message::Stop);
            let _ = thread.join();
        }
    }
}

struct Watching {
    catalog: Arc<Catalog>,
    changed: Box<dyn FnMut(&Change) + Send>,
    beside: Beside,
    watcher: Option<RecommendedWatcher>,
    /// The folders that are watched: how, and which folder it was then. A watch follows the folder and not
    /// its name, so one that was swapped for another needs a new watch.
    armed: HashMap<PathBuf, (RecursiveMode, Identity)>,
    must_poll: bool,
    /// There were more events than we could take.
    has_lost: Arc<AtomicBool>,
}

/// What has happened since the last reload.
#[derive(Default)]
struct Burst {
    touched: HashSet<PathBuf>,
    since: Option<Instant>,
    must_look: bool,
    /// Of the files beside, one was touched.
    has_beside: bool,
    /// How long a file must still be left alone.
    rest: Option<Duration>,
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
                    if self.has_lost.swap(false, Ordering::Relaxed) {
                        // A closing may be among what was lost: nothing counts as being written.
                        open.clear();
                        burst.begin();
                    }
                    let is_over = burst.since.is_some_and(|since| since.elapsed() >= BURST_MAX);
                    if !is_over {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.give_up(&mut burst, &mut open);
            let must_look = burst.must_look || self.must_poll;
            let has_touched = must_look || !burst.touched.is_empty();
            if has_touched || burst.has_beside {
                let Burst { touched, has_beside, .. } = std::mem::take(&mut burst);
                if must_look || has_beside {
                    self.look_beside();
                }
                // What a file beside says may decide which workflow counts.
                if let Some(rest) = self.reload(&touched, &open) {
                    burst.begin();
                    burst.touched = touched;
                    burst.rest = Some(rest);
                }
            }
        }
    }

    fn look_beside(&mut self) {
        self.arm();
        if let Some(touched) = &mut self.beside.touched {
            touched();
        }
    }

    /// Files that nobody has closed are taken after a while, if they can be used; else the wait goes on.
    fn give_up(&self, burst: &mut Burst, open: &mut HashMap<PathBuf, Instant>) {
        let now = Instant::now();
        for (path, deadline) in open.iter_mut().filter(|(_, deadline)| **deadline <= now) {
            if is_usable(path) {
                burst.touched.insert(path.clone());
            } else {
                *deadline = now + OPEN_MAX;
            }
        }
        open.retain(|path, _| !burst.touched.contains(path));
    }

    /// How long to wait for the next event before acting.
    fn patience(&self, burst: &Burst, open: &HashMap<PathBuf, Instant>) -> Duration {
        if burst.since.is_some() {
            return burst.rest.unwrap_or(QUIET);
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
            if self.is_beside(&path) && !is_look(event.kind) {
                burst.since.get_or_insert_with(Instant::now);
                burst.has_beside = true;
            }
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
                _ => {}
            }
            open.remove(&path);
            burst.touched.insert(path);
            burst.begin();
        }
    }

    /// Whether a path is a file beside, or on the way to one that does not exist yet.
    fn is_beside(&self, path: &Path) -> bool {
        self.beside.files.iter().any(|file| file.starts_with(path))
    }

    /// Whether a path is a source, inside one, or on the way to one that does not exist yet.
    fn concerns(&self, path: &Path) -> bool {
        self.catalog.folders().any(|folder| {
            let folder = absolute(folder);
            path.starts_with(&folder) || folder.starts_with(path)
        })
    }

    /// After how long it must be done again, if some file must be left alone for now.
    fn reload(
        &mut self,
        touched: &HashSet<PathBuf>,
        open: &HashMap<PathBuf, Instant>,
    ) -> Option<Duration> {
        self.arm();
        let (change, rest) = self.catalog.reload(touched.iter().cloned(), open.keys().cloned());
        if !change.is_empty() {
            (self.changed)(&change);
        }
        rest
    }

    /// Watches every source, and the folder above it, where a source appears, goes away or is swapped; or the
    /// nearest folder above one that does not exist yet.
    fn arm(&mut self) {
        let mut wanted: HashMap<PathBuf, (RecursiveMode, Identity)> = HashMap::new();
        for folder in self.catalog.folders() {
            let folder = absolute(folder);
            let above = folder.ancestors().skip(1).find(|above| above.is_dir());
            if let Some(above) = above {
                let watch = (RecursiveMode::NonRecursive, identity(above));
                wanted.entry(above.to_path_buf()).or_insert(watch);
            }
            if folder.is_dir() {
                let identity = identity(&folder);
                wanted.insert(folder, (RecursiveMode::Recursive, identity));
            }
        }
        for file in &self.beside.files {
            if let Some(above) = file.ancestors().skip(1).find(|above| above.is_dir()) {
                let watch = (RecursiveMode::NonRecursive, identity(above));
                wanted.entry(above.to_path_buf()).or_insert(watch);
            }
        }
        let Some(watcher) = &mut self.watcher else {
            self.must_poll = true;
            return;
        };
        self.armed.retain(|path, watch| {
            let stays = wanted.get(path) == Some(watch);
            if !stays {
                let _ = watcher.unwatch(path);
            }
            stays
        });
        self.must_poll = false;
        for (path, watch) in wanted {
            if let Entry::Vacant(slot) = self.armed.entry(path) {
                match watcher.watch(slot.key(), watch.0) {
                    Ok(()) => drop(slot.insert(watch)),
                    // Out of watches, or gone again: polling finds it.
                    Err(_) => self.must_poll = true,
                }
            }
        }
    }
}

/// Whether somebody only looked, as we do ourselves.
fn is_look(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write))
}

/// Which folder a path leads to, where the system can tell.
type Identity = Option<(u64, u64)>;

#[cfg(unix)]
fn identity(path: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Identity {
    None
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Whether a file that nobody has closed holds a workflow that can be used all the same.
fn is_usable(path: &Path) -> bool {
    let format = Format::of(&path.to_string_lossy());
    let reading = format.and_then(|format| {
        read_with(path, |bytes| workflow::read(bytes, format, Scrutiny::Syntax))
    });
    // A file that is gone has nothing to wait for, and one that is none of ours neither.
    reading.is_none_or(|(reading, _)| reading.workflow.is_some())
}

impl Burst {
    fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
        self.must_look = true;
    }
}
