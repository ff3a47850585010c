//! Whom sessions are shared with. What that means is the caller's business; exported logs say nothing of it.

use std::sync::Arc;

use super::attempts::Attempt;
use super::failure::Failure;
use super::list::rows_max;
use super::rows::{meta, meta_columns};
use crate::backend::Sharing;
use crate::error::Error;
use crate::limits::{PAGE_MAX, SHARES_MAX};
use crate::model::{Meta, Status};

/// Counted with what is there already: one that is shared again is no more than before.
pub(super) const ADD: &str = "INSERT INTO shares (session, principal) SELECT s.number, $2 FROM sessions s
    WHERE s.id = $1 AND (
        SELECT count(*) FROM (SELECT 1 FROM shares h WHERE h.session = s.number AND h.principal <> $2 LIMIT $3) others
    ) < $3 ON CONFLICT DO NOTHING";
pub(super) const REMOVE: &str = "DELETE FROM shares h USING sessions s
    WHERE s.id = $1 AND h.session = s.number AND h.principal = $2";
pub(super) const HAS: &str = "SELECT 1 FROM sessions s JOIN shares h ON h.session = s.number
    WHERE s.id = $1 AND h.principal = $2";
pub(super) const OF_SESSION: &str =
    "SELECT h.principal FROM sessions s LEFT JOIN shares h ON h.session = s.number
    WHERE s.id = $1 ORDER BY h.principal LIMIT $2";
/// The newest sessions first: their numbers are the order in which they were begun.
pub(super) const WITH_PRINCIPAL: &str = concat!(
    "SELECT ",
    meta_columns!(),
    " FROM shares h JOIN sessions s ON s.number = h.session
    WHERE h.principal = $1 ORDER BY h.session DESC LIMIT $2"
);

pub(super) async fn share(attempt: Attempt<'_>, sharing: Arc<Sharing>) -> Result<(), Failure> {
    let Sharing { session, principal, is_on } = &*sharing;
    if !is_on {
        let statement = attempt.client.prepare_cached(REMOVE).await?;
        let removed = attempt.client.execute(&statement, &[session, principal]).await?;
        return if removed > 0 { Ok(()) } else { of(attempt, session).await.map(drop) };
    }
    let statement = attempt.client.prepare_cached(ADD).await?;
    let most = rows_max(SHARES_MAX);
    if attempt.client.execute(&statement, &[session, principal, &most]).await? == 1 {
        return Ok(());
    }
    let shares = of(attempt, session).await?;
    if shares.contains(principal) { Ok(()) } else { Err(Error::TooManyShares.into()) }
}

pub(super) async fn is_shared(
    attempt: Attempt<'_>,
    arguments: Arc<(String, String)>,
) -> Result<bool, Failure> {
    let (session, principal) = &*arguments;
    let statement = attempt.client.prepare_cached(HAS).await?;
    Ok(attempt.client.query_opt(&statement, &[session, principal]).await?.is_some())
}

pub(super) async fn shares(
    attempt: Attempt<'_>,
    session: Arc<String>,
) -> Result<Vec<String>, Failure> {
    of(attempt, &session).await
}

async fn of(attempt: Attempt<'_>, session: &str) -> Result<Vec<String>, Failure> {
    let statement = attempt.client.prepare_cached(OF_SESSION).await?;
    let rows = attempt.client.query(&statement, &[&session, &rows_max(SHARES_MAX)]).await?;
    if rows.is_empty() {
        return Err(Error::NotFound.into());
    }
    let names = rows.iter().map(|row| row.try_get::<_, Option<String>>(0));
    Ok(names.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

pub(super) struct SharedWith {
    pub(super) principal: String,
    pub(super) statuses: Vec<Status>,
    pub(super) limit: usize,
}

/// Looks at no more than [`PAGE_MAX`] shares, the newest sessions'.
pub(super) async fn shared_with(
    attempt: Attempt<'_>,
    shared: Arc<SharedWith>,
) -> Result<Vec<Meta>, Failure> {
    let SharedWith { principal, statuses, limit } = &*shared;
    let statement = attempt.client.prepare_cached(WITH_PRINCIPAL).await?;
    let rows = attempt.client.query(&statement, &[principal, &rows_max(PAGE_MAX)]).await?;
    let mut found = rows.iter().map(meta).collect::<Result<Vec<Meta>, Failure>>()?;
    found.retain(|meta| statuses.is_empty() || statuses.contains(&meta.head.status));
    found.truncate(*limit);
    Ok(found)
}
