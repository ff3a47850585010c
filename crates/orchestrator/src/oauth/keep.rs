//! The one file that tokens are kept in. Only its owner can read it, and one that others can read is not used. It is
//! replaced as a whole, by one process at a time.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use registry::place::Stamp;

use super::lock::{Held, hold};
use super::record::{Key, Records, VERSION};

/// Larger files are not ours.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// More logins than anybody has.
const LOGINS_MAX: usize = 1_000;
/// How long another process may write.
const WRITING_LIMIT: Duration = Duration::from_secs(5);
/// Tokens that were replaced and may still be on their way somewhere are hidden too, so many of them.
const FORMER_SECRETS_MAX: usize = 64;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    #[error("`{path}`, where tokens are kept, cannot be used: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "`{path}`, where tokens are kept, can be read by others, and is not used; see who did that, then \
         `chmod 600` it, or remove it and log in anew"
    )]
    ReadByOthers { path: PathBuf },
    #[error(
        "`{path}`, where tokens are kept, belongs to somebody else, and is not used; remove it and log in anew"
    )]
    NotOurs { path: PathBuf },
    #[error("others can write to `{path}`, the folder where tokens are kept; `chmod 700` it")]
    WrittenByOthers { path: PathBuf },
    #[error("`{path}`, where tokens are kept, cannot be read: {why}; remove it and log in anew")]
    Unreadable { path: PathBuf, why: String },
    #[error("`{path}`, where tokens are kept, is of a later version of this program; use that one")]
    TooNew { path: PathBuf },
    #[error(
        "another process has been writing to `{path}`, where tokens are kept, for too long; end it"
    )]
    Locked { path: PathBuf },
    #[error("`{path}`, where tokens are kept, has as many logins as it may; log out from some")]
    Full { path: PathBuf },
}

impl Unkept {
    /// Whether it may be gone by itself.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Io { .. } | Self::Locked { .. } => true,
            Self::ReadByOthers { .. }
            | Self::NotOurs { .. }
            | Self::WrittenByOthers { .. }
            | Self::Unreadable { .. }
            | Self::TooNew { .. }
            | Self::Full { .. } => false,
        }
    }
}

pub(super) struct Keep {
    path: PathBuf,
    seen: Mutex<Seen>,
}

/// What was read last.
#[derive(Default)]
struct Seen {
    /// As long as it is the same, so is the file: it is never written to, only replaced.
    stamp: Option<Stamp>,
    records: Arc<Records>,
    secrets: Arc<[String]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Stamps,
    Nothing,
}

impl Keep {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, seen: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is kept now. Mostly this is one question about the file.
    pub(super) fn read(&self) -> Result<Arc<Records>, Unkept> {
        self.look(Trust::Stamps)
    }

    /// The same, for whoever must not be wrong: clocks of files are coarse.
    pub(super) fn read_anew(&self) -> Result<Arc<Records>, Unkept> {
        self.look(Trust::Nothing)
    }

