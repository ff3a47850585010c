//! Removing finished sessions that nobody has touched for long, inside the writer's transaction, a few at a
//! time. Running and waiting ones are never touched.

use rusqlite::{Connection, params};

use crate::backend::Pruning;
use crate::chain::Hash;
use crate::error::Error;
use crate::sqlite::counter::Delta;
use crate::sqlite::index::index;

pub(crate) const FINISHED: &str =
    "SELECT number, definition, seal FROM sessions INDEXED BY sessions_finished
    WHERE status = 2 AND touched < ?1 ORDER BY touched LIMIT ?2";
pub(crate) const COUNT_FINISHED: &str =
    "SELECT count(*) FROM sessions INDEXED BY sessions_finished WHERE status = 2 AND touched < ?1";
pub(crate) const DELETE_WORDS: &str =
    "DELETE FROM words WHERE rowid IN (SELECT id FROM events WHERE session = ?1)";
pub(crate) const DELETE_EVENTS: &str = "DELETE FROM events WHERE session = ?1";
pub(crate) const DELETE_SNAPSHOT: &str = "DELETE FROM snapshots WHERE session = ?1";
pub(crate) const DELETE_SHARES: &str = "DELETE FROM shares WHERE session = ?1";
pub(crate) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE number = ?1";
pub(crate) const DELETE_DEFINITION: &str = "DELETE FROM definitions WHERE hash = ?1
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE definition = ?1)";

/// Says how many went.
pub(crate) fn prune(
    connection: &Connection,
    pruning: &Pruning,
    delta: &mut Delta,
) -> Result<usize, Error> {
    let finished: Vec<(i64, String, Hash)> = connection
        .prepare_cached(FINISHED)?
        .query_map(params![pruning.older_than, pruning.limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    // Their words are then in one place.
    index(connection)?;
    for (number, definition, seal) in &finished {
        delta.removed(seal);
        for sql in [DELETE_WORDS, DELETE_EVENTS, DELETE_SNAPSHOT, DELETE_SHARES, DELETE_SESSION] {
            connection.prepare_cached(sql)?.execute([number])?;
        }
        connection.prepare_cached(DELETE_DEFINITION)?.execute([definition])?;
    }
    Ok(finished.len())
}

/// How many would go, if all were to.
pub(crate) fn count(connection: &Connection, older_than: u64) -> Result<usize, Error> {
    let mut statement = connection.prepare_cached(COUNT_FINISHED)?;
    Ok(statement.query_row([older_than], |row| row.get(0))?)
}
