//! The record of consent: one file in the state folder, which is replaced as a whole, by one process at a time. A record
//! that others could have written, or that is damaged, trusts nothing.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use catalog::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::sessions::{now, state_folder};

const VERSION: u32 = 1;
/// Larger records are not ours.
const RECORD_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// More files than anybody trusts.
const CONSENTS_MAX: usize = 10_000;
/// Of larger files only the digest is kept: then even a tighter policy asks again.
const CONTENT_BYTES_MAX: usize = 256 * 1024;
/// How long another process may write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(20);
const MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// Group and others, for writing.
const OTHERS_WRITE: u32 = 0o022;

/// A person's consent to one content of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    /// The file by its folder without links, so that it counts nowhere else.
    pub file: String,
    pub sha256: String,
    /// When it was given, in milliseconds since 1970.
    pub time: u64,
    /// Of a registry, to know what is tighter than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl Consent {
    pub fn to_registry(path: &Path, text: &str) -> Result<Self, TrustError> {
        let content = Some(text.to_owned()).filter(|text| text.len() <= CONTENT_BYTES_MAX);
        Ok(Self { content, ..Self::new(path, digest_of(text.as_bytes()))? })
    }

    pub fn to_workflow(path: &Path, digest: &Digest) -> Result<Self, TrustError> {
        Self::new(path, hex(digest))
    }

    fn new(path: &Path, sha256: String) -> Result<Self, TrustError> {
        let unusable = |source| TrustError::File { path: path.to_owned(), source };
        let file = key(path).map_err(unusable)?;
        let file = file.to_str().map(str::to_owned);
        let file = file.ok_or_else(|| unusable(io::ErrorKind::InvalidFilename.into()))?;
        Ok(Self { file, sha256, time: now(), content: None })
    }
}

/// What a file is known by: its name in its folder, without links on the way. A link at its end stays one, since relative
/// paths in the file start from where the link is.
pub fn key(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    match (absolute.parent(), absolute.file_name()) {
        (Some(folder), Some(name)) => Ok(fs::canonicalize(folder)?.join(name)),
        _ => Err(io::ErrorKind::InvalidFilename.into()),
    }
}

pub fn digest_of(content: &[u8]) -> String {
    hex(&Sha256::digest(content).into())
}

fn is_digest(text: &str) -> bool {
    text.len() == 2 * size_of::<Digest>() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    consents: Vec<Consent>,
}

/// Why the record, or a file, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("the record of trust `{}` cannot be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the record of trust `{}` is damaged: {why}; remove it and trust again", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error(
        "others can write to the record of trust `{}`; see who did that, then remove it and trust again",
        path.display()
    )]
    Exposed { path: PathBuf },
    #[error("the record of trust `{}` is of a later version of this program; use that one", path.display())]
    TooNew { path: PathBuf },
    #[error("another process has been writing the record of trust `{}` for too long; end it", path.display())]
    Locked { path: PathBuf },
    #[error("the record of trust `{}` is full; `workflowlookup trust --list` shows what to revoke", path.display())]
    Full { path: PathBuf },
    #[error("`{}` cannot be trusted: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// The file in which consent is kept.
#[derive(Debug, Clone)]
pub struct TrustRecord {
    path: PathBuf,
}

impl TrustRecord {
    /// None where the platform has no folder for us.
    pub fn in_state_folder() -> Option<Self> {
        // In a folder of its own, which can be watched without hearing of every session.
        Some(Self::at(state_folder()?.join("trust").join("trust.json")))
    }

    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder where the one above is there, so that it can be watched alone: sessions are written beside it.
    pub(super) fn make_watchable(&self) -> io::Result<()> {
        DirBuilder::new().mode(FOLDER_MODE).create(self.folder())
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// Another number once the file is another one.
    pub fn revision(&self) -> u64 {
        let Ok(metadata) = fs::metadata(&self.path) else { return 0 };
        let mut hasher = DefaultHasher::new();
        identity(&metadata).hash(&mut hasher);
        metadata.modified().ok().hash(&mut hasher);
        metadata.len().hash(&mut hasher);
        hasher.finish()
    }

    /// All that is consented to; nothing where there is no record yet.
    pub fn read(&self) -> Result<Vec<Consent>, TrustError> {
        let mut bytes = Vec::new();
        let read = regular_file::open(&self.path).and_then(|file| {
            let (metadata, folder) = (file.metadata()?, fs::metadata(self.folder())?);
            file.take(RECORD_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            Ok([metadata, folder])
        });
        let metadata = match read {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.io(source)),
        };
        if metadata.iter().any(is_exposed) {
            return Err(TrustError::Exposed { path: self.path.clone() });
        }
        let damaged = |why: String| TrustError::Damaged { path: self.path.clone(), why };
        if bytes.len() as u64 > RECORD_BYTES_MAX {
            return Err(damaged(format!("it is larger than {RECORD_BYTES_MAX} bytes")));
        }
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let place = |error: serde_json::Error| damaged(format!("line {}", error.line()));
        let Version { version } = serde_json::from_slice(&bytes).map_err(place)?;
        if version > VERSION {
            return Err(TrustError::TooNew { path: self.path.clone() });
        }
        let content: Content = serde_json::from_slice(&bytes).map_err(place)?;
        if let Some(bad) = content.consents.iter().find(|consent| !is_digest(&consent.sha256)) {
            return Err(damaged(format!("the digest of `{}` is not a SHA-256", bad.file)));
        }
        Ok(content.consents)
    }

    /// Records consent. It takes the place of earlier consent to the same files.
    pub fn grant(&self, new: impl IntoIterator<Item = Consent>) -> Result<(), TrustError> {
        let new: Vec<Consent> = new.into_iter().collect();
        self.change(|consents| {
            consents.retain(|old| new.iter().all(|new| new.file != old.file));
            consents.extend(new.iter().cloned());
        })
    }

    /// Takes consent back; the files that it was about.
    pub fn revoke(&self, is_meant: impl Fn(&Path) -> bool) -> Result<Vec<String>, TrustError> {
        let mut revoked = Vec::new();
        self.change(|consents| {
            consents.retain(|consent| {
                let is_meant = is_meant(Path::new(&consent.file));
                revoked.extend(is_meant.then(|| consent.file.clone()));
                !is_meant
            });
        })?;
        Ok(revoked)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Consent>)) -> Result<(), TrustError> {
        let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(self.folder());
        made.map_err(|source| self.io(source))?;
        let _lock = self.lock()?;
        let mut consents = self.read()?;
        change(&mut consents);
        let content = Content { version: VERSION, consents };
        let full = || TrustError::Full { path: self.path.clone() };
        if content.consents.len() > CONSENTS_MAX {
            return Err(full());
        }
        let text = serde_json::to_vec_pretty(&content).map_err(|error| self.io(error.into()))?;
        if text.len() as u64 > RECORD_BYTES_MAX {
            return Err(full());
        }
        self.replace(&text).map_err(|source| self.io(source))
    }

