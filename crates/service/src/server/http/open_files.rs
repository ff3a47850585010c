//! How many files a process may have open, and connections are files. Many systems allow a thousand at first and
//! more to whoever asks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is not for connections: the store, workflow files, the log.
const OTHERS: u64 = 128;

/// Asks for as many as may be, and says how many connections that allows, at most this many.
pub(super) fn connections(wanted: usize) -> usize {
    let before = getrlimit(Resource::Nofile);
    let enough = wanted as u64 + OTHERS;
    let more = before.maximum.map_or(enough, |maximum| maximum.min(enough));
    let is_less = before.current.is_some_and(|current| current < more);
    if is_less
        && let Err(error) =
            setrlimit(Resource::Nofile, Rlimit { current: Some(more), maximum: before.maximum })
    {
        tracing::warn!("no more files may be open: {error}");
    }
    let Some(files) = getrlimit(Resource::Nofile).current else {
        return wanted;
    };
    // Half of very few.
    let connections = files.saturating_sub(OTHERS).max(files / 2).max(1);
    usize::try_from(connections).unwrap_or(usize::MAX).min(wanted)
}
