//! Adding an event, inside the writer's transaction. The expected version is checked here and nowhere else, so that
//! threads and processes cannot both win. What it costs grows neither with the log nor with the store.

use rusqlite::{Connection, OptionalExtension, params};

use crate::chain::{Chain, Hash, Link};
use crate::error::Error;
use crate::limits::{EVENTS_MAX, SNAPSHOT_BYTES_MAX};
use crate::model::{Append, Head, NewEvent, Version};
use crate::sqlite::counter::Delta;
use crate::sqlite::index;
use crate::sqlite::read::head;
use crate::sqlite::shares::check_reopened;

/// The head, and the hash of the event that it stands on.
pub(crate) const HEAD: &str =
    "SELECT s.number, s.owner, s.version, s.status, s.step, s.revision, s.touched, s.seal,
    (SELECT e.hash FROM events e WHERE e.session = s.number AND e.version = s.version)
    FROM sessions s WHERE s.id = ?1";
pub(crate) const INSERT_EVENT: &str =
    "INSERT INTO events (session, version, time, kind, revision, digest, hash, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
pub(crate) const UPDATE_HEAD: &str =
    "UPDATE sessions SET step = ?2, revision = ?3, touched = ?4, version = ?5, seal = ?6
    WHERE number = ?1";
/// Apart from the head: the status is in every index of the lists, and seldom changes.
pub(crate) const UPDATE_STATUS: &str = "UPDATE sessions SET status = ?2 WHERE number = ?1";
pub(crate) const INSERT_SNAPSHOT: &str =
    "INSERT OR REPLACE INTO snapshots (session, version, text, seal) VALUES (?1, ?2, ?3, ?4)";

struct Current {
    number: i64,
    owner: String,
    version: Version,
    head: Head,
    touched: u64,
    seal: Hash,
    last: Option<Hash>,
}

pub(crate) fn append(
    connection: &Connection,
    chain: &Chain,
    append: &Append,
    delta: &mut Delta,
) -> Result<Version, Error> {
    let session = append.session.as_str();
    let current = current(connection, session)?.ok_or(Error::NotFound)?;
    if current.version != append.expected {
        return Err(Error::Conflict { actual: current.version });
    }
    if current.version >= EVENTS_MAX {
        return Err(Error::TooMany { max: EVENTS_MAX });
    }
    // A head that was forged must not be sealed again by us.
    let seal = current
        .last
        .map(|last| chain.seal(&last, session, current.version, &current.head, current.touched));
    let (Some(previous), true) = (current.last, seal == Some(current.seal)) else {
        return Err(Error::Damaged(format!("the head of `{session}` does not fit its last event")));
    };

    let version = current.version + 1;
    let place = Place { session, number: current.number, owner: &current.owner };
    let hash =
        insert_event(connection, chain, &place, &previous, version, append.time, &append.event)?;
    let seal = chain.seal(&hash, session, version, &append.head, append.time);
    delta.appended(&current.seal, &seal);
    let head = &append.head;
    connection.prepare_cached(UPDATE_HEAD)?.execute(params![
        current.number,
        head.step,
        head.revision,
        append.time,
        version,
        seal
    ])?;
    if head.status != current.head.status {
        let status = head.status.number();
        connection.prepare_cached(UPDATE_STATUS)?.execute(params![current.number, status])?;
    }
    if append.is_reopened {
        check_reopened(connection, current.number)?;
    }
    let snapshot = append.snapshot.as_ref().filter(|text| text.len() <= SNAPSHOT_BYTES_MAX);
    if let Some(text) = snapshot {
        let seal = chain.snapshot(&hash, session, text.as_bytes());
        connection.prepare_cached(INSERT_SNAPSHOT)?.execute(params![
            current.number,
            version,
            text,
            seal
        ])?;
    }
    Ok(version)
}

/// The session that an event goes to.
pub(crate) struct Place<'a> {
    pub(crate) session: &'a str,
    pub(crate) number: i64,
    pub(crate) owner: &'a str,
}

/// Adds the row and its words, and says its hash.
pub(crate) fn insert_event(
    connection: &Connection,
    chain: &Chain,
    place: &Place<'_>,
    previous: &Hash,
    version: Version,
    time: u64,
    event: &NewEvent,
) -> Result<Hash, Error> {
    let link = Link {
        session: place.session,
        version,
        time,
        kind: event.kind.as_bytes(),
        revision: event.revision,
        digest: event.digest.as_ref().map(<[u8; 32]>::as_slice),
        body: event.body.as_bytes(),
    };
    let hash = chain.link(previous, &link);
    let id = connection.prepare_cached(INSERT_EVENT)?.insert(params![
        place.number,
        version,
        time,
        event.kind,
        event.revision,
        event.digest,
        hash,
        event.body
    ])?;
    if let Some(text) = &event.search {
        index::add(connection, id, place.owner, text)?;
    }
    Ok(hash)
}

fn current(connection: &Connection, session: &str) -> Result<Option<Current>, Error> {
    let mut statement = connection.prepare_cached(HEAD)?;
    let row = statement.query_row([session], |row| {
        Ok(Current {
            number: row.get(0)?,
            owner: row.get(1)?,
            version: row.get(2)?,
            head: head(row, 3)?,
            touched: row.get(6)?,
            seal: row.get(7)?,
            last: row.get(8)?,
        })
    });
    Ok(row.optional()?)
}
