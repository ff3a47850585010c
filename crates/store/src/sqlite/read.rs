//! Reading one session: its head, its events, what it follows. A load believes what is sealed: the snapshot, the events
//! after it and the head; `verify` doubts everything.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::chain::{Chain, Hash};
use crate::error::Error;
use crate::limits::PAGE_MAX;
use crate::model::{Event, EventPage, Head, Log, Meta, Order, PageBudget, Snapshot, Status};
use crate::verify::Flaw;

/// What [`meta_of`] reads.
macro_rules! meta_columns {
    () => {
        meta_columns!("sessions.")
    };
    // Of a table that has another name in the statement.
    ($of:literal) => {
        concat!(
            $of,
            "id, ",
            $of,
            "key, ",
            $of,
            "owner, ",
            $of,
            "workflow, ",
            $of,
            "goal, ",
            $of,
            "definition, ",
            $of,
            "created, ",
            $of,
            "touched, ",
            $of,
            "version, ",
            $of,
            "status, ",
            $of,
            "step, ",
            $of,
            "revision, ",
            $of,
            "number, EXISTS (SELECT 1 FROM events i WHERE i.session = ",
            $of,
            "number AND i.kind = 'imported')"
        )
    };
}
pub(crate) use meta_columns;

pub(crate) const META: &str = concat!("SELECT ", meta_columns!(), " FROM sessions WHERE id = ?1");
/// A body that is not wanted is not read: it stands last in its row, on pages of its own where it is long.
macro_rules! events_sql {
    ($compare:literal, $order:literal) => {
        concat!(
            "SELECT version, time, kind, revision, digest, CASE WHEN kind = ?4 THEN '' ELSE body END FROM events
            WHERE session = ?1 AND version ",
            $compare,
            " ?2 ORDER BY version ",
            $order,
            " LIMIT ?3"
        )
    };
}
pub(crate) const EVENTS: &str = events_sql!(">=", "ASC");
pub(crate) const EVENTS_BACK: &str = events_sql!("<=", "DESC");
pub(crate) const SEALED_EVENTS: &str =
    "SELECT version, time, kind, revision, digest, body, hash FROM events
    WHERE session = ?1 AND version >= ?2 ORDER BY version";
pub(crate) const SEALS: &str = "SELECT root, seal FROM sessions WHERE number = ?1";
pub(crate) const EVENT_AT_REVISION: &str = "SELECT version, time, kind, revision, digest, body
    FROM events WHERE session = ?1 AND revision = ?2 ORDER BY id DESC LIMIT 1";
pub(crate) const SNAPSHOT: &str = "SELECT s.version, s.text, s.seal, e.hash FROM snapshots s
    JOIN events e ON e.session = s.session AND e.version = s.version WHERE s.session = ?1";
pub(crate) const DEFINITION: &str = "SELECT text FROM definitions WHERE hash = ?1";

pub(crate) fn load(
    connection: &Connection,
    chain: &Chain,
    session: &str,
) -> Result<Option<Log>, Error> {
    let Some((number, meta)) = meta(connection, session)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(SEALS)?;
    let (root, seal): (Hash, Hash) =
        statement.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (snapshot, mut last) = match snapshot(connection, chain, number, session)? {
        Some((snapshot, hash)) => (Some(snapshot), hash),
        None => (None, root),
    };
    let from = snapshot.as_ref().map_or(1, |snapshot| snapshot.version + 1);
    let (mut events, mut budget, mut is_cut) = (Vec::new(), PageBudget::default(), false);
    let mut statement = connection.prepare_cached(SEALED_EVENTS)?;
    let mut rows = statement.query(params![number, from])?;
    while let Some(row) = rows.next()? {
        let event = event_of(row)?;
        let hash: Hash = row.get(6)?;
        if chain.link(&last, &event.link(session)) != hash {
            return Err(Error::Broken(vec![Flaw::Event(event.version)]));
        }
        last = hash;
        is_cut = is_cut || !budget.admits(&event);
        if !is_cut {
            events.push(event);
        }
    }
    let Meta { version, head, touched, .. } = &meta;
    if chain.seal(&last, session, *version, head, *touched) != seal {
        return Err(Error::Broken(vec![Flaw::Head(*version)]));
    }
    Ok(Some(Log { meta, snapshot, events, is_cut }))
}

