//! The file of tokens: read with a bound, replaced as a whole, and changed by one process at a time.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::{Record, TOKENS_MAX, is_id, is_name};

/// Three times what as many tokens as there may be take.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// The form of the file. Another form is another number.
const VERSION: u32 = 1;
/// How long another process may take to change the file. It takes milliseconds.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
const LOCK_LOOK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    tokens: Vec<Record>,
}

/// By this a file that was changed is told from one that was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// Of the file itself: one that takes another's place is another file.
    file: (u64, u64),
    changed: (i64, i64),
}

/// What is in a file, and by what it is known; none where there is no file. An error says why it cannot be used.
pub(super) fn read(path: &Path) -> Result<Option<(Vec<Record>, Stamp)>, String> {
    let is_none = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let file = match regular_file::open(path) {
        Err(error) if is_none(&error) => return Ok(None),
        file => file.map_err(|error| error.to_string())?,
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o002 != 0 {
        return Err("everybody may write it, and so let themselves in".to_owned());
    }
    let mut text = String::new();
    let count = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    if count.map_err(|error| error.to_string())? as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    Ok(Some((parse(&text)?, Stamp::of(&metadata))))
}

pub(super) fn parse(text: &str) -> Result<Vec<Record>, String> {
    let content: Content = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if content.version != VERSION {
        return Err(format!("it has the version {}, not {VERSION}", content.version));
    }
    let mut ids: Vec<&str> = content.tokens.iter().map(|record| &*record.id).collect();
    ids.sort_unstable();
    if ids.len() > TOKENS_MAX || ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(format!("it has more than {TOKENS_MAX} tokens, or two with the same id"));
    }
    match content.tokens.iter().find(|record| !is_id(&record.id) || !is_name(&record.name)) {
        Some(_) => Err("it has a token whose id or name none can have".to_owned()),
        None => Ok(content.tokens),
    }
}

pub(super) fn text(tokens: Vec<Record>) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(&Content { version: VERSION, tokens })? + "\n")
}

impl Stamp {
    pub(super) fn look(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&fs::metadata(path)?))
    }

    fn of(metadata: &Metadata) -> Self {
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

fn make_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Held until it is dropped, or its process ends. It is a file of its own, since the other one is replaced.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    make_folder(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let lock = options.open(with_suffix(path, ".lock"))?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() > LOCK_WAIT_MAX => {
                return Err(io::Error::other("another process is changing it, and does not end"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_LOOK_AGAIN),
        }
    }
}

/// All or nothing: readers see the old tokens or the new ones. A link is followed, not replaced.
pub(super) fn write(path: &Path, tokens: Vec<Record>) -> io::Result<()> {
    let target = if path.is_symlink() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let old = fs::metadata(&target).ok();
    let text = text(tokens)?;
    // Nobody else has this name: we hold the lock. What is there was left by a crash.
    let draft = with_suffix(&target, ".new");
    let _ = fs::remove_file(&draft);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| old.map_or(Ok(()), |old| make_like(&file, &old)))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&draft, &target));
    written.inspect_err(|_| {
        // It is of no use to anybody, and the error says enough.
        let _ = fs::remove_file(&draft);
    })?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// A server that runs as somebody else must be able to read what the superuser has changed.
fn make_like(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        // Only the superuser may give files away; for all others it is the right owner already.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
