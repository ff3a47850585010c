//! A copy of the store in a file of its own, as it was at one moment, while others go on writing. The copy is verified
//! and durable before it gets its name, and no file is ever replaced by it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Sqlite;
use crate::backend::Backend as _;
use crate::backup::Backup;
use crate::chain::Chain;
use crate::error::Error;
use crate::limits::PAGE_MAX;
use crate::sqlite::files::{OpenFiles, OpenStore, SUFFIXES};
use crate::sqlite::schema;

const TAKEN: Error =
    Error::Invalid { what: "file of the backup", why: "it exists already and was not touched" };

pub(crate) fn backup(files: &OpenFiles, chain: &Chain, target: &Path) -> Result<Backup, Error> {
    if target.try_exists()? {
        return Err(TAKEN);
    }
    let draft = Draft::create(target)?;
    let path = draft.path("");
    let name = path
        .to_str()
        .ok_or(Error::Invalid { what: "file of the backup", why: "its path is not UTF-8" })?;
    let source = OpenStore::reconnect(files)?;
    source.connection.execute("VACUUM INTO ?1", [name])?;
    source.files().check()?;
    drop(source);
    let backup = verify(&path, chain)?;
    fs::File::open(&path)?.sync_all()?;
    match rename_to_new(&path, target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(TAKEN),
        renamed => renamed?,
    }
    drop(draft);
    schema::sync_folder(target)?;
    Ok(backup)
}

/// Renames a file and replaces none. File systems that cannot do both at once have hard links; the caller then removes
/// the first name.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return Ok(renamed?),
        }
    }
    fs::hard_link(from, to)
}

/// Opens the copy as a store and computes its chains anew.
fn verify(path: &Path, chain: &Chain) -> Result<Backup, Error> {
    let copy = Sqlite::open_without_reserve(path, chain.clone())?;
    let mut backup = Backup { flaws: copy.file_flaws()?, ..Backup::default() };
    backup.flaws.extend(copy.counter_flaws()?);
    let mut after = None;
    loop {
        let page = copy.ids(after, PAGE_MAX)?;
        let Some((last, _)) = page.last() else { return Ok(backup) };
        after = Some(*last);
        for (_, id) in page {
            let id = String::from_utf8_lossy(&id);
            match copy.verify(&id) {
                Ok(verified) => {
                    backup.events += verified.version;
                    let flaws = verified.flaws.iter().map(|flaw| format!("session `{id}`: {flaw}"));
                    backup.flaws.extend(flaws);
                }
                Err(error @ (Error::NotFound | Error::Damaged(_))) => {
                    backup.flaws.push(format!("session `{id}`: {error}"));
                }
                Err(error) => return Err(error),
            }
            backup.sessions += 1;
        }
    }
}

/// The copy while it is made, beside its target and for the owner's eyes only. It goes with this.
struct Draft(OsString);

impl Draft {
    fn create(target: &Path) -> Result<Self, Error> {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let draft = Self(name);
        schema::new_file(&draft.path(""))?;
        Ok(draft)
    }

    fn path(&self, suffix: &str) -> PathBuf {
        let mut name = self.0.clone();
        name.push(suffix);
        name.into()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for suffix in SUFFIXES {
            let _ = fs::remove_file(self.path(suffix));
        }
    }
}
