//! Adding an event: one statement that compares the end of the log with what we know of it, and writes. Nothing is told
//! to anybody inside of it; who wants to know looks at the events (`changes`).

use std::sync::Arc;

use deadpool_postgres::Client;

use super::attempts::{Attempt, transaction};
use super::failure::Failure;
use super::rows::{hash, signed, status_number};
use super::shares::reopen;
use super::tips::{self, Tip};
use super::tsvector::TsVector;
use crate::chain::{Chain, Hash, Link};
use crate::error::Error;
use crate::limits::{EVENTS_MAX, SNAPSHOT_BYTES_MAX};
use crate::model::{Append, NewEvent, Status, Version};

macro_rules! append_sql {
    () => {
        "WITH head AS (
            UPDATE sessions SET status = $4, step = $5, revision = $6, touched = $7, version = $2 + 1, seal = $8,
                finished = $9
            WHERE id = $1 AND version = $2 AND seal = $3 RETURNING number
        ), event AS (
            INSERT INTO events (session, version, time, kind, revision, digest, hash, body, words)
            SELECT number, $2 + 1, $7, $10, $11, $12, $13, $14, $15 FROM head RETURNING session
        )"
    };
}
pub(super) const APPEND: &str = concat!(append_sql!(), " SELECT session FROM event");
pub(super) const APPEND_WITH_SNAPSHOT: &str = concat!(
    append_sql!(),
    " INSERT INTO snapshots (session, version, text, seal) SELECT session, $2 + 1, $16, $17 FROM event
    ON CONFLICT (session) DO UPDATE SET version = excluded.version, text = excluded.text, seal = excluded.seal
    RETURNING session"
);
pub(super) const TWO_HASHES: &str = "SELECT e.version, e.hash FROM events e
    JOIN sessions s ON s.number = e.session
    WHERE s.id = $1 AND e.version IN ($2::bigint, $2::bigint + 1) ORDER BY e.version";
/// How often we look again where the end of a log is not where it was a moment ago.
const LOOKS_MAX: usize = 3;

pub(super) async fn append(attempt: Attempt<'_>, append: Arc<Append>) -> Result<Version, Failure> {
    let Attempt { client, shared, is_again } = attempt;
    let known = shared.tips.get(&append.session).filter(|tip| tip.version == append.expected);
    let mut tip = match known {
        Some(tip) => tip,
        None => look(attempt, &append).await?,
    };
    for _ in 0..LOOKS_MAX {
        if tip.version != append.expected {
            if is_again && was_ours(client, &shared.chain, &append).await? {
                return Ok(append.expected + 1);
            }
            return Err(Error::Conflict { actual: tip.version }.into());
        }
        if tip.version >= EVENTS_MAX {
            return Err(Error::TooMany { max: EVENTS_MAX }.into());
        }
        let write = write(client, &shared.chain, &append, &tip);
        let written = match append.is_reopened {
            false => write.await?,
            true => transaction(client, "BEGIN", reopen(attempt, &append.session, write)).await?,
        };
        if let Some(next) = written {
            let version = next.version;
            shared.tips.put(&append.session, next);
            return Ok(version);
        }
        tip = look(attempt, &append).await?;
    }
    Err(Failure::Again("the session changes all the time".to_owned()))
}

async fn look(attempt: Attempt<'_>, append: &Append) -> Result<Tip, Failure> {
    let Attempt { client, shared, .. } = attempt;
    let tip = tips::read(client, &shared.chain, &append.session).await?.ok_or(Error::NotFound)?;
    shared.tips.put(&append.session, tip.clone());
    Ok(tip)
}

/// The end of the log as it is then; none where it was not where we thought.
async fn write(
    client: &Client,
    chain: &Chain,
    append: &Append,
    tip: &Tip,
) -> Result<Option<Tip>, Failure> {
    let Append { session, event, head, time, .. } = append;
    let version = tip.version + 1;
    let hash = link(chain, &tip.hash, append);
    let seal = chain.seal(&hash, session, version, head, *time);
    let (time, revision) = (signed(*time), signed(head.revision));
    let (expected, status) = (signed(tip.version), status_number(head.status));
    let finished = (head.status == Status::Complete).then_some(time);
    let (event_revision, digest) = columns(event);
    let words = event.search.as_ref().map(|text| TsVector::of(text, &tip.owner));
    let (old_seal, hash_bytes, seal_bytes) = (&tip.seal[..], &hash[..], &seal[..]);
    let snapshot = append.snapshot.as_ref().filter(|text| text.len() <= SNAPSHOT_BYTES_MAX);
    let snapshot_seal = snapshot.map(|text| chain.snapshot(&hash, session, text.as_bytes()));
    let snapshot_seal = snapshot_seal.as_ref().map(<[u8; 32]>::as_slice);
    let mut values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
        session,
        &expected,
        &old_seal,
        &status,
        &head.step,
        &revision,
        &time,
        &seal_bytes,
        &finished,
        &event.kind,
        &event_revision,
        &digest,
        &hash_bytes,
        &event.body,
        &words,
    ];
    let sql = match (&snapshot, &snapshot_seal) {
        (Some(text), Some(seal)) => {
            values.push(*text);
            values.push(seal);
            APPEND_WITH_SNAPSHOT
        }
        _ => APPEND,
    };
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, &values).await?;
    Ok(row.map(|_| Tip { version, hash, seal, owner: Arc::clone(&tip.owner) }))
}

/// Whether the event that stands where ours should go is ours, from an attempt that we did not hear of.
async fn was_ours(client: &Client, chain: &Chain, append: &Append) -> Result<bool, Failure> {
    let statement = client.prepare_cached(TWO_HASHES).await?;
    let rows = client.query(&statement, &[&append.session, &signed(append.expected)]).await?;
    let [before, after] = &rows[..] else { return Ok(false) };
    Ok(link(chain, &hash(before, 1)?, append) == hash(after, 1)?)
}

fn link(chain: &Chain, previous: &Hash, append: &Append) -> Hash {
    let version = append.expected + 1;
    chain.link(previous, &link_of(&append.session, version, append.time, &append.event))
}

/// What the hash of an event that is to be written binds.
pub(super) fn link_of<'a>(
    session: &'a str,
    version: Version,
    time: u64,
    event: &'a NewEvent,
) -> Link<'a> {
    Link {
        session,
        version,
        time,
        kind: event.kind.as_bytes(),
        revision: event.revision,
        digest: event.digest.as_ref().map(<[u8; 32]>::as_slice),
        body: event.body.as_bytes(),
    }
}

/// The revision and the digest as columns.
pub(super) fn columns(event: &NewEvent) -> (Option<i64>, Option<&[u8]>) {
    (event.revision.map(signed), event.digest.as_ref().map(<[u8; 32]>::as_slice))
}
