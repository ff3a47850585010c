//! Who may write what agents are told to do. A file that anybody on the machine can change is a way to
//! steer somebody else's agent.

use std::path::Path;

use catalog::Snapshot;

use super::Check;

#[cfg(unix)]
pub(super) fn look(snapshot: &Snapshot) -> Vec<Check> {
    use super::{Level, plural};
    use crate::cli::next::quoted;

    const ABOUT: &str = "permissions";
    /// How many are named before the rest is only counted.
    const LISTED_MAX: usize = 10;

    let places = places(snapshot);
    if places.is_empty() {
        return Vec::new();
    }
    let open: Vec<_> = places.iter().filter(|path| is_open(path)).collect();
    if open.is_empty() {
        let message =
            "nobody but their owners and groups can write the workflows' files and folders";
        return vec![Check::new(ABOUT, Level::Ok, message)];
    }
    let listed = open.iter().take(LISTED_MAX).map(|path| {
        let path = path.display().to_string();
        let message =
            format!("everybody on this machine can write `{path}`, and so steer your agent");
        let hint = format!("`chmod o-w {}`", quoted(&path));
        Check::new(ABOUT, Level::Warning, message).hint(hint)
    });
    let mut checks: Vec<Check> = listed.collect();
    if let Some(more) = open.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        let message = format!("the same holds for {} more", plural(more, "place"));
        checks.push(Check::new(ABOUT, Level::Warning, message));
    }
    checks
}

/// Elsewhere there are no such bits to look at.
#[cfg(not(unix))]
pub(super) fn look(_: &Snapshot) -> Vec<Check> {
    Vec::new()
}

/// Every workflow file, and every folder between it and its source.
#[cfg(unix)]
fn places(snapshot: &Snapshot) -> std::collections::BTreeSet<std::path::PathBuf> {
    use catalog::{Source, SourceState};

    let mut places = std::collections::BTreeSet::new();
    for (index, report) in snapshot.sources.iter().enumerate() {
        let Source::Folder { path: root, .. } = &report.source else {
            continue;
        };
        if report.state == SourceState::Missing {
            continue;
        }
        places.insert(root.clone());
        let served = snapshot.entries().iter();
        let hidden = snapshot.shadows().iter().map(|shadow| &shadow.entry);
        for entry in served.chain(hidden).filter(|entry| entry.source == index) {
            let within = entry.path.ancestors().take_while(|path| path != root);
            places.extend(within.map(|path| path.to_path_buf()));
        }
    }
    places
}

#[cfg(unix)]
fn is_open(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

#[cfg(unix)]
pub(super) fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o044 != 0)
}

/// Elsewhere there are no such bits to look at.
#[cfg(not(unix))]
pub(super) fn is_readable_by_others(_: &Path) -> bool {
    false
}
