//! Whom sessions are shared with. What that means is the caller's business; exported logs say nothing of it.

use std::sync::Arc;

use deadpool_postgres::Client;

use super::attempts::{Attempt, transaction};
use super::failure::Failure;
use super::list::rows_max;
use super::rows::{meta, meta_columns, number, status_number};
use crate::backend::Sharing;
use crate::error::Error;
use crate::limits::{OPEN_SHARES_MAX, PAGE_MAX, SHARES_MAX};
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
pub(super) const OWNER: &str = "SELECT owner FROM sessions WHERE id = $1";
/// The open sessions of an owner that are shared with somebody else.
pub(super) const OPEN_OF_OWNER: &str =
    "SELECT count(*) FROM (SELECT 1 FROM sessions s JOIN shares h ON h.session = s.number
    WHERE s.owner = $1 AND s.status IN (0, 1) AND h.principal = $2 AND s.owner <> $2 LIMIT $3) open";
/// Held by whoever shares sessions of an owner, to the end of the transaction: others would not see what is not committed.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('shares of ' || $1, 0))";
/// The newest sessions first: their numbers are the order in which they were begun.
pub(super) const WITH_PRINCIPAL: &str = concat!(
    "SELECT ",
    meta_columns!(),
    " FROM shares h JOIN sessions s ON s.number = h.session
    WHERE h.principal = $1 AND s.status = ANY($2) ORDER BY h.session DESC LIMIT $3"
);

pub(super) async fn share(attempt: Attempt<'_>, sharing: Arc<Sharing>) -> Result<(), Failure> {
    let Sharing { session, principal, is_on } = &*sharing;
    if !is_on {
        let statement = attempt.client.prepare_cached(REMOVE).await?;
        let removed = attempt.client.execute(&statement, &[session, principal]).await?;
        return if removed > 0 { Ok(()) } else { of(attempt, session).await.map(drop) };
    }
    let client = attempt.client;
    let owner = owner(client, session).await?;
    let added = transaction(client, "BEGIN", async {
        lock_owner(client, &owner).await?;
        let statement = client.prepare_cached(ADD).await?;
        let is_new =
            client.execute(&statement, &[session, principal, &rows_max(SHARES_MAX)]).await? == 1;
        if is_new {
            check_open(client, &owner, principal).await?;
        }
        Ok(is_new)
    });
    if added.await? {
        return Ok(());
    }
    let shares = of(attempt, session).await?;
    if shares.contains(principal) { Ok(()) } else { Err(Error::TooManyShares.into()) }
}

async fn owner(client: &Client, session: &str) -> Result<String, Failure> {
    let statement = client.prepare_cached(OWNER).await?;
    let row = client.query_opt(&statement, &[&session]).await?.ok_or(Error::NotFound)?;
    Ok(row.try_get(0)?)
}

/// Writes that a session is open again, unless its owner shares too many then. Inside a transaction.
pub(super) async fn reopen<T>(
    attempt: Attempt<'_>,
    session: &str,
    write: impl Future<Output = Result<Option<T>, Failure>>,
) -> Result<Option<T>, Failure> {
    let client = attempt.client;
    let owner = owner(client, session).await?;
    lock_owner(client, &owner).await?;
    let written = write.await?;
    if written.is_some() {
        for name in of(attempt, session).await? {
            check_open(client, &owner, &name).await?;
        }
    }
    Ok(written)
}

/// Lets one transaction at a time share sessions of an owner, so that each counts what the others have added.
pub(super) async fn lock_owner(client: &Client, owner: &str) -> Result<(), Failure> {
    let statement = client.prepare_cached(LOCK).await?;
    client.query_one(&statement, &[&owner]).await?;
    Ok(())
}

/// Refuses what was added in this transaction, if it is too much.
pub(super) async fn check_open(
    client: &Client,
    owner: &str,
    principal: &str,
) -> Result<(), Failure> {
    let statement = client.prepare_cached(OPEN_OF_OWNER).await?;
    let most = rows_max(OPEN_SHARES_MAX + 1);
    let row = client.query_one(&statement, &[&owner, &principal, &most]).await?;
    match number(&row, 0)? > OPEN_SHARES_MAX as u64 {
        true => Err(Error::TooManyOpenShares { principal: principal.to_owned() }.into()),
        false => Ok(()),
    }
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

pub(super) async fn shared_with(
    attempt: Attempt<'_>,
    shared: Arc<SharedWith>,
) -> Result<Vec<Meta>, Failure> {
    let SharedWith { principal, statuses, limit } = &*shared;
    let statuses = if statuses.is_empty() { &Status::ALL[..] } else { statuses };
    let statuses: Vec<i16> = statuses.iter().map(|status| status_number(*status)).collect();
    let limit = rows_max((*limit).min(PAGE_MAX));
    let statement = attempt.client.prepare_cached(WITH_PRINCIPAL).await?;
    let rows = attempt.client.query(&statement, &[principal, &statuses, &limit]).await?;
    rows.iter().map(meta).collect()
}
