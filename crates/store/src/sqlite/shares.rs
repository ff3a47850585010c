//! Whom sessions are shared with. What that means is the caller's business; exported logs say nothing of it.

use rusqlite::{Connection, params};

use crate::backend::Sharing;
use crate::error::Error;
use crate::limits::{PAGE_MAX, SHARES_MAX};
use crate::model::{Meta, Status};
use crate::sqlite::read::{meta, meta_columns, meta_of};

pub(crate) const ADD: &str = "INSERT OR IGNORE INTO shares (session, principal) VALUES (?1, ?2)";
pub(crate) const REMOVE: &str = "DELETE FROM shares WHERE session = ?1 AND principal = ?2";
pub(crate) const HAS: &str = "SELECT 1 FROM sessions s JOIN shares h ON h.session = s.number
    WHERE s.id = ?1 AND h.principal = ?2";
pub(crate) const OF_SESSION: &str = "SELECT principal FROM shares WHERE session = ?1
    ORDER BY principal LIMIT ?2";
/// The newest sessions first: their numbers are the order in which they were begun.
pub(crate) const WITH_PRINCIPAL: &str = concat!(
    "SELECT ",
    meta_columns!("s."),
    " FROM shares h JOIN sessions s ON s.number = h.session
    WHERE h.principal = ?1 ORDER BY h.session DESC LIMIT ?2"
);

/// Inside the writer's transaction.
pub(crate) fn share(connection: &Connection, sharing: &Sharing) -> Result<(), Error> {
    let Sharing { session, principal, is_on } = sharing;
    let (number, _) = meta(connection, session)?.ok_or(Error::NotFound)?;
    match is_on {
        true => add(connection, number, principal),
        false => {
            connection.prepare_cached(REMOVE)?.execute(params![number, principal])?;
            Ok(())
        }
    }
}

/// Adds one to a session that is there.
pub(crate) fn add(connection: &Connection, number: i64, principal: &str) -> Result<(), Error> {
    connection.prepare_cached(ADD)?.execute(params![number, principal])?;
    if of_session(connection, number, SHARES_MAX + 1)?.len() > SHARES_MAX {
        return Err(Error::TooManyShares);
    }
    Ok(())
}

pub(crate) fn is_shared(
    connection: &Connection,
    session: &str,
    principal: &str,
) -> Result<bool, Error> {
    Ok(connection.prepare_cached(HAS)?.exists([session, principal])?)
}

pub(crate) fn shares(connection: &Connection, session: &str) -> Result<Vec<String>, Error> {
    let (number, _) = meta(connection, session)?.ok_or(Error::NotFound)?;
    of_session(connection, number, SHARES_MAX)
}

/// Looks at no more than [`PAGE_MAX`] shares, the newest sessions'.
pub(crate) fn shared_with(
    connection: &Connection,
    principal: &str,
    statuses: &[Status],
    limit: usize,
) -> Result<Vec<Meta>, Error> {
    let mut statement = connection.prepare_cached(WITH_PRINCIPAL)?;
    let mut rows = statement.query(params![principal, PAGE_MAX])?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let meta = meta_of(row)?;
        if statuses.is_empty() || statuses.contains(&meta.head.status) {
            found.push(meta);
        }
    }
    Ok(found)
}

fn of_session(connection: &Connection, number: i64, limit: usize) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare_cached(OF_SESSION)?;
    let found = statement.query_map(params![number, limit], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}
