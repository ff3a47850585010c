//! Doubting a log: computing its chain anew and comparing it with what is stored, event by event. After a
//! flaw it goes on from what is stored, so that every changed event is named and not only the first.

use std::fmt;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::chain::{Chain, Hash, Link, Root};
use crate::error::Error;
use crate::limits::{FILE_FLAWS_MAX, FLAWS_MAX};
use crate::model::Version;
use crate::read::meta;

pub(crate) const ROOT: &str = "SELECT root, seal, text FROM sessions
    LEFT JOIN definitions ON hash = definition WHERE number = ?1";
pub(crate) const LINKS: &str =
    "SELECT version, time, kind, revision, digest, hash, body FROM events
    WHERE session = ?1 ORDER BY version";
pub(crate) const SNAPSHOT_SEAL: &str =
    "SELECT s.version, s.text, s.seal, e.hash FROM snapshots s LEFT JOIN events e
    ON e.session = s.session AND e.version = s.version WHERE s.session = ?1";

/// What came of it. Events and definition are sound if there are no flaws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What the head says.
    pub version: Version,
    /// At most [`FLAWS_MAX`] of them.
    pub flaws: Vec<Flaw>,
}

impl Verified {
    pub fn is_sound(&self) -> bool {
        self.flaws.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Owner, key, workflow, goal, time of start or the definition's text.
    Start,
    /// Its content or its hash.
    Event(Version),
    Missing(Version),
    /// An event that the head does not know.
    Surplus(Version),
    /// The head, at this version: status, step, revision, time or the number of events.
    Head(Version),
    /// The cached state of this version; it is not used, and an append with a new one replaces it.
    Snapshot(Version),
}

impl fmt::Display for Flaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => out.write_str("the start or the definition was changed"),
            Self::Event(version) => write!(out, "event {version} was changed"),
            Self::Missing(version) => write!(out, "event {version} is missing"),
            Self::Surplus(version) => write!(out, "event {version} was added behind the head"),
            Self::Head(version) => write!(out, "the head at version {version} was changed"),
            Self::Snapshot(version) => write!(out, "the snapshot of version {version} was changed"),
        }
    }
}

pub(crate) fn verify(
    connection: &Connection,
    chain: &Chain,
    session: &str,
) -> Result<Verified, Error> {
    let (number, meta) = meta(connection, session)?.ok_or(Error::NotFound)?;
    let mut statement = connection.prepare_cached(ROOT)?;
    let (stored_root, seal, is_start_sound) = statement.query_row([number], |row| {
        let definition = row.get_ref(2)?;
        let root = chain.root(&Root {
            id: &meta.id,
            key: meta.key.as_deref(),
            owner: &meta.owner,
            workflow: &meta.workflow,
            goal: &meta.goal,
            definition_hash: &meta.definition,
            definition_text: bytes(definition),
            created: meta.created,
        });
        let stored = hash(row.get_ref(0)?);
        let is_sound = stored == Some(root) && definition != ValueRef::Null;
        Ok((stored.unwrap_or(root), hash(row.get_ref(1)?), is_sound))
    })?;

    let mut flaws = Vec::new();
    if !is_start_sound {
        flaws.push(Flaw::Start);
    }
    let mut previous = stored_root;
    let mut last = None;
    let mut expected: Version = 1;
    let mut statement = connection.prepare_cached(LINKS)?;
    let mut rows = statement.query([number])?;
    while flaws.len() < FLAWS_MAX
        && let Some(row) = rows.next()?
    {
        let version: Version = row.get(0)?;
        let missing = expected..version.min(meta.version + 1);
        flaws.extend(missing.take(FLAWS_MAX).map(Flaw::Missing));
        expected = version.saturating_add(1);
        if version > meta.version || version == 0 {
            flaws.push(Flaw::Surplus(version));
            continue;
        }
        let (stored, computed) = link(row, chain, &previous, session, version)?;
        if stored.is_none() || stored != computed {
            flaws.push(Flaw::Event(version));
        }
        previous = stored.unwrap_or_default();
        if version == meta.version {
            last = Some(previous);
        }
    }
    let missing = expected..=meta.version;
    flaws.extend(missing.take(FLAWS_MAX.saturating_sub(flaws.len())).map(Flaw::Missing));
    let sealed =
        last.map(|last| chain.seal(&last, session, meta.version, &meta.head, meta.touched));
    if last.is_some() && sealed != seal || meta.version == 0 {
        flaws.push(Flaw::Head(meta.version));
    }
    flaws.extend(snapshot(connection, chain, number, session)?);
    flaws.truncate(FLAWS_MAX);
    Ok(Verified { version: meta.version, flaws })
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

/// The hash that an event has, and the one that it should have. Whatever stands in a column is taken for bytes:
/// a changed one need not be text any more.
fn link(
    row: &Row<'_>,
    chain: &Chain,
    previous: &Hash,
    session: &str,
    version: Version,
) -> Result<(Option<Hash>, Option<Hash>), Error> {
    let revision = match row.get_ref(3)? {
        ValueRef::Null => Some(None),
        ValueRef::Integer(number) => u64::try_from(number).ok().map(Some),
        _ => None,
    };
    let digest = match row.get_ref(4)? {
        ValueRef::Null => None,
        value => Some(bytes(value)),
    };
    let computed = match (row.get(1), revision) {
        (Ok(time), Some(revision)) => {
            let kind = bytes(row.get_ref(2)?);
            let body = bytes(row.get_ref(6)?);
            let link = Link { session, version, time, kind, revision, digest, body };
            Some(chain.link(previous, &link))
        }
        _ => None,
    };
    Ok((hash(row.get_ref(5)?), computed))
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
