//! Removing finished sessions that nobody has touched for long, a few at a time. Running and waiting ones are never
//! touched, and one that somebody writes to at this moment is left for the next time.

use std::sync::Arc;

use super::attempts::Attempt;
use super::failure::Failure;
use super::rows::signed;
use crate::backend::Pruning;

pub(super) const PRUNE: &str = "WITH old AS (
        SELECT number FROM sessions WHERE finished < $1 ORDER BY finished LIMIT $2 FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM sessions WHERE number IN (SELECT number FROM old) AND finished < $1
        RETURNING number, definition
    ), events_gone AS (
        DELETE FROM events WHERE session IN (SELECT number FROM gone)
    ), snapshots_gone AS (
        DELETE FROM snapshots WHERE session IN (SELECT number FROM gone)
    )
    SELECT definition FROM gone";
pub(super) const COUNT: &str = "SELECT count(*) FROM sessions WHERE finished < $1";
/// Apart from the sessions: the statement above still sees them. Where somebody begins a session with it at this moment,
/// the reference between the tables stops us.
pub(super) const FORGET_DEFINITIONS: &str = "DELETE FROM definitions d WHERE hash = ANY($1)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE definition = d.hash)";

/// Says how many went.
pub(super) async fn prune(attempt: Attempt<'_>, pruning: Arc<Pruning>) -> Result<usize, Failure> {
    let Pruning { older_than, limit } = &*pruning;
    let statement = attempt.client.prepare_cached(PRUNE).await?;
    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
    let rows = attempt.client.query(&statement, &[&signed(*older_than), &limit]).await?;
    let mut definitions =
        rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    let removed = definitions.len();
    definitions.sort();
    definitions.dedup();
    if removed > 0 {
        let statement = attempt.client.prepare_cached(FORGET_DEFINITIONS).await?;
        // One that is left behind goes with the next session that has it.
        if let Err(error) = attempt.client.execute(&statement, &[&definitions]).await {
            tracing::debug!("definitions that nobody needs stay for now: {error}");
        }
    }
    Ok(removed)
}

/// How many would go, if all were to.
pub(super) async fn count(attempt: Attempt<'_>, older_than: Arc<u64>) -> Result<usize, Failure> {
    let statement = attempt.client.prepare_cached(COUNT).await?;
    let row = attempt.client.query_one(&statement, &[&signed(*older_than)]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default())
}
