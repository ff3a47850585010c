//! What was written since somebody looked last, by whatever process. Events get their numbers before they are committed,
//! so one with a smaller number may come after one with a larger: numbers that were skipped are looked for again for a
//! while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Row;

use super::attempts::Attempt;
use super::failure::Failure;
use super::rows::status;
use crate::changes::{Change, Mark, Missing, Seen};
use crate::limits::PAGE_MAX;

pub(super) const LAST: &str = "SELECT id FROM events ORDER BY id DESC LIMIT $1";
pub(super) const SINCE: &str = "SELECT e.id, s.id, s.owner, e.kind, s.status,
    ARRAY(SELECT h.principal FROM shares h WHERE h.session = s.number) FROM events e
    JOIN sessions s ON s.number = e.session WHERE e.id > $1 ORDER BY e.id LIMIT $2";
pub(super) const LATE: &str = "SELECT e.id, s.id, s.owner, e.kind, s.status,
    ARRAY(SELECT h.principal FROM shares h WHERE h.session = s.number) FROM events e
    JOIN sessions s ON s.number = e.session WHERE e.id = ANY($1) ORDER BY e.id";

/// A number that has not come after this time belongs to a write that failed.
const LATE_MAX: Duration = Duration::from_secs(30);
/// How many are looked for. More are skipped only where the server itself went down.
const MISSING_MAX: usize = 1_000;
/// How many of the last events are looked at for numbers that were skipped.
const LOOK_BACK: i64 = 256;

pub(super) async fn mark(attempt: Attempt<'_>, _: Arc<()>) -> Result<Mark, Failure> {
    let statement = attempt.client.prepare_cached(LAST).await?;
    let rows = attempt.client.query(&statement, &[&LOOK_BACK]).await?;
    let mut ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
    ids.reverse();
    let Some((first, upto)) = ids.first().copied().zip(ids.last().copied()) else {
        return Ok(Mark(Seen::Except { upto: 0, missing: Vec::new() }));
    };
    let missing = skipped(first, ids.into_iter(), Instant::now());
    Ok(Mark(Seen::Except { upto, missing: bounded(missing) }))
}

pub(super) async fn changes(
    attempt: Attempt<'_>,
    since: Arc<Mark>,
) -> Result<(Mark, Vec<Change>), Failure> {
    let now = Instant::now();
    let statement = attempt.client.prepare_cached(SINCE).await?;
    let limit = PAGE_MAX as i64;
    let rows = attempt.client.query(&statement, &[&since.upto(), &limit]).await?;
    let mut changes = Vec::with_capacity(rows.len());
    let mut missing: Vec<Missing> = match &since.0 {
        Seen::Upto(_) => Vec::new(),
        Seen::Except { missing, .. } => missing.clone(),
    };
    if !missing.is_empty() {
        let numbers: Vec<i64> = missing.iter().map(|missing| missing.event).collect();
        let statement = attempt.client.prepare_cached(LATE).await?;
        for row in attempt.client.query(&statement, &[&numbers]).await? {
            let (event, change) = change(&row)?;
            missing.retain(|missing| missing.event != event);
            changes.push(change);
        }
    }
    missing.retain(|missing| now.duration_since(missing.since) < LATE_MAX);
    let mut ids = Vec::with_capacity(rows.len());
    for row in &rows {
        let (event, change) = change(row)?;
        ids.push(event);
        changes.push(change);
    }
    let upto = ids.last().copied().unwrap_or(since.upto());
    // Whoever begins at the beginning does not ask what was skipped long ago.
    if since.upto() > 0 {
        missing.extend(skipped(since.upto(), ids.into_iter(), now));
    }
    Ok((Mark(Seen::Except { upto, missing: bounded(missing) }), changes))
}

/// The numbers between these that none of them has.
fn skipped(mut last: i64, ids: impl Iterator<Item = i64>, since: Instant) -> Vec<Missing> {
    let mut missing = Vec::new();
    for id in ids {
        let numbers = (last + 1..id).rev().take(MISSING_MAX);
        missing.extend(numbers.map(|event| Missing { event, since }));
        last = id;
    }
    missing
}

/// The newest of them.
fn bounded(mut missing: Vec<Missing>) -> Vec<Missing> {
    missing.sort_by_key(|missing| std::cmp::Reverse(missing.event));
    missing.truncate(MISSING_MAX);
    missing
}

fn change(row: &Row) -> Result<(i64, Change), Failure> {
    let change = Change {
        session: row.try_get(1)?,
        owner: row.try_get(2)?,
        kind: row.try_get(3)?,
        status: status(row, 4)?,
        shared_with: Some(row.try_get(5)?),
    };
    Ok((row.try_get(0)?, change))
}
