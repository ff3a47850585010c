//! What was written since somebody looked last, by whatever process. It costs what has changed, and nothing where
//! nothing has.

use rusqlite::{Connection, OptionalExtension, params};

use crate::changes::{Change, Mark, Seen};
use crate::error::Error;
use crate::limits::PAGE_MAX;
use crate::model::Status;

pub(crate) const LAST: &str = "SELECT max(id) FROM events";
pub(crate) const SINCE: &str = "SELECT e.id, s.id, s.owner, e.kind, s.status FROM events e
    JOIN sessions s ON s.number = e.session WHERE e.id > ?1 ORDER BY e.id LIMIT ?2";

pub(crate) fn mark(connection: &Connection) -> Result<Mark, Error> {
    let last = connection.prepare_cached(LAST)?.query_row([], |row| row.get(0)).optional()?;
    Ok(Mark(Seen::Upto(last.flatten().unwrap_or_default())))
}

pub(crate) fn changes(connection: &Connection, since: &Mark) -> Result<(Mark, Vec<Change>), Error> {
    // Pruning may have taken the last ones away.
    let since = since.upto().min(mark(connection)?.upto());
    let mut last = since;
    let mut changes = Vec::new();
    let mut statement = connection.prepare_cached(SINCE)?;
    let mut rows = statement.query(params![since, PAGE_MAX])?;
    while let Some(row) = rows.next()? {
        last = row.get(0)?;
        let status = row.get(4)?;
        let status =
            Status::of(status).ok_or(rusqlite::Error::IntegralValueOutOfRange(4, status))?;
        let change = Change {
            session: row.get(1)?,
            owner: row.get(2)?,
            kind: row.get(3)?,
            status,
            shared_with: None,
        };
        changes.push(change);
    }
    Ok((Mark(Seen::Upto(last)), changes))
}
