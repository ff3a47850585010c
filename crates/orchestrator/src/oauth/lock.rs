//! Locks between processes: files that whoever holds one has locked. The system lets go of it when its holder ends, however
//! that happens. Everybody waits for a bounded time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How often it is looked whether a lock is free.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Let go of when it is dropped.
#[derive(Debug)]
pub(super) struct Held(
    #[expect(dead_code, reason = "the lock is there as long as the file is open")] File,
);

/// Waits until the lock is ours. Nothing where somebody else has it for too long.
///
/// The file stays where it is, for ever: whoever removed it would take it away from those who wait for it.
pub(super) async fn hold(path: &Path, patience: Duration) -> io::Result<Option<Held>> {
    let until = Instant::now() + patience;
    let file = open(path)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(Held(file))),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(None),
            Err(TryLockError::WouldBlock) => sleep(LOOK_INTERVAL).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_holds_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = hold(&path, Duration::ZERO).await.unwrap().unwrap();
        assert!(hold(&path, Duration::ZERO).await.unwrap().is_none());
        drop(first);
        assert!(hold(&path, Duration::ZERO).await.unwrap().is_some());
    }
}
