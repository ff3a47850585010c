//! The files of a store, compared with those that a connection has open. A file that was removed, replaced or renamed
//! stays writable for the process that has it open, and what is written to it is lost: so nothing is acknowledged, and
//! nothing read is told, unless the path still leads to the same files. Only the paths are looked at: opening and closing
//! a database file beside SQLite would drop its locks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use crate::chain::Chain;
use crate::error::Error;
use crate::sqlite::counter::{self, CounterRow};
use crate::sqlite::schema;

/// The database, its write-ahead log and the log's index.
pub(crate) const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// A connection and the files that it has open.
#[derive(Debug)]
pub(crate) struct OpenStore {
    pub(crate) connection: Connection,
    files: OpenFiles,
}

/// Where each file was when a connection opened it.
#[derive(Debug, Clone)]
pub(crate) struct OpenFiles {
    files: [(PathBuf, FileId); SUFFIXES.len()],
}

/// Device and inode. Platforms without them keep open files in place by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// When a file was last written, and its size then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
}

/// What is asked about a file.
///
/// Linux keeps the time of the next write exactly once somebody has asked for the last one, so each flush then writes the
/// inode too. Only the time of the database matters, which is seldom written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Identity,
    Stamp,
}

/// The counter in the database file itself, without the log. Carrying the log over only ever moves it forward, so one that
/// went back is of an older copy that was written into the same file.
#[derive(Debug, Default)]
pub(crate) struct FileContent {
    stamp: Option<Stamp>,
    counter: Option<CounterRow>,
}

impl FileContent {
    /// Looks into the file if it was written since the last time.
    pub(crate) fn check(&mut self, path: &Path, stamp: Stamp, chain: &Chain) -> Result<(), Error> {
        if self.stamp == Some(stamp) {
            return Ok(());
        }
        let overwritten =
            || Err(moved(path, "was overwritten with older content while it was open"));
        let mut now = counter::read_file(path, chain);
        if now.is_none() && self.counter.is_some() {
            // Another process may have been carrying the log over at that moment.
            now = counter::read_file(path, chain);
        }
        match (now, &self.counter) {
            (Some(now), Some(before)) if !now.is_from(before) => return overwritten(),
            (Some(now), _) => self.counter = Some(now),
            // Nothing was carried over yet, or somebody writes at this moment: the next write looks again.
            (None, None) => {}
            (None, Some(_)) if self.stamp.is_some_and(|before| stamp.size < before.size) => {
                return overwritten();
            }
            (None, Some(_)) => return Ok(()),
        }
        self.stamp = Some(stamp);
        Ok(())
    }
}

impl OpenStore {
    /// Takes in a connection that has just opened this path.
    pub(crate) fn new(path: &Path, connection: Connection) -> Result<Self, Error> {
        // The first read opens the log and its index.
        let _: i64 = connection.pragma_query_value(None, "schema_version", |row| row.get(0))?;
        let files = OpenFiles::look_up(path)?;
        Ok(Self { connection, files })
    }

    /// Another connection to the store whose files are known.
    pub(crate) fn connect(
        known: &OpenFiles,
        connect: impl FnOnce(&Path) -> Result<Connection, Error>,
    ) -> Result<Self, Error> {
        known.check_database()?;
        let opened = Self::new(known.path(), connect(known.path())?)?;
        known.check_database()?;
        Ok(opened)
    }

    pub(crate) fn reconnect(known: &OpenFiles) -> Result<Self, Error> {
        Self::connect(known, schema::connect)
    }

    pub(crate) fn files(&self) -> &OpenFiles {
        &self.files
    }
}

impl OpenFiles {
    fn look_up(path: &Path) -> Result<Self, Error> {
        let look_up = |file: PathBuf| {
            let (id, _) = identify(&file, Wanted::Identity)?;
            Ok::<_, Error>((file, id))
        };
        // The path itself stays a symbolic link if it is one, so that a link that leads elsewhere is noticed. SQLite
        // keeps the other files beside the file that the link leads to.
        let database = look_up(path.to_owned())?;
        let [_, log, index] = SUFFIXES;
        Ok(Self { files: [database, look_up(beside(path, log))?, look_up(beside(path, index))?] })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.files[0].0
    }

    /// Whether the paths still lead to the files that are open.
    pub(crate) fn check(&self) -> Result<Stamp, Error> {
        let [_, others @ ..] = &self.files;
        for (path, id) in others {
            check(path, *id, Wanted::Identity)?;
        }
        self.check_database()
    }

    /// The same for the database alone: its log comes and goes with the connections.
    pub(crate) fn check_database(&self) -> Result<Stamp, Error> {
        let (path, id) = &self.files[0];
        check(path, *id, Wanted::Stamp)
    }
}

/// The path of a file that belongs to a database: beside the database itself, not beside a symbolic link to it.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let real = database.canonicalize().unwrap_or_else(|_| database.to_owned());
    let mut file = real.into_os_string();
    file.push(suffix);
    file.into()
}

fn check(path: &Path, open: FileId, wanted: Wanted) -> Result<Stamp, Error> {
    match identify(path, wanted)? {
        (id, stamp) if id == open => Ok(stamp),
        _ => Err(moved(path, "was replaced by another file while it was open")),
    }
}

/// Fails unless the path is the only name of a file.
#[cfg(target_os = "linux")]
fn identify(path: &Path, wanted: Wanted) -> Result<(FileId, Stamp), Error> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    use rustix::io::Errno;

    let identity = StatxFlags::INO | StatxFlags::NLINK;
    let flags = match wanted {
        Wanted::Identity => identity,
        Wanted::Stamp => identity | StatxFlags::MTIME | StatxFlags::SIZE,
    };
    let found = match statx(CWD, path, AtFlags::empty(), flags) {
        // The kernel is too old for it, or a container forbids it.
        Err(Errno::NOSYS | Errno::PERM) => return identify_by_metadata(path),
        found => found.map_err(|error| not_found(path, error.into()))?,
    };
    check_only_name(path, found.stx_nlink.into())?;
    let device = (u64::from(found.stx_dev_major) << 32) | u64::from(found.stx_dev_minor);
    let modified = Duration::new(found.stx_mtime.tv_sec.unsigned_abs(), found.stx_mtime.tv_nsec);
    let stamp =
        Stamp { modified: SystemTime::UNIX_EPOCH.checked_add(modified), size: found.stx_size };
    Ok((FileId { device, inode: found.stx_ino }, stamp))
}

#[cfg(not(target_os = "linux"))]
fn identify(path: &Path, _: Wanted) -> Result<(FileId, Stamp), Error> {
    identify_by_metadata(path)
}

fn identify_by_metadata(path: &Path) -> Result<(FileId, Stamp), Error> {
    let metadata = fs::metadata(path).map_err(|error| not_found(path, error))?;
    let stamp = Stamp { modified: metadata.modified().ok(), size: metadata.len() };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        check_only_name(path, metadata.nlink())?;
        Ok((FileId { device: metadata.dev(), inode: metadata.ino() }, stamp))
    }
    #[cfg(not(unix))]
    Ok((FileId { device: 0, inode: 0 }, stamp))
}

fn not_found(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => moved(path, "was removed while it was open"),
        _ => error.into(),
    }
}

#[cfg(unix)]
fn check_only_name(path: &Path, names: u64) -> Result<(), Error> {
    if names <= 1 {
        return Ok(());
    }
    Err(moved(path, &format!("has {names} names (hard links) and needs to have one")))
}

fn moved(path: &Path, what: &str) -> Error {
    Error::Moved(format!("`{}` {what}", path.display()))
}