pub(crate) fn meta(connection: &Connection, session: &str) -> Result<Option<(i64, Meta)>, Error> {
    let mut statement = connection.prepare_cached(META)?;
    let row = statement.query_row([session], |row| Ok((row.get(12)?, meta_of(row)?)));
    Ok(row.optional()?)
}

pub(crate) fn page(
    connection: &Connection,
    session: &str,
    page: &EventPage,
) -> Result<Vec<Event>, Error> {
    let (number, _) = meta(connection, session)?.ok_or(Error::NotFound)?;
    let limit = i64::try_from(page.limit.min(PAGE_MAX)).unwrap_or(0);
    let from = i64::try_from(page.from).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(match page.order {
        Order::OldestFirst => EVENTS,
        Order::NewestFirst => EVENTS_BACK,
    })?;
    let mut rows = statement.query(params![number, from, limit, page.omit_bodies_of])?;
    let (mut events, mut budget) = (Vec::new(), PageBudget::default());
    while let Some(row) = rows.next()? {
        let event = event_of(row)?;
        if !budget.admits(&event) {
            break;
        }
        events.push(event);
    }
    Ok(events)
}

pub(crate) fn event_at_revision(
    connection: &Connection,
    session: &str,
    revision: u64,
) -> Result<Option<Event>, Error> {
    let Some((number, _)) = meta(connection, session)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(EVENT_AT_REVISION)?;
    Ok(statement.query_row(params![number, revision], event_of).optional()?)
}

pub(crate) fn definition(connection: &Connection, hash: &str) -> Result<Option<String>, Error> {
    let mut statement = connection.prepare_cached(DEFINITION)?;
    Ok(statement.query_row([hash], |row| row.get(0)).optional()?)
}

/// The snapshot, if it is ours, and the hash of its event. One that is not is as good as none.
fn snapshot(
    connection: &Connection,
    chain: &Chain,
    number: i64,
    session: &str,
) -> Result<Option<(Snapshot, Hash)>, Error> {
    let mut statement = connection.prepare_cached(SNAPSHOT)?;
    let row = statement.query_row([number], |row| {
        let (seal, hash): (Hash, Hash) = (row.get(2)?, row.get(3)?);
        Ok((Snapshot { version: row.get(0)?, text: row.get(1)? }, seal, hash))
    });
    let row = match row.optional().map_err(Error::from) {
        Err(Error::Damaged(_)) => None,
        row => row?,
    };
    Ok(row.and_then(|(snapshot, seal, hash)| {
        let is_ours = chain.snapshot(&hash, session, snapshot.text.as_bytes()) == seal;
        is_ours.then_some((snapshot, hash))
    }))
}

pub(crate) fn meta_of(row: &Row<'_>) -> rusqlite::Result<Meta> {
    Ok(Meta {
        id: row.get(0)?,
        key: row.get(1)?,
        owner: row.get(2)?,
        workflow: row.get(3)?,
        goal: row.get(4)?,
        definition: row.get(5)?,
        created: row.get(6)?,
        touched: row.get(7)?,
        version: row.get(8)?,
        head: head(row, 9)?,
        is_imported: row.get(13)?,
    })
}

/// The status, the step and the revision, in three columns from this one on.
pub(crate) fn head(row: &Row<'_>, at: usize) -> rusqlite::Result<Head> {
    let status = row.get(at)?;
    Ok(Head {
        status: Status::of(status).ok_or(rusqlite::Error::IntegralValueOutOfRange(at, status))?,
        step: row.get(at + 1)?,
        revision: row.get(at + 2)?,
    })
}

fn event_of(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        version: row.get(0)?,
        time: row.get(1)?,
        kind: row.get(2)?,
        revision: row.get(3)?,
        digest: row.get(4)?,
        body: row.get(5)?,
    })
}