    /// All or nothing, also where the machine stops in between.
    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let draft = self.path.with_extension("json.tmp");
        // We hold the lock: what is there is left of a crash.
        let _ = fs::remove_file(&draft);
        let written = private().write(true).create_new(true).open(&draft).and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()?;
            fs::rename(&draft, &self.path)
        });
        written.inspect_err(|_| drop(fs::remove_file(&draft)))?;
        // The name is safe too, where folders can be flushed.
        let _ = File::open(self.folder()).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// Held as long as the file is open.
    fn lock(&self) -> Result<File, TrustError> {
        let path = self.path.with_extension("lock");
        let file = private().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|source| self.io(source))?;
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(LOCK_POLL);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(TrustError::Locked { path: self.path.clone() });
                }
                Err(TryLockError::Error(source)) => return Err(self.io(source)),
            }
        }
    }

    fn io(&self, source: io::Error) -> TrustError {
        TrustError::Io { path: self.path.clone(), source }
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(MODE);
    options
}

fn identity(metadata: &Metadata) -> impl std::hash::Hash {
    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

/// Whether somebody else may have written it.
fn is_exposed(metadata: &Metadata) -> bool {
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    !is_ours || metadata.mode() & OTHERS_WRITE != 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn consent(file: &str) -> Consent {
        let sha256 = digest_of(file.as_bytes());
        Consent { file: file.to_owned(), sha256, time: 1, content: None }
    }

    #[test]
    fn record_is_private_and_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let record = TrustRecord::at(folder.path().join("state/trust.json"));
        assert_eq!(record.read().unwrap(), []);
        record.grant([consent("/a"), consent("/b")]).unwrap();
        let before = record.revision();
        let newer = Consent { time: 2, ..consent("/a") };
        record.grant([newer.clone()]).unwrap();
        assert_ne!(record.revision(), before);
        assert_eq!(record.read().unwrap(), [consent("/b"), newer]);
        assert_eq!(record.revoke(|file| file == Path::new("/b")).unwrap(), ["/b"]);
        assert_eq!(record.read().unwrap().len(), 1);
        assert_eq!(fs::metadata(record.path()).unwrap().permissions().mode() & 0o777, MODE);
        let state = fs::metadata(folder.path().join("state")).unwrap();
        assert_eq!(state.permissions().mode() & 0o777, FOLDER_MODE);
    }

    #[test]
    fn damaged_record_trusts_nothing_and_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let record = TrustRecord::at(folder.path().join("state/trust.json"));
        record.grant([consent("/a")]).unwrap();
        let good = fs::read_to_string(record.path()).unwrap();
        let digest = consent("/a").sha256;
        let short = good.replace(&digest, "ab");
        let no_hex = good.replace(&digest, &"ä".repeat(32));
        for bad in ["", "{", "[]", &good[..good.len() / 2], &short, &no_hex] {
            fs::write(record.path(), bad).unwrap();
            assert!(matches!(record.read(), Err(TrustError::Damaged { .. })), "{bad}");
            assert!(record.grant([consent("/b")]).is_err(), "{bad}");
            assert_eq!(fs::read_to_string(record.path()).unwrap(), bad);
        }
        fs::write(record.path(), r#"{"version": 2}"#).unwrap();
        assert!(matches!(record.read(), Err(TrustError::TooNew { .. })));
        fs::write(record.path(), &good).unwrap();
        fs::set_permissions(record.path(), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(record.read(), Err(TrustError::Exposed { .. })));
    }
}
