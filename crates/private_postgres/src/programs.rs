//! Where PostgreSQL's programs are: in the folder that is named, on the search path, or where packages put them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bounded;

/// Names their folder, and then no other is looked at.
pub(crate) const VARIABLE: &str = "WORKFLOWLOOKUP_POSTGRES";
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "psql"];
/// The first that can drop a database which somebody is still connected to.
const OLDEST: u32 = 13;
/// Folders in which packages put one folder for each version, and how that one's name begins.
const PACKAGED: [(&str, &str); 4] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
];
/// Starting a program from a cold disk, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the programs cannot be used.
#[derive(Debug)]
pub enum Missing {
    /// The folder that the environment names is not good; another one would not be what was asked for.
    Named(String),
    /// No folder has them; those that come near, and what is wrong with each.
    Everywhere(Vec<String>),
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(what) => write!(formatter, "`{VARIABLE}` is no good: {what}"),
            Self::Everywhere(near) => {
                write!(formatter, "`{}` of PostgreSQL {OLDEST} or later", PROGRAMS.join("`, `"))?;
                write!(formatter, " are not here: not on the search path")?;
                write!(formatter, ", nor in `{}/*/bin`", PACKAGED[0].0)?;
                near.iter().try_for_each(|what| write!(formatter, "\n  {what}"))
            }
        }
    }
}

/// The folder that has `initdb`, `postgres` and `psql`, all of one version that is new enough.
pub fn find() -> Result<PathBuf, Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    search(std::env::var_os(VARIABLE), &path, packaged())
}

fn search(
    named: Option<OsString>,
    path: &OsStr,
    packaged: Vec<PathBuf>,
) -> Result<PathBuf, Missing> {
    if let Some(named) = named {
        let folder = PathBuf::from(named);
        return version(&folder).map(|_| folder).map_err(Missing::Named);
    }
    let mut near = Vec::new();
    // On the path there may be links to some of the programs only, so what they lead to is looked at as well.
    let linked = std::env::split_paths(path).flat_map(|folder| {
        let program = folder.join("postgres").canonicalize().ok();
        let target = program.and_then(|program| program.parent().map(Path::to_path_buf));
        target.into_iter().chain([folder])
    });
    for folder in linked.filter(|folder| folder.join("postgres").is_file()) {
        match version(&folder) {
            Ok(_) => return Ok(folder),
            Err(what) => near.push(what),
        }
    }
    let mut newest = None;
    for folder in packaged {
        match version(&folder) {
            Ok(version) => newest = newest.max(Some((version, folder))),
            Err(what) => near.push(what),
        }
    }
    near.dedup();
    newest.map(|(_, folder)| folder).ok_or(Missing::Everywhere(near))
}

fn packaged() -> Vec<PathBuf> {
    let folders = PACKAGED.iter().flat_map(|(parent, prefix)| {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        let versions =
            entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(prefix));
        versions.map(|version| version.path().join("bin"))
    });
    folders.filter(|folder| folder.join("postgres").is_file()).collect()
}

/// Which version is in a folder, or why it cannot be used.
fn version(folder: &Path) -> Result<u32, String> {
    let shown = folder.display();
    if let Some(missing) = PROGRAMS.iter().find(|program| !folder.join(program).is_file()) {
        return Err(format!("`{shown}` has no `{missing}`"));
    }
    let program = folder.join("postgres");
    let answer = bounded::run(Command::new(&program).arg("--version"), PATIENCE)?;
    // `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, `… 19devel`.
    let number = answer.split_whitespace().nth(2).unwrap_or_default();
    let digits = number.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    match digits.parse() {
        Ok(version) if version >= OLDEST => Ok(version),
        Ok(version) => Err(format!("`{shown}` has PostgreSQL {version}, older than {OLDEST}")),
        Err(_) => Err(format!("`{}` does not tell its version: `{answer}`", program.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with programs that only tell their version.
    fn installed(root: &Path, name: &str, programs: &[&str], version: &str) -> PathBuf {
        let folder = root.join(name);
        fs::create_dir_all(&folder).unwrap();
        for program in programs {
            let script = format!("#!/bin/sh\necho '{program} (PostgreSQL) {version}'\n");
            // By another process: a file that we had open for writing, and a child of another test with us, could not
            // be run.
            let mut write = Command::new("sh");
            write.args(["-c", r#"printf %s "$1" >"$2" && chmod 755 "$2""#, "write", &script]);
            assert!(write.arg(folder.join(program)).status().unwrap().success());
        }
        folder.canonicalize().unwrap()
    }

    #[test]
    fn the_folder_that_is_named_counts_alone() {
        let root = tempfile::tempdir().unwrap();
        let named = installed(root.path(), "named", &PROGRAMS, "14.1");
        let other = installed(root.path(), "other", &PROGRAMS, "17.2");
        let found = search(Some(named.clone().into()), other.as_os_str(), vec![other.clone()]);
        assert_eq!(found.unwrap(), named);

        let empty = installed(root.path(), "empty", &["postgres"], "17.2");
        let missing = search(Some(empty.into()), other.as_os_str(), Vec::new()).unwrap_err();
        assert!(matches!(&missing, Missing::Named(_)));
        let said = missing.to_string();
        assert!(said.contains("WORKFLOWLOOKUP_POSTGRES") && said.contains("no `initdb`"), "{said}");
    }

    #[test]
    fn the_search_path_comes_before_packages_and_links_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let real = installed(root.path(), "real", &PROGRAMS, "16.3 (Debian 16.3-1)");
        let newer = installed(root.path(), "newer", &PROGRAMS, "18beta1");
        let links = root.path().join("links");
        fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink(real.join("postgres"), links.join("postgres")).unwrap();
        assert_eq!(search(None, links.as_os_str(), vec![newer.clone()]).unwrap(), real);
        let nothing = root.path().join("nothing");
        assert_eq!(search(None, nothing.as_os_str(), vec![newer.clone()]).unwrap(), newer);
    }

    #[test]
    fn the_highest_version_is_taken_and_old_ones_are_not() {
        let root = tempfile::tempdir().unwrap();
        // By name 9 would come last.
        let packages = ["9", "13", "14"].map(|number| {
            installed(root.path(), &format!("{number}/bin"), &PROGRAMS, &format!("{number}.7"))
        });
        let found = search(None, OsStr::new(""), packages.to_vec());
        assert_eq!(found.unwrap(), packages[2]);

        let missing = search(None, packages[0].as_os_str(), Vec::new()).unwrap_err();
        assert!(missing.to_string().contains("PostgreSQL 9, older than 13"), "{missing}");
    }
}
