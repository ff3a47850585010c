//! Reading everything of a session that is there, whatever somebody has made of it, and the file itself.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::chain::{Chain, Hash, Link};
use crate::error::Error;
use crate::limits::FILE_FLAWS_MAX;
use crate::model::Version;
use crate::sqlite::read::meta;
use crate::verify::{Flaw, Verified, Verifier};

pub(crate) const ROOT: &str = "SELECT root, seal, text FROM sessions
    LEFT JOIN definitions ON hash = definition WHERE number = ?1";
pub(crate) const LINKS: &str =
    "SELECT version, time, kind, revision, digest, hash, body FROM events
    WHERE session = ?1 ORDER BY version";
pub(crate) const SNAPSHOT_SEAL: &str =
    "SELECT s.version, s.text, s.seal, e.hash FROM snapshots s LEFT JOIN events e
    ON e.session = s.session AND e.version = s.version WHERE s.session = ?1";

pub(crate) fn verify(
    connection: &Connection,
    chain: &Chain,
    session: &str,
) -> Result<Verified, Error> {
    let (number, meta) = meta(connection, session)?.ok_or(Error::NotFound)?;
    let mut statement = connection.prepare_cached(ROOT)?;
    let mut verifier = statement.query_row([number], |row| {
        let definition = match row.get_ref(2)? {
            ValueRef::Null => None,
            text => Some(bytes(text)),
        };
        let (root, seal) = (hash(row.get_ref(0)?), hash(row.get_ref(1)?));
        Ok(Verifier::new(chain, &meta, root, seal, definition))
    })?;
    let mut statement = connection.prepare_cached(LINKS)?;
    let mut rows = statement.query([number])?;
    while !verifier.is_full()
        && let Some(row) = rows.next()?
    {
        let version = row.get(0)?;
        let stored = hash(row.get_ref(5)?);
        verifier.event(version, stored, link(row, session, version)?.as_ref());
    }
    Ok(verifier.end(snapshot(connection, chain, number, session)?))
}

/// What SQLite finds wrong with its tables and indexes.
pub(crate) fn file_flaws(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FILE_FLAWS_MAX})"))?;
    let mut rows = statement.query([])?;
    let mut flaws = Vec::new();
    while let Some(row) = rows.next()? {
        let text = String::from_utf8_lossy(bytes(row.get_ref(0)?)).into_owned();
        flaws.extend(text.lines().filter(|line| *line != "ok").map(str::to_owned));
    }
    flaws.truncate(FILE_FLAWS_MAX);
    Ok(flaws)
}

/// What the hash of an event binds. Whatever stands in a column is taken for bytes: a changed one need not be text any
/// more.
fn link<'a>(
    row: &'a Row<'_>,
    session: &'a str,
    version: Version,
) -> Result<Option<Link<'a>>, Error> {
    let revision = match row.get_ref(3)? {
        ValueRef::Null => Some(None),
        ValueRef::Integer(number) => u64::try_from(number).ok().map(Some),
        _ => None,
    };
    let digest = match row.get_ref(4)? {
        ValueRef::Null => None,
        value => Some(bytes(value)),
    };
    let (kind, body) = (bytes(row.get_ref(2)?), bytes(row.get_ref(6)?));
    let link = |(time, revision)| Link { session, version, time, kind, revision, digest, body };
    Ok(row.get(1).ok().zip(revision).map(link))
}

fn snapshot(
    connection: &Connection,
    chain: &Chain,
    number: i64,
    session: &str,
) -> Result<Option<Flaw>, Error> {
    let mut statement = connection.prepare_cached(SNAPSHOT_SEAL)?;
    let flaw = statement.query_row(params![number], |row| {
        let version = row.get(0).unwrap_or_default();
        let computed = hash(row.get_ref(3)?).map(|last| match row.get_ref(1) {
            Ok(text) => chain.snapshot(&last, session, bytes(text)),
            Err(_) => Hash::default(),
        });
        let is_sound = computed.is_some() && computed == hash(row.get_ref(2)?);
        Ok((!is_sound).then_some(Flaw::Snapshot(version)))
    });
    Ok(flaw.optional()?.flatten())
}

pub(crate) fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        _ => &[],
    }
}

fn hash(value: ValueRef<'_>) -> Option<Hash> {
    bytes(value).try_into().ok()
}
