//! A few connections that read beside the writer. Each read sees one state of the file, whatever is
//! written meanwhile.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};

use rusqlite::{Connection, Transaction};

use crate::error::Error;
use crate::limits::READERS_MAX;
use crate::sqlite::schema;

#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Connection>,
    /// How many there are, idle or not.
    count: usize,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, pool: Mutex::default(), returned: Condvar::new() }
    }

    pub(crate) fn read<T>(
        &self,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut lent = Lent { connection: self.take(), readers: self };
        let connection = match &mut lent.connection {
            Some(connection) => connection,
            none => none.insert(schema::connect_reader(&self.path)?),
        };
        let transaction = connection.transaction()?;
        let value = run(&transaction)?;
        transaction.finish()?;
        Ok(value)
    }

    /// An idle connection, or leave to make one.
    fn take(&self) -> Option<Connection> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        while pool.idle.is_empty() && pool.count == READERS_MAX {
            pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        let idle = pool.idle.pop();
        pool.count += usize::from(idle.is_none());
        idle
    }
}

/// Gives the connection back, also when a read fails or panics.
struct Lent<'a> {
    connection: Option<Connection>,
    readers: &'a Readers,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.pool.lock().unwrap_or_else(PoisonError::into_inner);
        match self.connection.take().filter(Connection::is_autocommit) {
            Some(connection) => pool.idle.push(connection),
            None => pool.count -= 1,
        }
        drop(pool);
        self.readers.returned.notify_one();
    }
}
