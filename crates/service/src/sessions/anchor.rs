//! The anchor: a small file, away from the store, that says how far the store had come. A store that has come less far is
//! an older copy, and one of another name is another store. It is compared when the store is opened and once a second
//! while it is, and written once a second while the store changes and when the program ends: a rollback within the last
//! second is not noticed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use hmac::Mac as _;
use serde::{Deserialize, Serialize};
use store::{Counter, Store};

use super::{from_store, new_id};
use crate::error::Refusal;
use crate::seal::hmac;
use crate::words::plural;

const FORMAT: u32 = 1;
/// How often the anchor is brought up to date.
const INTERVAL: Duration = Duration::from_secs(1);
/// A larger file is not an anchor.
const BYTES_MAX: u64 = 4096;

#[derive(Debug, Clone)]
pub(super) struct Anchor {
    path: PathBuf,
    key: [u8; 32],
}

/// What the file holds.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    format: u32,
    store: String,
    count: u64,
    /// Over the others, in hexadecimal: a file that was edited is not believed.
    seal: String,
}

impl Anchor {
    pub(super) fn new(path: &Path, key: [u8; 32]) -> Self {
        Self { path: path.to_owned(), key }
    }

    /// Compares the store with the anchor and brings the anchor up to date. Says why the store is not the one that it
    /// should be; then the anchor stays as it is.
    pub(super) fn update(&self, store: &Store) -> Result<Option<String>, Refusal> {
        // Read first: what another process has anchored was written before, so a sound store has come at least as far.
        let anchored = self.read().map_err(|error| self.unusable(&error))?;
        let counter = match store.counter() {
            Ok(counter) => counter,
            // Nothing was ever counted where there are no tables.
            Err(store::Error::NotMade) => {
                return Ok(anchored.and_then(|it| self.difference(&it, None)));
            }
            Err(store::Error::Damaged(why)) => return Ok(Some(why)),
            Err(error) => return Err(from_store(&error)),
        };
        if let Some(anchored) = &anchored
            && let Some(difference) = self.difference(anchored, counter.as_ref())
        {
            return Ok(Some(difference));
        }
        // Only now: another checkpoint would bring an older store closer to its anchor.
        let counter = store.checkpoint().and_then(|()| store.counter());
        let counter = counter.map_err(|error| from_store(&error))?;
        let is_behind = |counter: &Counter| anchored.is_none_or(|it| it.count < counter.count);
        if let Some(counter) = counter.filter(is_behind) {
            self.write(&counter).map_err(|error| self.unusable(&error))?;
        }
        Ok(None)
    }

    /// Says what is lost with a file that is not there. None if the anchor was never written.
    pub(super) fn describe_loss(&self) -> Result<Option<String>, Refusal> {
        let anchored = self.read().map_err(|error| self.unusable(&error))?;
        Ok(anchored.map(|Content { count, .. }| {
            let path = self.path.display();
            let writes = plural(usize::try_from(count).unwrap_or(usize::MAX), "write");
            format!("the store is missing: its anchor `{path}` has seen one with {writes}")
        }))
    }

    fn difference(&self, anchored: &Content, counter: Option<&Counter>) -> Option<String> {
        let path = self.path.display();
        let Some(counter) = counter.filter(|counter| counter.store == anchored.store) else {
            return Some(format!(
                "the store is not the one that the anchor `{path}` was written for"
            ));
        };
        let Counter { count, unit, .. } = counter;
        let missing = anchored.count.checked_sub(*count).filter(|missing| *missing > 0)?;
        Some(format!(
            "the store was rolled back: it has {count} {unit}, its anchor `{path}` has seen {}, so the last {missing} are \
             missing",
            anchored.count
        ))
    }

    fn read(&self) -> io::Result<Option<Content>> {
        let file = match regular_file::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let text = io::read_to_string(io::Read::take(file, BYTES_MAX))?;
        let content: Content = serde_json::from_str(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if content.format != FORMAT || content.seal != self.seal(&content.store, content.count) {
            let why = "it was changed, or was written with another key";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(Some(content))
    }

    /// Replaces the file as a whole: nobody reads half of it, also after a crash.
    fn write(&self, counter: &Counter) -> io::Result<()> {
        let Counter { store, count, .. } = counter;
        let (store, count, seal) = (store.clone(), *count, self.seal(&counter.store, *count));
        let text = serde_json::to_string(&Content { format: FORMAT, store, count, seal })?;
        let mut draft = self.path.as_os_str().to_owned();
        // Not the process id: replicas in containers have the same one.
        let name = new_id().map_err(|refusal| io::Error::other(refusal.to_string()))?;
        draft.push(format!(".{name}.tmp"));
        let draft = PathBuf::from(draft);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&draft).and_then(|mut file| {
            file.write_all(format!("{text}\n").as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &self.path)
        });
        written.inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn seal(&self, store: &str, count: u64) -> String {
        let mut mac = hmac(&self.key);
        mac.update(&FORMAT.to_le_bytes());
        mac.update(&count.to_le_bytes());
        mac.update(store.as_bytes());
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn unusable(&self, error: &io::Error) -> Refusal {
        Refusal::Store {
            details: format!("the anchor `{}` cannot be used: {error}", self.path.display()),
            hint: Some(
                "see that its directory is yours to write; remove a file that is damaged to begin anew from the store as it \
                 is"
                    .to_owned(),
            ),
        }
    }
}

/// What callers hear of a store that is not what its anchor says.
pub(super) fn rolled_back(difference: &str) -> Refusal {
    Refusal::Store {
        details: difference.to_owned(),
        hint: Some(
            "nothing was recorded; restore the newest copy and restart, or remove the anchor to accept the store as it is"
                .to_owned(),
        ),
    }
}

/// Keeps the anchor up to date until it is dropped, and once more then.
#[derive(Debug)]
pub(super) struct AnchorKeeper {
    /// Absent once we are going.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AnchorKeeper {
    /// `difference` gets what is wrong with the store, once something is.
    pub(super) fn start(
        anchor: Anchor,
        store: Store,
        difference: Arc<OnceLock<String>>,
    ) -> io::Result<Self> {
        let (stop, stopped) = sync_channel::<()>(0);
        let mut has_failed = false;
        let mut update = move || match anchor.update(&store) {
            Ok(None) => has_failed = false,
            Ok(Some(why)) => {
                if difference.set(why.clone()).is_ok() {
                    tracing::error!("{why}");
                }
            }
            Err(refusal) => {
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::error!("failed to update the anchor: {refusal}");
                }
            }
        };
        let thread = std::thread::Builder::new().name("anchor".to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(INTERVAL) {
                update();
            }
            update();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for AnchorKeeper {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
