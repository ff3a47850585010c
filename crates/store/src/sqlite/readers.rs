//! A few connections that read beside the writer. Each read sees one state of the file, whatever is
//! written meanwhile, and tells nothing of a file that is not at its path any more.

use parking_lot::{Condvar, Mutex};

use rusqlite::Transaction;

use crate::error::Error;
use crate::limits::READERS_MAX;
use crate::sqlite::files::{OpenFiles, OpenStore};
use crate::sqlite::schema;

#[derive(Debug)]
pub(crate) struct Readers {
    files: OpenFiles,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<OpenStore>,
    /// How many there are, idle or not.
    count: usize,
}

impl Readers {
    pub(crate) fn new(files: OpenFiles) -> Self {
        Self { files, pool: Mutex::default(), returned: Condvar::new() }
    }

    pub(crate) fn files(&self) -> &OpenFiles {
        &self.files
    }

    pub(crate) fn read<T>(
        &self,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut lent = Lent { opened: self.take(), readers: self };
        let opened = match &mut lent.opened {
            Some(opened) => opened,
            none => none.insert(OpenStore::connect(&self.files, schema::connect_reader)?),
        };
        let transaction = opened.connection.transaction()?;
        let value = run(&transaction);
        transaction.finish()?;
        opened.files().check()?;
        value
    }

    /// An idle connection, or leave to make one.
    fn take(&self) -> Option<OpenStore> {
        let mut pool = self.pool.lock();
        while pool.idle.is_empty() && pool.count == READERS_MAX {
            self.returned.wait(&mut pool);
        }
        let idle = pool.idle.pop();
        pool.count += usize::from(idle.is_none());
        idle
    }
}

/// Gives the connection back, also when a read fails or panics.
struct Lent<'a> {
    opened: Option<OpenStore>,
    readers: &'a Readers,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.pool.lock();
        match self.opened.take().filter(|opened| opened.connection.is_autocommit()) {
            Some(opened) => pool.idle.push(opened),
            None => pool.count -= 1,
        }
        drop(pool);
        self.readers.returned.notify_one();
    }
}
