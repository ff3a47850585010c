//! What belongs to the workspace: the folder in which an agent works and may write.

use std::path::{Component, Path, PathBuf};

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::choose_native_strategy;

/// The outermost repository around the working folder, or the working folder itself. The outermost one, because an agent
/// that can write files can make any folder inside it look like a repository.
pub(super) fn workspace() -> Option<PathBuf> {
    let folder = std::env::current_dir().and_then(std::fs::canonicalize).ok()?;
    let home = choose_native_strategy().ok();
    let home = home.and_then(|platform| std::fs::canonicalize(platform.home_dir()).ok());
    workspace_around(&folder, home.as_deref())
}

/// The home folder is not a workspace, since clients without a project start us there, and neither is a folder above it,
/// unless that is a repository: then the home folder is part of a clone.
fn workspace_around(folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let is_above_home = |folder: &Path| home.is_some_and(|home| home.starts_with(folder));
    let is_repository = |above: &Path| {
        above.parent().is_some() && home != Some(above) && above.join(".git").exists()
    };
    let repository = folder.ancestors().filter(|above| is_repository(above)).last();
    let alone = || Some(folder).filter(|it| it.parent().is_some() && !is_above_home(it));
    repository.or_else(alone).map(Path::to_owned)
}

/// Whether a path leads into a folder, or to somewhere else by a link that is in it. `folder` has no links in it.
pub(super) fn lies_within(path: &Path, folder: &Path) -> bool {
    let Ok(path) = std::path::absolute(path) else { return true };
    let mut reached = PathBuf::new();
    for part in path.components() {
        // A link could be turned elsewhere by whoever writes to the folder.
        if matches!(part, Component::Normal(_)) && reached.starts_with(folder) {
            return true;
        }
        reached.push(part);
        reached = std::fs::canonicalize(&reached).unwrap_or(reached);
    }
    reached.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn workspace_is_the_outermost_repository_below_home() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let home = root.join("home");
        let clone = home.join("clone");
        let inner = clone.join("sub/inner");
        fs::create_dir_all(&inner).unwrap();
        let around = |folder: &Path| workspace_around(folder, Some(&home));
        assert_eq!(around(&inner), Some(inner.clone()));
        assert_eq!(around(&home), None);
        assert_eq!(around(&root), None);
        fs::create_dir(clone.join(".git")).unwrap();
        assert_eq!(around(&inner), Some(clone.clone()));
        // What an agent that can only write files would do to make the workspace smaller.
        fs::write(inner.join(".git"), "").unwrap();
        assert_eq!(around(&inner), Some(clone.clone()));
        // A home folder that is kept in a repository does not make everything below it one workspace.
        fs::create_dir(home.join(".git")).unwrap();
        assert_eq!(around(&inner), Some(clone.clone()));
        assert_eq!(around(&home), None);
        // The home folder is part of a clone.
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(around(&home), Some(root.clone()));
        assert_eq!(around(&inner), Some(root));
    }

    #[test]
    fn links_lead_into_a_folder_and_out_of_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let folder = root.join("work");
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::create_dir_all(root.join("other")).unwrap();
        fs::write(root.join("other/file"), "").unwrap();
        fs::write(folder.join("file"), "").unwrap();
        symlink(root.join("other"), folder.join("out")).unwrap();
        symlink(root.join("other/file"), folder.join("link")).unwrap();
        symlink(&folder, root.join("in")).unwrap();
        symlink(folder.join("file"), root.join("other/back")).unwrap();
        for inside in [
            "work",
            "work/file",
            "work/none",
            "work/sub/../file",
            "work/out/file",
            "work/link",
            "in/file",
            "other/back",
            "other/../work/file",
        ] {
            assert!(lies_within(&root.join(inside), &folder), "{inside}");
        }
        for outside in ["other/file", "work/../other/file", "workshop", "other/none", ""] {
            assert!(!lies_within(&root.join(outside), &folder), "{outside}");
        }
    }
}
