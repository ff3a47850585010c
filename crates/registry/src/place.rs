//! Where registries are: one that was named, or the project's and then the user's. Files are read with a bound, and
//! known by a stamp.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::finding::{Code, Finding, Severity};
use super::limits::FILE_BYTES_MAX;
use super::trust::{Trust, TrustPolicy};
use super::variables::Variables;

/// What a registry is called, wherever it is looked for.
pub const FILE_NAME: &str = "mcp.registry.json";

/// Where to look, and what to fill variables in with.
#[derive(Clone, Default)]
pub struct Places {
    /// The file that was asked for; then no other is looked at.
    pub named: Option<PathBuf>,
    /// The project's folder.
    pub project: Option<PathBuf>,
    /// The folder of this program in the user's configuration.
    pub user: Option<PathBuf>,
    pub variables: Variables,
    /// Which files a person has trusted. Without it, a project's file is not, and the others are.
    pub trust: Option<Arc<dyn TrustPolicy>>,
}

/// Who keeps a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whoever named it.
    Named,
    Project,
    User,
}

impl Places {
    /// The files in the order in which they count.
    pub fn files(&self) -> Vec<(Kind, PathBuf)> {
        if let Some(named) = &self.named {
            return vec![(Kind::Named, named.clone())];
        }
        let folders = [(Kind::Project, &self.project), (Kind::User, &self.user)];
        let folders =
            folders.into_iter().filter_map(|(kind, folder)| Some((kind, folder.as_ref()?)));
        folders.map(|(kind, folder)| (kind, folder.join(FILE_NAME))).collect()
    }

    pub(super) fn trust(&self, kind: Kind, path: &Path, text: &str) -> Trust {
        match (&self.trust, kind) {
            (Some(policy), _) => policy.trust(kind, path, text),
            (None, Kind::Project) => Trust::Missing,
            (None, Kind::Named | Kind::User) => Trust::Given,
        }
    }

    pub(super) fn trust_revision(&self) -> u64 {
        self.trust.as_ref().map_or(0, |policy| policy.revision())
    }
}

/// By this a file that was changed is told from one that was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// Of the file itself: one that takes another's place is another file.
    file: (u64, u64),
    changed: (i64, i64),
}

impl Stamp {
    /// Nothing where there is no file that could be looked at.
    pub(super) fn look(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::of)
    }

    pub fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let (file, changed) = {
            use std::os::unix::fs::MetadataExt as _;
            ((metadata.dev(), metadata.ino()), (metadata.ctime(), metadata.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let (file, changed) = Default::default();
        Self { modified: metadata.modified().ok(), bytes: metadata.len(), file, changed }
    }

    /// A clock ticks slowly: what was written a moment ago may be written again and look the same.
    pub(super) fn is_settled(&self, after: Duration) -> bool {
        let age = self.modified.and_then(|modified| modified.elapsed().ok());
        age.is_some_and(|age| age > after)
    }
}

/// The text of a file.
pub(super) struct Content {
    pub(super) text: String,
    pub(super) stamp: Stamp,
    /// Everybody on this machine may change it.
    pub(super) is_exposed: bool,
}

/// Reads the text of a file; none if there is no file.
pub fn text(path: &Path) -> Result<Option<String>, Finding> {
    Ok(read(path)?.map(|content| content.text))
}

/// Nothing where there is no file.
pub(super) fn read(path: &Path) -> Result<Option<Content>, Finding> {
    let unreadable = |message: String, hint: &str| on_file(Code::Unreadable, path, message, hint);
    let may = "see whether you may read it";
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return Err(unreadable("is a link that leads nowhere".to_owned(), "mend the link"));
        }
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(format!("cannot be read: {error}"), may)),
    };
    if !metadata.is_file() {
        return Err(unreadable("is not a regular file".to_owned(), "name a file"));
    }
    let mut bytes = Vec::new();
    let opened = regular_file::open(path).and_then(|file| {
        let metadata = file.metadata()?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(metadata)
    });
    let metadata = match opened {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(unreadable(format!("cannot be read: {error}"), may)),
    };
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("is larger than {FILE_BYTES_MAX} bytes");
        return Err(on_file(Code::TooLarge, path, message, "name another file"));
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(unreadable("is not UTF-8 text".to_owned(), "save it as UTF-8"));
    };
    Ok(Some(Content { text, stamp: Stamp::of(&metadata), is_exposed: is_exposed(&metadata) }))
}

/// A folder on the way that is a file is no reason to complain either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn is_exposed(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o002 != 0
}

#[cfg(not(unix))]
fn is_exposed(_: &Metadata) -> bool {
    false
}

/// A finding about a file as a whole.
pub(super) fn on_file(code: Code, path: &Path, message: String, hint: &str) -> Finding {
    let severity = match code {
        Code::Exposed => Severity::Warning,
        _ => Severity::Error,
    };
    Finding {
        code,
        severity,
        file: Some(path.display().to_string().into()),
        place: None,
        pointer: "".into(),
        message: message.into(),
        hint: Some(hint.into()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

    /// A file and a FIFO take turns under one name while it is read, again and again.
    #[test]
    fn fifo_swapped_in_while_reading_never_hangs() {
        const READS: usize = 20_000;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let registry = path(FILE_NAME);
        fs::write(path("file"), "{}").unwrap();
        fs::write(&registry, "{}").unwrap();
        let made = std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap();
        assert!(made.success());
        let is_over = AtomicBool::new(false);
        let (done, ended) = mpsc::channel();
        let name = registry.clone();
        std::thread::spawn(move || {
            (0..READS).for_each(|_| drop(read(&name)));
            done.send(())
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for name in ["fifo", "file"] {
                        fs::hard_link(path(name), path("next")).unwrap();
                        fs::rename(path("next"), &registry).unwrap();
                    }
                }
            });
            // Only for a failure.
            let ended = ended.recv_timeout(Duration::from_secs(60));
            is_over.store(true, Ordering::Relaxed);
            ended.expect("reading waits for a FIFO");
        });
    }
}
