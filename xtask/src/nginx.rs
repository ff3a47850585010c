//! The proxy that the tests put in front of two replicas: nginx as Debian has it. Tests are told where it is by
//! `WORKFLOWLOOKUP_NGINX`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// Where it is besides the search path: packages put it where only the superuser looks.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];
/// The smaller of Debian's packages, and the one that every other system has too.
const PACKAGES: [&str; 2] = ["nginx-light", "nginx"];

/// Says where it is. Where it is missing it is installed, if that may be done without asking.
pub(crate) fn install() -> Result<PathBuf, String> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if is_superuser() && has("apt-get") {
        // A list of packages that is too old is the usual reason why one is not found.
        let mut update = apt();
        run(update.args(["update", "--quiet"]))?;
        let installed = PACKAGES.iter().any(|package| {
            let install = ["install", "--yes", "--quiet", "--no-install-recommends", package];
            run(apt().args(install)).is_ok()
        });
        if let Some(found) = find().filter(|_| installed) {
            return Ok(found);
        }
    }
    Err("the tests put nginx in front of two servers, and it is not here: `apt install nginx-light` on Debian and \
         Ubuntu, `brew install nginx` on macOS\n  `cargo test --workspace` runs the other tests"
        .to_owned())
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join("nginx")).find(|program| program.is_file())
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

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}
