//! Whom sessions are shared with. What that means is the caller's business; exported logs say nothing of it.

use rusqlite::{Connection, params};

use crate::backend::Sharing;
use crate::error::Error;
use crate::limits::{OPEN_SHARES_MAX, PAGE_MAX, SHARES_MAX};
use crate::model::{Meta, Status};
use crate::sqlite::read::{meta, meta_columns, meta_of};

pub(crate) const ADD: &str = "INSERT OR IGNORE INTO shares (session, principal) VALUES (?1, ?2)";
pub(crate) const REMOVE: &str = "DELETE FROM shares WHERE session = ?1 AND principal = ?2";
pub(crate) const HAS: &str = "SELECT 1 FROM sessions s JOIN shares h ON h.session = s.number
    WHERE s.id = ?1 AND h.principal = ?2";
pub(crate) const OF_SESSION: &str = "SELECT principal FROM shares WHERE session = ?1
    ORDER BY principal LIMIT ?2";
/// The open sessions of a session's owner that are shared with somebody else, through the index of owners.
pub(crate) const OPEN_OF_OWNER: &str = "SELECT 1 FROM sessions s CROSS JOIN shares h
    ON h.session = s.number AND h.principal = ?2
    WHERE s.owner = (SELECT owner FROM sessions WHERE number = ?1) AND s.status IN (0, 1) AND s.owner <> ?2 LIMIT ?3";
/// The newest sessions first: their numbers are the order in which they were begun.
pub(crate) const WITH_PRINCIPAL: &str = concat!(
    "SELECT ",
    meta_columns!("s."),
    " FROM shares h CROSS JOIN sessions s ON s.number = h.session
    WHERE h.principal = ?1 AND s.status = ?2 ORDER BY h.session DESC LIMIT ?3"
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

/// Adds one to a session that is there. On an error the transaction takes it back.
pub(crate) fn add(connection: &Connection, number: i64, principal: &str) -> Result<(), Error> {
    if connection.prepare_cached(ADD)?.execute(params![number, principal])? == 0 {
        return Ok(());
    }
    if of_session(connection, number, SHARES_MAX + 1)?.len() > SHARES_MAX {
        return Err(Error::TooManyShares);
    }
    check_open(connection, number, principal)
}

/// Refuses that a session is open again, if its owner shares too many then.
pub(crate) fn check_reopened(connection: &Connection, number: i64) -> Result<(), Error> {
    let names = of_session(connection, number, SHARES_MAX)?;
    names.iter().try_for_each(|name| check_open(connection, number, name))
}

fn check_open(connection: &Connection, number: i64, principal: &str) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(OPEN_OF_OWNER)?;
    let open = statement.query_map(params![number, principal, OPEN_SHARES_MAX + 1], |_| Ok(()))?;
    if open.count() > OPEN_SHARES_MAX {
        return Err(Error::TooManyOpenShares { principal: principal.to_owned() });
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

pub(crate) fn shared_with(
    connection: &Connection,
    principal: &str,
    statuses: &[Status],
    limit: usize,
) -> Result<Vec<Meta>, Error> {
    let (limit, mut found) = (limit.min(PAGE_MAX), Vec::new());
    let mut statement = connection.prepare_cached(WITH_PRINCIPAL)?;
    for status in if statuses.is_empty() { &Status::ALL[..] } else { statuses } {
        let values = params![principal, status.number(), limit];
        let rows = statement.query_map(values, |row| Ok((row.get(12)?, meta_of(row)?)))?;
        found.extend(rows.collect::<Result<Vec<(i64, Meta)>, _>>()?);
    }
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    found.truncate(limit);
    Ok(found.into_iter().map(|(_, meta)| meta).collect())
}

fn of_session(connection: &Connection, number: i64, limit: usize) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare_cached(OF_SESSION)?;
    let found = statement.query_map(params![number, limit], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}