    fn look(&self, trust: Trust) -> Result<Arc<Records>, Unkept> {
        let file = match regular_file::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut seen = self.seen.lock();
                seen.stamp = None;
                seen.records = Arc::default();
                return Ok(seen.records.clone());
            }
            Err(source) => return Err(self.broken(source)),
        };
        // What is asked about and what is read are the same file, whatever happens to its name.
        let about = file.metadata().map_err(|source| self.broken(source))?;
        self.check(&about)?;
        let stamp = Stamp::of(&about);
        if trust == Trust::Stamps {
            let seen = self.seen.lock();
            if seen.stamp.as_ref() == Some(&stamp) {
                return Ok(seen.records.clone());
            }
        }
        let records = Arc::new(self.parse(file)?);
        self.remember(Some(stamp), records.clone());
        Ok(records)
    }

    /// All tokens that were ever seen here, up to a bound.
    pub(super) fn secrets(&self) -> Arc<[String]> {
        self.seen.lock().secrets.clone()
    }

    /// Hides something from now on that is not in the file yet.
    pub(super) fn hide(&self, secret: &str) {
        let mut seen = self.seen.lock();
        if !seen.secrets.iter().any(|known| known == secret) {
            let more = seen.secrets.iter().cloned().chain([secret.to_owned()]);
            seen.secrets = more.collect();
        }
    }

    /// Changes what is kept. Nobody else does at the same time, and whoever reads sees all of it or nothing.
    pub(super) async fn change<T>(
        &self,
        change: impl FnOnce(&mut Records) -> T,
    ) -> Result<T, Unkept> {
        let _held = self.hold("logins.lock", WRITING_LIMIT).await?;
        let before = self.read_anew()?;
        let mut records = Records::clone(&before);
        let result = change(&mut records);
        if records == *before {
            return Ok(result);
        }
        if records.logins.len() > LOGINS_MAX {
            // Who only wanted to be logged in to may say so again.
            records.logins.retain(|record| record.login.is_some());
        }
        if records.logins.len() > LOGINS_MAX {
            return Err(Unkept::Full { path: self.path.clone() });
        }
        records.version = VERSION;
        let path = self.path.clone();
        let replaced = tokio::task::spawn_blocking(move || replace(&path, &records)).await;
        replaced.map_err(io::Error::other).flatten().map_err(|source| self.broken(source))?;
        self.read_anew()?;
        Ok(result)
    }

    /// A lock of this name beside the file.
    pub(super) async fn hold(&self, name: &str, patience: Duration) -> Result<Held, Unkept> {
        let folder = self.folder()?;
        let held = hold(&folder.join(name), patience).await;
        let held = held.map_err(|source| self.broken(source))?;
        held.ok_or_else(|| Unkept::Locked { path: self.path.clone() })
    }

    /// One at a time renews the token of an upstream.
    pub(super) async fn hold_renewal(&self, key: &Key, patience: Duration) -> Result<Held, Unkept> {
        self.hold(&format!("{}.lock", key.file_name()), patience).await
    }

    /// The folder, which is made where it is missing.
    fn folder(&self) -> Result<&Path, Unkept> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(|source| self.broken(source))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let about = fs::metadata(folder).map_err(|source| self.broken(source))?;
            if about.mode() & OTHERS_WRITE != 0 {
                return Err(Unkept::WrittenByOthers { path: folder.to_owned() });
            }
        }
        Ok(folder)
    }

    fn parse(&self, file: File) -> Result<Records, Unkept> {
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(|source| self.broken(source))?;
        let unreadable = |why: String| Unkept::Unreadable { path: self.path.clone(), why };
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
            return Err(unreadable(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        #[derive(serde::Deserialize)]
        struct Version {
            version: u32,
        }
        // Where something is wrong, the place is said and never the text, which may be a token.
        let place = |error: serde_json::Error| {
            unreadable(format!("it is not as expected in line {}", error.line()))
        };
        let Version { version } = serde_json::from_slice(&text).map_err(place)?;
        if version > VERSION {
            return Err(Unkept::TooNew { path: self.path.clone() });
        }
        serde_json::from_slice(&text).map_err(place)
    }

    #[cfg(unix)]
    fn check(&self, about: &fs::Metadata) -> Result<(), Unkept> {
        use std::os::unix::fs::MetadataExt as _;
        let path = || self.path.clone();
        if !about.is_file() {
            return Err(Unkept::Unreadable { path: path(), why: "it is no file".to_owned() });
        }
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(Unkept::NotOurs { path: path() });
        }
        if about.mode() & OTHERS != 0 {
            return Err(Unkept::ReadByOthers { path: path() });
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn check(&self, about: &fs::Metadata) -> Result<(), Unkept> {
        match about.is_file() {
            true => Ok(()),
            false => {
                Err(Unkept::Unreadable { path: self.path.clone(), why: "it is no file".to_owned() })
            }
        }
    }

    fn remember(&self, stamp: Option<Stamp>, records: Arc<Records>) {
        let mut seen = self.seen.lock();
        let new: Vec<&str> = records
            .secrets()
            .filter(|new| !seen.secrets.iter().any(|known| known == new))
            .collect();
        if !new.is_empty() {
            let is_used = |secret: &&String| records.secrets().any(|used| used == secret.as_str());
            let (used, former): (Vec<&String>, Vec<&String>) =
                seen.secrets.iter().partition(is_used);
            let former = &former[former.len().saturating_sub(FORMER_SECRETS_MAX)..];
            let all = former.iter().copied().chain(used).map(String::as_str).chain(new);
            seen.secrets = all.map(str::to_owned).collect();
        }
        seen.stamp = stamp;
        seen.records = records;
    }

    fn broken(&self, source: io::Error) -> Unkept {
        Unkept::Io { path: self.path.clone(), source }
    }
}

fn replace(path: &Path, records: &Records) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(records)?;
    text.push(b'\n');
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // Only its owner can read a file of this kind, from its first byte on.
    let mut file = tempfile::Builder::new().prefix("logins-").tempfile_in(folder)?;
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The name is safe too, where folders can be flushed.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Group and others, in whatever way.
#[cfg(unix)]
const OTHERS: u32 = 0o077;
#[cfg(unix)]
const OTHERS_WRITE: u32 = 0o022;
