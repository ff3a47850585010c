//! A file beside the database that only takes up room. On a full disk it is given back, so that the write-ahead log can
//! be carried over into the database and sessions can be removed from it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::limits::{OPENING_BYTES, RESERVE_BYTES};
use crate::sqlite::files;

const SUFFIX: &str = "-reserve";
const CHUNK: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Reserve(PathBuf);

impl Reserve {
    pub(crate) fn beside(database: &Path) -> Self {
        Self(files::beside(database, SUFFIX))
    }

    /// Makes it, or fills it up again. Where the disk has no room for all of it there is none.
    pub(crate) fn fill(&self) {
        if fs::metadata(&self.0).is_ok_and(|file| file.len() >= RESERVE_BYTES) {
            return;
        }
        if let Err(error) = self.write() {
            tracing::debug!(%error, "no room for the reserve of the store");
            let _ = fs::remove_file(&self.0);
        }
    }

    fn write(&self) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.0)?;
        let mut missing = RESERVE_BYTES.saturating_sub(file.metadata()?.len());
        // Asked first: on a disk that is nearly full, others would run out of room while this is written.
        #[cfg(unix)]
        {
            let disk = rustix::fs::fstatvfs(&file)?;
            if disk.f_bavail.saturating_mul(disk.f_frsize) < missing {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        // Noise: a file system that compresses would make nothing of zeros.
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        let mut chunk = Vec::with_capacity(CHUNK);
        while missing > 0 {
            chunk.clear();
            while chunk.len() < CHUNK {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                chunk.extend_from_slice(&noise.to_le_bytes());
            }
            let length = usize::try_from(missing).unwrap_or(CHUNK).min(CHUNK);
            file.write_all(&chunk[..length])?;
            missing -= length as u64;
        }
        Ok(())
    }

    /// Gives the whole of it back to the disk.
    pub(crate) fn release(&self) {
        let _ = fs::remove_file(&self.0);
    }

    /// Gives as much back as opening the database needs. Says whether there was that much.
    pub(crate) fn release_for_opening(&self) -> bool {
        let Ok(file) = fs::OpenOptions::new().write(true).open(&self.0) else { return false };
        let length = file.metadata().map_or(0, |file| file.len());
        length >= OPENING_BYTES && file.set_len(length - OPENING_BYTES).is_ok()
    }
}
