//! Debian's packages: installs what is missing, where that may be done without asking.

use std::path::Path;
use std::process::Command;

use crate::run;

/// The first of these that there is. Whether one was installed; where it may not be done, none is.
pub(crate) fn install(packages: &[&str]) -> bool {
    if !may_install() {
        return false;
    }
    // A list of packages that is too old is the usual reason why one is not found.
    if run(apt().args(["update", "--quiet"])).is_err() {
        return false;
    }
    packages.iter().any(|package| {
        let install = ["install", "--yes", "--quiet", "--no-install-recommends", package];
        run(apt().args(install)).is_ok()
    })
}

pub(crate) fn may_install() -> bool {
    is_superuser() && has("apt-get")
}

/// It must not begin to serve by itself, and nobody is there to answer questions.
fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    command
}

fn is_superuser() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}
