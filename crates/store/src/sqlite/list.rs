//! Lists of sessions, newest first, a page at a time. Every filter has an index, so that a page costs the same
//! however many sessions there are.

use rusqlite::{Connection, ToSql, params};

use crate::error::Error;
use crate::limits::PAGE_MAX;
use crate::list::{Cursor, Filter, Page};
use crate::model::{Counts, Meta, Status, Usage};
use crate::sqlite::read::{meta_columns, meta_of};
use crate::sqlite::verify::bytes;

macro_rules! list_sql {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            meta_columns!(),
            " FROM sessions WHERE ",
            $condition,
            "status = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3"
        )
    };
}
pub(crate) const ALL: &str = list_sql!("");
pub(crate) const BY_OWNER: &str = list_sql!("owner = ?4 AND ");
pub(crate) const BY_WORKFLOW: &str = list_sql!("workflow = ?4 AND ");
pub(crate) const BY_OWNER_AND_WORKFLOW: &str = list_sql!("owner = ?4 AND workflow = ?5 AND ");
pub(crate) const BY_BEGINNING: &str = concat!(
    "SELECT ",
    meta_columns!(),
    " FROM sessions WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3"
);
/// By the table itself, since an index may be what was changed.
pub(crate) const IDS: &str =
    "SELECT number, id FROM sessions WHERE number > ?1 ORDER BY number LIMIT ?2";
pub(crate) const HAS_NUMBER: &str = "SELECT 1 FROM sessions WHERE number = ?1";
pub(crate) const COUNT: &str = "SELECT count(*) FROM sessions WHERE status = ?1";
pub(crate) const OPEN_OF_OWNER: &str =
    "SELECT count(*) FROM sessions WHERE owner = ?1 AND status = ?2";
/// `octet_length` of a column reads its header only.
pub(crate) const BYTES_OF_OWNER: &str = "SELECT coalesce(sum(octet_length(e.body)), 0)
    FROM sessions s JOIN events e ON e.session = s.number WHERE s.owner = ?1";
/// Comes after every sign that an id may have.
const AFTER_IDS: char = '\u{7f}';

pub(crate) fn list(connection: &Connection, filter: &Filter) -> Result<Page, Error> {
    let limit = filter.limit.min(PAGE_MAX);
    let before = filter.before.map_or(i64::MAX, |cursor| cursor.0);
    let statuses = if filter.statuses.is_empty() { &Status::ALL[..] } else { &filter.statuses };
    // One more than asked for tells whether anything follows.
    let count = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let (owner, workflow) = (&filter.owner, &filter.workflow);
    let sql = match (owner, workflow) {
        (None, None) => ALL,
        (Some(_), None) => BY_OWNER,
        (None, Some(_)) => BY_WORKFLOW,
        (Some(_), Some(_)) => BY_OWNER_AND_WORKFLOW,
    };
    let mut found: Vec<(i64, Meta)> = Vec::new();
    for status in statuses {
        let status = status.number();
        let mut values: Vec<&dyn ToSql> = vec![&status, &before, &count];
        values.extend(owner.iter().map(|owner| owner as &dyn ToSql));
        values.extend(workflow.iter().map(|workflow| workflow as &dyn ToSql));
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(&*values, |row| Ok((row.get(12)?, meta_of(row)?)))?;
        for row in rows {
            found.push(row?);
        }
    }
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let follows = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| follows).map(|(number, _)| Cursor(*number));
    Ok(Page { sessions: found.into_iter().map(|(_, meta)| meta).collect(), next })
}

/// The sessions whose ids begin so, in the order of ids.
pub(crate) fn beginning_with(
    connection: &Connection,
    beginning: &str,
    limit: usize,
) -> Result<Vec<Meta>, Error> {
    let end = format!("{beginning}{AFTER_IDS}");
    let mut statement = connection.prepare_cached(BY_BEGINNING)?;
    let found = statement.query_map(params![beginning, end, limit.min(PAGE_MAX)], meta_of)?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Where each session stands and the bytes of its id, which somebody may have changed, the oldest first.
pub(crate) fn ids(
    connection: &Connection,
    after: Option<Cursor>,
    limit: usize,
) -> Result<Vec<(Cursor, Vec<u8>)>, Error> {
    let after = after.map_or(i64::MIN, |cursor| cursor.0);
    let mut statement = connection.prepare_cached(IDS)?;
    let found = statement.query_map(params![after, limit.min(PAGE_MAX)], |row| {
        Ok((Cursor(row.get(0)?), bytes(row.get_ref(1)?).to_vec()))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Goes through an index, and so takes the longer the more there are.
pub(crate) fn counts(connection: &Connection) -> Result<Counts, Error> {
    let mut statement = connection.prepare_cached(COUNT)?;
    let mut count = |status: Status| statement.query_row([status.number()], |row| row.get(0));
    Ok(Counts {
        running: count(Status::Running)?,
        waiting: count(Status::Waiting)?,
        complete: count(Status::Complete)?,
    })
}

pub(crate) fn usage(connection: &Connection, owner: &str) -> Result<Usage, Error> {
    let mut statement = connection.prepare_cached(OPEN_OF_OWNER)?;
    let mut count = |status: Status| -> rusqlite::Result<u64> {
        statement.query_row(params![owner, status.number()], |row| row.get(0))
    };
    let open_sessions = count(Status::Running)? + count(Status::Waiting)?;
    let mut statement = connection.prepare_cached(BYTES_OF_OWNER)?;
    let stored_bytes = statement.query_row([owner], |row| row.get(0))?;
    Ok(Usage { open_sessions, stored_bytes })
}

pub(crate) fn is_there(connection: &Connection, at: Cursor) -> Result<bool, Error> {
    Ok(connection.prepare_cached(HAS_NUMBER)?.exists([at.0])?)
}
