//! Handshakes that were ended before their time, so that every process that shares the file knows. What an id means is
//! the caller's business. They are forgotten once they would have ended anyway, and the oldest first where there are too
//! many.

use rusqlite::{Connection, params};

use crate::backend::Ending;
use crate::error::Error;
use crate::limits::{ENDED_MAX, ENDED_PRUNED_MAX};

pub(crate) const HAS: &str = "SELECT 1 FROM ended WHERE id = ?1";
pub(crate) const ADD: &str = "INSERT OR IGNORE INTO ended (id, until) VALUES (?1, ?2)";
pub(crate) const FORGET_OLD: &str = "DELETE FROM ended WHERE number IN
    (SELECT number FROM ended INDEXED BY ended_by_time WHERE until < ?1 LIMIT ?2)";
pub(crate) const FORGET_FIRST: &str =
    "DELETE FROM ended WHERE number <= (SELECT max(number) FROM ended) - ?1";

pub(crate) fn end(connection: &Connection, ending: &Ending) -> Result<(), Error> {
    let Ending { id, until, now } = ending;
    connection.prepare_cached(FORGET_OLD)?.execute(params![now, ENDED_PRUNED_MAX])?;
    connection.prepare_cached(ADD)?.execute(params![id, until])?;
    connection.prepare_cached(FORGET_FIRST)?.execute([ENDED_MAX])?;
    Ok(())
}

pub(crate) fn has_ended(connection: &Connection, id: &[u8; 16]) -> Result<bool, Error> {
    Ok(connection.prepare_cached(HAS)?.exists([id])?)
}
