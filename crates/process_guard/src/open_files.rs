//! How many files may be open. Each child takes a few of ours, and many systems allow a thousand at first and more to
//! whoever asks. A child gets what we had: some programs are slow where very many are allowed.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Three pipes, and one to hear of its end.
const FILES_PER_CHILD: u64 = 4;
const CHILDREN: u64 = 1_000;

/// Room for the files of many children, beside what there is. The limit that was before, where it was changed.
pub(super) fn raise() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let current = before.current?;
    let wanted = current.saturating_add(FILES_PER_CHILD * CHILDREN);
    let more = before.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if more <= current {
        return None;
    }
    let raised = Rlimit { current: Some(more), maximum: before.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => Some(current),
        Err(error) => {
            tracing::warn!("no more files may be open: {error}");
            None
        }
    }
}

/// For this process and what it starts.
pub(super) fn allow(open_files: Option<u64>) {
    if open_files.is_some() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // Less is always allowed.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: open_files, maximum });
    }
}

/// As it is now.
pub(super) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
