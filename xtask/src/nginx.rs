//! The proxy that the tests put in front of two replicas: nginx as Debian has it. Tests are told where it is by
//! `WORKFLOWLOOKUP_NGINX`.

use std::path::PathBuf;

use crate::packages;

/// Where it is besides the search path: packages put it where only the superuser looks.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];
/// The smaller of Debian's packages, and the one that every other system has too.
const PACKAGES: [&str; 2] = ["nginx-light", "nginx"];

/// Says where it is. Where it is missing it is installed, if that may be done without asking.
pub(crate) fn install() -> Result<PathBuf, String> {
    let found = find().or_else(|| packages::install(&PACKAGES).then(find)?);
    found.ok_or_else(|| {
        "the tests put nginx in front of two servers, and it is not here: `apt install nginx-light` on Debian and \
         Ubuntu, `brew install nginx` on macOS\n  `cargo test --workspace` runs the other tests"
            .to_owned()
    })
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join("nginx")).find(|program| program.is_file())
}
