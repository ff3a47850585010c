//! Removing finished sessions that nobody has touched for long, a few at a time. Running and waiting ones are never
//! touched, and one that somebody writes to at this moment is left for the next time.

use std::collections::BTreeSet;
use std::sync::Arc;

use deadpool_postgres::Client;

use super::attempts::{Attempt, transaction};
use super::failure::Failure;
use super::rows::signed;
use crate::backend::Pruning;

pub(super) const OLD: &str = "SELECT number, definition FROM sessions WHERE finished < $1
    ORDER BY finished LIMIT $2 FOR UPDATE SKIP LOCKED";
pub(super) const DELETE_EVENTS: &str = "DELETE FROM events WHERE session = ANY($1)";
pub(super) const DELETE_SNAPSHOTS: &str = "DELETE FROM snapshots WHERE session = ANY($1)";
pub(super) const DELETE_SHARES: &str = "DELETE FROM shares WHERE session = ANY($1)";
pub(super) const DELETE_SESSIONS: &str = "DELETE FROM sessions WHERE number = ANY($1)";
pub(super) const COUNT: &str = "SELECT count(*) FROM sessions WHERE finished < $1";
/// Apart from the sessions: where somebody begins one with it at this moment, the reference between the tables stops us.
pub(super) const FORGET_DEFINITIONS: &str = "DELETE FROM definitions d WHERE hash = ANY($1)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE definition = d.hash)";

/// Says how many went.
pub(super) async fn prune(attempt: Attempt<'_>, pruning: Arc<Pruning>) -> Result<usize, Failure> {
    let client = attempt.client;
    let gone = transaction(client, "BEGIN", remove(client, &pruning)).await?;
    let removed = gone.len();
    if removed > 0 {
        let definitions: BTreeSet<String> = gone.into_iter().collect();
        let definitions: Vec<String> = definitions.into_iter().collect();
        let statement = client.prepare_cached(FORGET_DEFINITIONS).await?;
        // One that is left behind goes with the next session that has it.
        if let Err(error) = client.execute(&statement, &[&definitions]).await {
            tracing::debug!("definitions that nobody needs stay for now: {error}");
        }
    }
    Ok(removed)
}

/// The definition of each that went.
async fn remove(client: &Client, pruning: &Pruning) -> Result<Vec<String>, Failure> {
    let limit = i64::try_from(pruning.limit).unwrap_or(i64::MAX);
    let statement = client.prepare_cached(OLD).await?;
    let rows = client.query(&statement, &[&signed(pruning.older_than), &limit]).await?;
    let numbers = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    for sql in [DELETE_EVENTS, DELETE_SNAPSHOTS, DELETE_SHARES, DELETE_SESSIONS] {
        let statement = client.prepare_cached(sql).await?;
        client.execute(&statement, &[&numbers]).await?;
    }
    rows.iter().map(|row| Ok(row.try_get(1)?)).collect()
}

/// How many would go, if all were to.
pub(super) async fn count(attempt: Attempt<'_>, older_than: Arc<u64>) -> Result<usize, Failure> {
    let statement = attempt.client.prepare_cached(COUNT).await?;
    let row = attempt.client.query_one(&statement, &[&signed(*older_than)]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default())
}
