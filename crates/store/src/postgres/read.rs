//! Reading one session: its head, its events, what it follows. A load believes what is sealed: the snapshot, the events
//! after it and the head; `verify` doubts everything.

use std::sync::Arc;

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::attempts::Attempt;
use super::failure::Failure;
use super::rows::{self, event, hash, head, meta_columns, number, signed};
use super::tips::Tip;
use crate::backend::Newer;
use crate::chain::{Chain, Hash};
use crate::error::Error;
use crate::limits::{PAGE_BYTES_MAX, PAGE_MAX};
use crate::model::{Event, EventPage, Log, Meta, Order, Snapshot, Version};
use crate::verify::Flaw;
use crate::words::owner_word;

pub(super) const META: &str =
    concat!("SELECT ", meta_columns!(), " FROM sessions s WHERE s.id = $1");
pub(super) const START: &str = concat!(
    "SELECT ",
    meta_columns!(),
    ", s.root, s.seal, p.version, p.text, p.seal,
    (SELECT e.hash FROM events e WHERE e.session = p.session AND e.version = p.version)
    FROM sessions s LEFT JOIN snapshots p ON p.session = s.number WHERE s.id = $1"
);
/// The events of a session from a version on, as many as one page holds: `octet_length` knows the size of a body without
/// reading it. The first one is always there. `$of` gives the session, `$limit` and `$bytes` bound the page.
macro_rules! page_sql {
    ($of:literal, $compare:literal, $order:literal, $size:literal, $limit:literal, $bytes:literal) => {
        concat!(
            "SELECT * FROM (SELECT version, time, kind, revision, digest, body, hash, ",
            $size,
            " AS size, sum(",
            $size,
            ") OVER (ORDER BY version ",
            $order,
            " ROWS UNBOUNDED PRECEDING) AS bytes FROM events WHERE session = ",
            $of,
            " AND version ",
            $compare,
            " $2 ORDER BY version ",
            $order,
            " LIMIT ",
            $limit,
            ") AS sized WHERE bytes <= ",
            $bytes,
            " OR bytes = size"
        )
    };
}
pub(super) use page_sql;

pub(super) const SEALED_EVENTS: &str = concat!(
    "SELECT version, time, kind, revision, digest, body, hash FROM (",
    page_sql!("$1", ">", "ASC", "octet_length(body)", "$4", "$5::bigint"),
    ") AS page WHERE version <= $3 ORDER BY version"
);
pub(super) const NEWER: &str = concat!(
    "SELECT e.version, e.time, e.kind, e.revision, e.digest, e.body, e.hash,
    s.version, s.touched, s.seal, s.status, s.step, s.revision
    FROM sessions s LEFT JOIN LATERAL (",
    page_sql!("s.number", ">", "ASC", "octet_length(body)", "$3", "$4::bigint"),
    ") AS e ON true WHERE s.id = $1 ORDER BY e.version"
);
macro_rules! events_sql {
    ($compare:literal, $order:literal) => {
        concat!(
            "SELECT version, time, kind, revision, digest, CASE WHEN kind = $5 THEN '' ELSE body END FROM (",
            page_sql!(
                "$1",
                $compare,
                $order,
                "CASE WHEN kind = $5 THEN 0 ELSE octet_length(body) END",
                "$3",
                "$4::bigint"
            ),
            ") AS page ORDER BY version ",
            $order
        )
    };
}
pub(super) const EVENTS: &str = events_sql!(">=", "ASC");
pub(super) const EVENTS_BACK: &str = events_sql!("<=", "DESC");
pub(super) const NUMBER: &str = "SELECT number FROM sessions WHERE id = $1";
pub(super) const EVENT_AT_REVISION: &str =
    "SELECT version, time, kind, revision, digest, body FROM events
    WHERE session = $1 AND revision = $2 ORDER BY version DESC LIMIT 1";
pub(super) const DEFINITION: &str = "SELECT text FROM definitions WHERE hash = $1";
/// Where more was written than this since somebody has looked, they read it all again.
const NEWER_MAX: i64 = 64;
/// The bounds of a page as the server takes them.
pub(super) const PAGE: i64 = PAGE_MAX as i64;
pub(super) const PAGE_BYTES: i64 = PAGE_BYTES_MAX as i64;

pub(super) async fn meta(attempt: Attempt<'_>, id: Arc<String>) -> Result<Option<Meta>, Failure> {
    let statement = attempt.client.prepare_cached(META).await?;
    let row = attempt.client.query_opt(&statement, &[&*id]).await?;
    row.as_ref().map(rows::meta).transpose()
}

pub(super) async fn load(attempt: Attempt<'_>, id: Arc<String>) -> Result<Option<Log>, Failure> {
    let Attempt { client, shared, .. } = attempt;
    let statement = client.prepare_cached(START).await?;
    let Some(row) = client.query_opt(&statement, &[&*id]).await? else { return Ok(None) };
    let meta = rows::meta(&row)?;
    let session: i64 = row.try_get(12)?;
    let (root, seal) = (hash(&row, 14)?, hash(&row, 15)?);
    let (snapshot, last) = match snapshot(&row, &shared.chain, &id)? {
        Some((snapshot, hash)) => (Some(snapshot), hash),
        None => (None, root),
    };
    let mut from = snapshot.as_ref().map_or(0, |snapshot| snapshot.version);
    let statement = client.prepare_cached(SEALED_EVENTS).await?;
    let mut walk = Walk { chain: &shared.chain, session: &id, last };
    let (mut events, mut is_cut) = (Vec::new(), false);
    while from < meta.version {
        let (after, to) = (signed(from), signed(meta.version));
        let rows = client.query(&statement, &[&session, &after, &to, &PAGE, &PAGE_BYTES]).await?;
        let page = rows.iter().map(|row| walk.event(row)).collect::<Result<Vec<_>, Failure>>()?;
        let Some(last) = page.last() else { break };
        from = last.version;
        // What does not fit into one page is verified and not kept.
        if events.is_empty() {
            events = page;
        } else {
            is_cut = true;
        }
    }
    let Meta { version, head, touched, .. } = &meta;
    if shared.chain.seal(&walk.last, &id, *version, head, *touched) != seal {
        return Err(Error::Broken(vec![Flaw::Head(*version)]).into());
    }
    let owner = owner_word(&meta.owner).into();
    shared.tips.put(&id, Tip { version: *version, hash: walk.last, seal, owner });
    Ok(Some(Log { meta, snapshot, events, is_cut }))
}

/// What was written after a version that we know the end of.
pub(super) async fn newer(
    attempt: Attempt<'_>,
    arguments: Arc<(String, Version)>,
) -> Result<Newer, Failure> {
    let Attempt { client, shared, .. } = attempt;
    let (id, from) = &*arguments;
    let Some(tip) = shared.tips.get(id).filter(|tip| tip.version == *from) else {
        return Ok(Newer::Unknown);
    };
    let statement = client.prepare_cached(NEWER).await?;
    let rows = client.query(&statement, &[id, &signed(*from), &NEWER_MAX, &PAGE_BYTES]).await?;
    let Some(first) = rows.first() else { return Err(Error::NotFound.into()) };
    let version = number(first, 7)?;
    if version == *from {
        // Somebody else's head under the same version is not the one that we know.
        return Ok(if hash(first, 9)? == tip.seal {
            Newer::Events(Vec::new())
        } else {
            Newer::Unknown
        });
    }
    let mut walk = Walk { chain: &shared.chain, session: id, last: tip.hash };
    let events = rows.iter().map(|row| walk.event(row)).collect::<Result<Vec<Event>, Failure>>()?;
    if events.last().is_none_or(|last| last.version != version) {
        return Ok(Newer::Unknown);
    }
    let (touched, seal) = (number(first, 8)?, hash(first, 9)?);
    if shared.chain.seal(&walk.last, id, version, &head(first, 10)?, touched) != seal {
        return Err(Error::Broken(vec![Flaw::Head(version)]).into());
    }
    shared.tips.put(id, Tip { version, hash: walk.last, seal, owner: tip.owner });
    Ok(Newer::Events(events))
}

/// Goes along a chain.
struct Walk<'a> {
    chain: &'a Chain,
    session: &'a str,
    last: Hash,
}

