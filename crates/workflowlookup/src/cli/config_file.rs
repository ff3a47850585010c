//! A client's configuration file on the disk: read with a bound, and replaced as a whole, with the old
//! one kept beside it. A backup is never overwritten.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Clients keep more than servers in some of these files, but hardly this much.
pub(crate) const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many backups, or leftovers of a crash, may be there before we stop looking for a free name.
const NUMBER_MAX: usize = 1000;

/// The text of a file; none where there is no file. An error says why it cannot be taken, as the rest of
/// a sentence about the file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, String> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            return Err("is a link that leads nowhere".to_owned());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = regular_file::open(path);
    let read = file.and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => Err(format!("cannot be read: {error}")),
        Ok(count) if count as u64 > BYTES_MAX => Err(format!("is larger than {BYTES_MAX} bytes")),
        Ok(_) => String::from_utf8(bytes).map(Some).map_err(|_| "is not UTF-8 text".to_owned()),
    }
}

/// Who may read a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Whoever might read the old one; whoever may read a new file.
    AsBefore,
    /// Its owner alone: there are secrets in it.
    Owner,
}

/// Writes `new` where `old` was, and says where `old` is kept. A link is followed, not replaced.
pub(crate) fn replace(
    path: &Path,
    old: Option<&str>,
    new: &str,
    readers: Readers,
) -> anyhow::Result<Option<PathBuf>> {
    let cannot_write = || format!("cannot write `{}`", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(old) = old else {
        if let Some(folder) = folder {
            let cannot = || format!("cannot create the folder `{}`", folder.display());
            fs::create_dir_all(folder).with_context(cannot)?;
        }
        put(path, new, None, readers).with_context(cannot_write)?;
        return Ok(None);
    };
    let target = if path.is_symlink() { fs::canonicalize(path) } else { Ok(path.to_path_buf()) };
    let target = target.with_context(cannot_write)?;
    let metadata = fs::metadata(&target).with_context(cannot_write)?;
    let backup = keep(&target, old, &metadata)?;
    put(&target, new, Some(&metadata), readers).with_context(cannot_write)?;
    Ok(Some(backup))
}

/// Keeps the old text as `<name>.bak`, or under the next number where something else has that name.
fn keep(path: &Path, text: &str, metadata: &Metadata) -> anyhow::Result<PathBuf> {
    for number in 0..NUMBER_MAX {
        let suffix = if number == 0 { ".bak".to_owned() } else { format!(".bak.{number}") };
        let backup = with_suffix(path, &suffix);
        match write_new(&backup, text, Some(metadata), Readers::AsBefore) {
            Ok(()) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // The same once more is no use to anybody.
                if read(&backup).is_ok_and(|kept| kept.as_deref() == Some(text)) {
                    return Ok(backup);
                }
            }
            Err(error) => {
                let message = format!("cannot keep the old file as `{}`", backup.display());
                return Err(anyhow::Error::new(error).context(message));
            }
        }
    }
    bail!("there are {NUMBER_MAX} backups of `{}` already", path.display())
}

/// All or nothing: readers see the old text or the new one, never half of it.
fn put(path: &Path, text: &str, metadata: Option<&Metadata>, readers: Readers) -> io::Result<()> {
    for number in 0..NUMBER_MAX {
        let draft = with_suffix(path, &format!(".{}-{number}.tmp", std::process::id()));
        match write_new(&draft, text, metadata, readers) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        return fs::rename(&draft, path).inspect_err(|_| {
            // It is of no use to anybody, and the error says enough.
            let _ = fs::remove_file(&draft);
        });
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes a file that must not be there yet, with the owner and the permissions of another.
fn write_new(path: &Path, text: &str, like: Option<&Metadata>, readers: Readers) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if like.is_some() || readers == Readers::Owner {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Nobody else may look in before it has the right permissions: there may be secrets in it.
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| match like {
        Some(metadata) => make_like(&file, metadata, readers),
        None => Ok(()),
    });
    written.and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

fn make_like(file: &File, metadata: &Metadata, readers: Readers) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        // Only the superuser may give files away; for all others it is the right owner already.
        let _ = fchown(file, Some(metadata.uid()), Some(metadata.gid()));
    }
    match readers {
        Readers::AsBefore => file.set_permissions(metadata.permissions()),
        // As it was made.
        Readers::Owner => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
