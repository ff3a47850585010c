//! Reading everything of a session that is there, whatever somebody has made of it, as it was at one moment.

use std::sync::Arc;

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::attempts::{Attempt, transaction};
use super::failure::Failure;
use super::read::{PAGE, PAGE_BYTES, page_sql};
use super::rows::{self, meta_columns, number};
use crate::chain::{Chain, Hash, Link};
use crate::error::Error;
use crate::model::Version;
use crate::verify::{Flaw, Verified, Verifier};

pub(super) const START: &str = concat!(
    "SELECT ",
    meta_columns!(),
    ", s.root, s.seal, d.text FROM sessions s LEFT JOIN definitions d ON d.hash = s.definition WHERE s.id = $1"
);
pub(super) const LINKS: &str = concat!(
    "SELECT version, time, kind, revision, digest, hash, body FROM (",
    page_sql!("$1", ">", "ASC", "octet_length(body)", "$3", "$4::bigint"),
    ") AS page ORDER BY version"
);
pub(super) const SNAPSHOT: &str =
    "SELECT p.version, p.text, p.seal, e.hash FROM snapshots p LEFT JOIN events e
    ON e.session = p.session AND e.version = p.version WHERE p.session = $1";
const ONE_MOMENT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

pub(super) async fn verify(attempt: Attempt<'_>, id: Arc<String>) -> Result<Verified, Failure> {
    let Attempt { client, shared, .. } = attempt;
    transaction(client, ONE_MOMENT, read(client, &shared.chain, &id)).await
}

async fn read(client: &Client, chain: &Chain, id: &str) -> Result<Verified, Failure> {
    let statement = client.prepare_cached(START).await?;
    let row = client.query_opt(&statement, &[&id]).await?.ok_or(Error::NotFound)?;
    let meta = rows::meta(&row)?;
    let session: i64 = row.try_get(12)?;
    let definition: Option<&str> = row.try_get(16)?;
    let definition = definition.map(str::as_bytes);
    let mut verifier = Verifier::new(chain, &meta, hash(&row, 14)?, hash(&row, 15)?, definition);
    let statement = client.prepare_cached(LINKS).await?;
    let mut after = i64::MIN;
    while !verifier.is_full() {
        let rows = client.query(&statement, &[&session, &after, &PAGE, &PAGE_BYTES]).await?;
        for row in &rows {
            after = row.try_get(0)?;
            let version = Version::try_from(after).unwrap_or_default();
            verifier.event(version, hash(row, 5)?, link(row, id, version)?.as_ref());
        }
        if rows.is_empty() {
            break;
        }
    }
    let statement = client.prepare_cached(SNAPSHOT).await?;
    let row = client.query_opt(&statement, &[&session]).await?;
    let flaw = row.map(|row| snapshot(&row, chain, id)).transpose()?.flatten();
    Ok(verifier.end(flaw))
}

fn link<'a>(row: &'a Row, session: &'a str, version: Version) -> Result<Option<Link<'a>>, Failure> {
    let (Ok(time), revision) = (number(row, 1), row.try_get::<_, Option<i64>>(3)?) else {
        return Ok(None);
    };
    let Ok(revision) = revision.map(u64::try_from).transpose() else { return Ok(None) };
    let (kind, body): (&str, &str) = (row.try_get(2)?, row.try_get(6)?);
    let (kind, body) = (kind.as_bytes(), body.as_bytes());
    let digest = row.try_get(4)?;
    Ok(Some(Link { session, version, time, kind, revision, digest, body }))
}

fn snapshot(row: &Row, chain: &Chain, session: &str) -> Result<Option<Flaw>, Failure> {
    let version = Version::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default();
    let text: &str = row.try_get(1)?;
    let computed = match row.try_get::<_, Option<&[u8]>>(3)? {
        Some(_) => hash(row, 3)?.map(|last| chain.snapshot(&last, session, text.as_bytes())),
        None => None,
    };
    let is_sound = computed.is_some() && computed == hash(row, 2)?;
    Ok((!is_sound).then_some(Flaw::Snapshot(version)))
}

/// None where it can be no hash.
fn hash(row: &Row, at: usize) -> Result<Option<Hash>, Failure> {
    let bytes: &[u8] = row.try_get(at)?;
    Ok(bytes.try_into().ok())
}
