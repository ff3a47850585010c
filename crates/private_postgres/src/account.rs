//! Whom PostgreSQL's programs run as. They refuse the superuser, so for the superuser it is somebody who may do nothing
//! else, in a folder that they own and can reach.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::bounded;

/// Who it may be, the best first. The second is on every system.
const NAMES: [&str; 2] = ["postgres", "nobody"];
/// Where everybody may have folders, where the usual place is the superuser's alone.
const COMMON: [&str; 2] = ["/tmp", "/var/tmp"];
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) enum Account {
    /// Whoever we are.
    Ours,
    /// Somebody else: user and group.
    Other { name: &'static str, user: u32, group: u32 },
}

impl Account {
    pub(crate) fn choose() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ours);
        }
        let found = NAMES.iter().find_map(|name| {
            let (user, group) = (id("-u", name)?, id("-g", name)?);
            Some(Self::Other { name, user, group })
        });
        found.ok_or_else(|| {
            format!(
                "PostgreSQL does not run as the superuser, and `{}` are not here\n  \
                 run this as another user",
                NAMES.join("` and `")
            )
        })
    }

    /// The superuser's other groups are given up as well; the standard library sees to that.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Self::Other { user, group, .. } = self {
            command.uid(*user).gid(*group);
        }
    }

    /// A folder of theirs, which they can reach: one above it may be closed to them.
    pub(crate) fn folder(&self) -> Result<TempDir, String> {
        let places = [std::env::temp_dir()].into_iter().chain(COMMON.map(PathBuf::from));
        let mut wrong = Vec::new();
        for place in places {
            match self.folder_in(&place) {
                Ok(folder) => return Ok(folder),
                Err(what) => wrong.push(format!("`{}`: {what}", place.display())),
            }
        }
        Err(format!("there is no place for a cluster's folder\n  {}", wrong.join("\n  ")))
    }

    fn folder_in(&self, place: &Path) -> Result<TempDir, String> {
        let folder = tempfile::Builder::new().prefix("private-postgres-").tempdir_in(place);
        let folder = folder.map_err(|error| error.to_string())?;
        if let Self::Other { name, user, group } = self {
            chown(folder.path(), Some(*user), Some(*group))
                .map_err(|error| format!("a folder there cannot be `{name}`'s: {error}"))?;
            let mut test = Command::new("test");
            test.arg("-w").arg(folder.path());
            self.apply(&mut test);
            bounded::run(&mut test, PATIENCE)
                .map_err(|_| format!("`{name}` cannot reach a folder there"))?;
        }
        Ok(folder)
    }
}

fn id(what: &str, name: &str) -> Option<u32> {
    bounded::run(Command::new("id").args([what, name]), PATIENCE).ok()?.parse().ok()
}
