//! The index of words. Texts wait until there are enough of them, or until somebody searches: an index of its own for
//! each append would double what an append costs.

use rusqlite::{Connection, params};

use crate::error::Error;
use crate::limits::{SEARCH_BYTES_MAX, UNINDEXED_MAX, cut};
use crate::words::owner_word;

pub(crate) const WAIT: &str = "INSERT INTO unindexed (event, owner, text) VALUES (?1, ?2, ?3)";
/// Whether any wait, without looking through them.
pub(crate) const LAST_WAITING: &str = "SELECT max(number) FROM unindexed";
/// These two go through all that wait, of which there are few.
const INSERT_WORDS: &str =
    "INSERT INTO words (rowid, owner, text) SELECT event, owner, text FROM unindexed";
const CLEAR: &str = "DELETE FROM unindexed";

/// Has an event's text found by the next search.
pub(crate) fn add(
    connection: &Connection,
    event_id: i64,
    owner: &str,
    text: &str,
) -> Result<(), Error> {
    let text = cut(text, SEARCH_BYTES_MAX);
    // Numbers begin at 1 again when none waits, so that this one tells how many there are.
    let waiting =
        connection.prepare_cached(WAIT)?.insert(params![event_id, owner_word(owner), text])?;
    if waiting >= UNINDEXED_MAX { index(connection) } else { Ok(()) }
}

/// Indexes what waits.
pub(crate) fn index(connection: &Connection) -> Result<(), Error> {
    connection.prepare_cached(INSERT_WORDS)?.execute([])?;
    connection.prepare_cached(CLEAR)?.execute([])?;
    Ok(())
}

pub(crate) fn has_waiting(connection: &Connection) -> Result<bool, Error> {
    let last: Option<i64> =
        connection.prepare_cached(LAST_WAITING)?.query_row([], |row| row.get(0))?;
    Ok(last.is_some())
}
