//! This executable, and how others find it.

use std::io;
use std::path::{Path, PathBuf};

/// What the product is called on a command line.
pub(crate) const NAME: &str = "workflowlookup";

/// The file that is running.
pub(crate) fn own_path() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// What a shell would start by this name. Folders that depend on where one stands are passed over: an
/// agent stands elsewhere.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    folders.map(|folder| folder.join(&file)).find(|path| is_executable(path))
}

/// The name of the file that a command starts, without what some systems append.
pub(crate) fn stem(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Whether both are the same file, through whatever links.
pub(crate) fn is_same(left: &Path, right: &Path) -> bool {
    match (left.canonicalize(), right.canonicalize()) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}

#[cfg(unix)]
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file()
}
