//! What a guard is told, as words of its command line behind `__guard`. That is not for people.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::process::Pid;

use super::Isolation;

pub(super) const GUARD: &str = "__guard";

/// How a guard is called in a list of processes: whoever kills us by our name should not kill it with us.
pub(super) const NAME: &str = "mcp-guard";

/// Words for a limit that is left as it is.
const NO_LIMIT: &str = "-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// Who starts it; when that is gone, so is the reason for it.
    pub(super) parent: Pid,
    /// How many files it may have open at first, where we allowed ourselves more.
    pub(super) open_files: Option<u64>,
    /// What is wanted; the system may not have it.
    pub(super) isolation: Isolation,
    pub(super) folder: PathBuf,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

impl Task {
    pub(super) fn words(&self) -> Vec<OsString> {
        let limit = self.open_files.map_or_else(|| NO_LIMIT.to_owned(), |limit| limit.to_string());
        let mut words = vec![
            self.parent.as_raw_pid().to_string().into(),
            limit.into(),
            word(self.isolation).into(),
            self.folder.clone().into(),
            self.program.clone().into(),
        ];
        words.extend(self.arguments.iter().cloned());
        words
    }

    /// Nothing, where the words are not ours.
    pub(super) fn read(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let parent = Pid::from_raw(words.next()?.to_str()?.parse().ok()?)?;
        let limit = words.next()?;
        let open_files = if limit == NO_LIMIT { None } else { Some(limit.to_str()?.parse().ok()?) };
        let isolation = words.next()?;
        let isolations = [Isolation::OutOfReach, Isolation::Watched];
        let isolation = isolations.into_iter().find(|one| isolation == word(*one))?;
        let folder = words.next()?.into();
        let program = words.next()?.into();
        Some(Self { parent, open_files, isolation, folder, program, arguments: words.collect() })
    }
}

fn word(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::OutOfReach => "isolated",
        Isolation::Watched => "watched",
    }
}

/// The file that this process runs. On Linux that is a name by which the kernel finds it even when it was replaced by
/// a newer one, so that a guard is always of the same version as we.
pub(super) fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        return "/proc/self/exe".into();
    }
    // An empty path is refused with a message when it is used.
    std::env::current_exe().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        for open_files in [None, Some(1024)] {
            let task = Task {
                parent: rustix::process::getpid(),
                open_files,
                isolation: Isolation::Watched,
                folder: "/a folder".into(),
                program: "/bin/echo".into(),
                arguments: vec!["".into(), "-".into(), OsString::from_vec(vec![0xff, b' '])],
            };
            assert_eq!(Task::read(task.words().into_iter()), Some(task));
        }
    }

    #[test]
    fn other_words_are_not_a_task() {
        for words in [
            &[][..],
            &["1"],
            &["0", "-", "watched", "/", "/bin/true"],
            &["1", "many", "watched", "/", "x"],
            &["1", "-", "/", "x"],
        ] {
            assert_eq!(Task::read(words.iter().map(Into::into)), None, "{words:?}");
        }
    }
}
