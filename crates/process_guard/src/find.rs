//! Where a command is. Looked for before anything is started, so that whoever asked hears of it at once, and by name.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::SpawnError;

/// Where programs are looked for by the system when there is no `PATH`.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// The folder to run in, whole.
pub(super) fn folder(cwd: Option<PathBuf>) -> Result<PathBuf, SpawnError> {
    let folder = cwd.unwrap_or_else(|| ".".into());
    let found = fs::metadata(&folder).and_then(|found| Ok((found, env::current_dir()?)));
    match found {
        Ok((found, _)) if !found.is_dir() => Err(SpawnError::NotFolder { folder }),
        Ok((_, current)) if folder == Path::new(".") => Ok(current),
        // No link is followed: a program sees its folder under the name that was given to it.
        Ok((_, current)) => Ok(current.join(folder)),
        Err(error) if is_missing(&error) => Err(SpawnError::NoFolder { folder }),
        Err(source) => Err(SpawnError::Unseen { path: folder, source }),
    }
}

/// The program's file, whole.
pub(super) fn program(
    command: &str,
    path: Option<&OsStr>,
    folder: &Path,
) -> Result<PathBuf, SpawnError> {
    if command.is_empty() {
        return Err(SpawnError::Empty);
    }
    if command.contains('/') {
        // Without `.` in the middle.
        return named(folder.join(command).components().collect());
    }
    let path = path.unwrap_or_else(|| OsStr::new(USUAL_PATH));
    let mut not_executable = None;
    for place in env::split_paths(path) {
        // An empty one is the current folder, as everywhere.
        let program = folder.join(place).join(command);
        if !program.is_file() {
            continue;
        }
        if access(&program, Access::EXEC_OK).is_ok() {
            return Ok(program);
        }
        not_executable.get_or_insert(program);
    }
    Err(match not_executable {
        Some(program) => SpawnError::NotExecutable { program },
        None => SpawnError::NotInPath {
            command: command.to_owned(),
            looked: path.display().to_string(),
        },
    })
}

fn named(program: PathBuf) -> Result<PathBuf, SpawnError> {
    match fs::metadata(&program) {
        Ok(found) if found.is_dir() => Err(SpawnError::IsFolder { program }),
        Ok(_) if access(&program, Access::EXEC_OK).is_err() => {
            Err(SpawnError::NotExecutable { program })
        }
        Ok(_) => Ok(program),
        Err(error) if is_missing(&error) => Err(SpawnError::NoProgram { program }),
        Err(source) => Err(SpawnError::Unseen { path: program, source }),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