impl Walk<'_> {
    /// The next event, if it hangs on the one before.
    fn event(&mut self, row: &Row) -> Result<Event, Failure> {
        let event = event(row)?;
        let hash = hash(row, 6)?;
        if self.chain.link(&self.last, &event.link(self.session)) != hash {
            return Err(Error::Broken(vec![Flaw::Event(event.version)]).into());
        }
        self.last = hash;
        Ok(event)
    }
}

/// The snapshot, if it is ours, and the hash of its event. One that is not is as good as none.
fn snapshot(row: &Row, chain: &Chain, session: &str) -> Result<Option<(Snapshot, Hash)>, Failure> {
    let (version, text): (Option<i64>, Option<String>) = (row.try_get(16)?, row.try_get(17)?);
    let (seal, hash): (Option<&[u8]>, Option<&[u8]>) = (row.try_get(18)?, row.try_get(19)?);
    let (Some(version), Some(text), Some(seal), Some(hash)) = (version, text, seal, hash) else {
        return Ok(None);
    };
    let (Ok(version), Ok(hash)) = (Version::try_from(version), Hash::try_from(hash)) else {
        return Ok(None);
    };
    let is_ours = chain.snapshot(&hash, session, text.as_bytes()) == seal;
    Ok(is_ours.then_some((Snapshot { version, text }, hash)))
}

pub(super) async fn page(
    attempt: Attempt<'_>,
    arguments: Arc<(String, EventPage)>,
) -> Result<Vec<Event>, Failure> {
    let (id, page) = &*arguments;
    let client = attempt.client;
    let number = session_number(client, id).await?.ok_or(Error::NotFound)?;
    let limit = i64::try_from(page.limit.min(PAGE_MAX)).unwrap_or(0);
    let sql = match page.order {
        Order::OldestFirst => EVENTS,
        Order::NewestFirst => EVENTS_BACK,
    };
    let statement = client.prepare_cached(sql).await?;
    let (from, omitted) = (signed(page.from), page.omit_bodies_of);
    let rows = client.query(&statement, &[&number, &from, &limit, &PAGE_BYTES, &omitted]).await?;
    rows.iter().map(event).collect()
}

pub(super) async fn event_at_revision(
    attempt: Attempt<'_>,
    arguments: Arc<(String, u64)>,
) -> Result<Option<Event>, Failure> {
    let (id, revision) = &*arguments;
    let Some(number) = session_number(attempt.client, id).await? else { return Ok(None) };
    let statement = attempt.client.prepare_cached(EVENT_AT_REVISION).await?;
    let row = attempt.client.query_opt(&statement, &[&number, &signed(*revision)]).await?;
    row.as_ref().map(event).transpose()
}

pub(super) async fn definition(
    attempt: Attempt<'_>,
    hash: Arc<String>,
) -> Result<Option<String>, Failure> {
    let statement = attempt.client.prepare_cached(DEFINITION).await?;
    let row = attempt.client.query_opt(&statement, &[&*hash]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

async fn session_number(client: &Client, id: &str) -> Result<Option<i64>, Failure> {
    let statement = client.prepare_cached(NUMBER).await?;
    let row = client.query_opt(&statement, &[&id]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}
