//! Lists of sessions, newest first, a page at a time. Every filter has an index, so that a page costs the same
//! however many sessions there are.

use std::sync::Arc;

use tokio_postgres::types::ToSql;

use super::attempts::Attempt;
use super::failure::Failure;
use super::rows::{meta, meta_columns, number, status_number};
use crate::limits::PAGE_MAX;
use crate::list::{Cursor, Filter, Page};
use crate::model::{Counts, Meta, Status, Usage};

macro_rules! list_sql {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            meta_columns!(),
            " FROM sessions s WHERE ",
            $condition,
            "s.status = $1 AND s.number < $2 ORDER BY s.number DESC LIMIT $3"
        )
    };
}
pub(super) const ALL: &str = list_sql!("");
pub(super) const BY_OWNER: &str = list_sql!("s.owner = $4 AND ");
pub(super) const BY_WORKFLOW: &str = list_sql!("s.workflow = $4 AND ");
pub(super) const BY_OWNER_AND_WORKFLOW: &str = list_sql!("s.owner = $4 AND s.workflow = $5 AND ");
pub(super) const BY_BEGINNING: &str = concat!(
    "SELECT ",
    meta_columns!(),
    " FROM sessions s WHERE s.id >= $1 AND s.id < $2 ORDER BY s.id LIMIT $3"
);
pub(super) const IDS: &str =
    "SELECT number, id FROM sessions WHERE number > $1 ORDER BY number LIMIT $2";
pub(super) const HAS_NUMBER: &str = "SELECT 1 FROM sessions WHERE number = $1";
pub(super) const OPEN: &str =
    "SELECT count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status = 1)
    FROM sessions WHERE status IN (0, 1)";
/// `octet_length` of a stored text does not read it.
const USAGE: &str = "SELECT
    (SELECT count(*) FROM sessions WHERE owner = $1 AND status IN (0, 1)),
    (SELECT coalesce(sum(octet_length(e.body)), 0)::bigint
        FROM sessions s JOIN events e ON e.session = s.number WHERE s.owner = $1)";
/// Only asked where there are few.
const COMPLETE: &str = "SELECT count(*) FROM sessions WHERE status = 2";
pub(super) const RECKONED: &str =
    "SELECT reltuples::bigint FROM pg_class WHERE oid = 'sessions'::regclass";
/// Fewer are counted.
const COUNTED_MAX: u64 = 10_000;
/// Comes after every sign that an id may have.
const AFTER_IDS: char = '\u{7f}';

pub(super) async fn list(attempt: Attempt<'_>, filter: Arc<Filter>) -> Result<Page, Failure> {
    let limit = filter.limit.min(PAGE_MAX);
    let before = filter.before.map_or(i64::MAX, |cursor| cursor.0);
    let statuses = if filter.statuses.is_empty() { &Status::ALL[..] } else { &filter.statuses };
    // One more than asked for tells whether anything follows.
    let count = rows_max(limit + 1);
    let (owner, workflow) = (&filter.owner, &filter.workflow);
    let sql = match (owner, workflow) {
        (None, None) => ALL,
        (Some(_), None) => BY_OWNER,
        (None, Some(_)) => BY_WORKFLOW,
        (Some(_), Some(_)) => BY_OWNER_AND_WORKFLOW,
    };
    let statement = attempt.client.prepare_cached(sql).await?;
    let mut found: Vec<(i64, Meta)> = Vec::new();
    for status in statuses {
        let status = status_number(*status);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&status, &before, &count];
        values.extend(owner.iter().map(|owner| owner as &(dyn ToSql + Sync)));
        values.extend(workflow.iter().map(|workflow| workflow as &(dyn ToSql + Sync)));
        for row in attempt.client.query(&statement, &values).await? {
            found.push((row.try_get(12)?, meta(&row)?));
        }
    }
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let follows = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| follows).map(|(number, _)| Cursor(*number));
    Ok(Page { sessions: found.into_iter().map(|(_, meta)| meta).collect(), next })
}

pub(super) async fn beginning_with(
    attempt: Attempt<'_>,
    arguments: Arc<(String, usize)>,
) -> Result<Vec<Meta>, Failure> {
    let (beginning, limit) = &*arguments;
    // No id has it, and no text either.
    if beginning.contains('\0') {
        return Ok(Vec::new());
    }
    let end = format!("{beginning}{AFTER_IDS}");
    let statement = attempt.client.prepare_cached(BY_BEGINNING).await?;
    let rows = attempt.client.query(&statement, &[beginning, &end, &rows_max(*limit)]).await?;
    rows.iter().map(meta).collect()
}

pub(super) async fn ids(
    attempt: Attempt<'_>,
    arguments: Arc<(Option<Cursor>, usize)>,
) -> Result<Vec<(Cursor, Vec<u8>)>, Failure> {
    let after = arguments.0.map_or(i64::MIN, |cursor| cursor.0);
    let statement = attempt.client.prepare_cached(IDS).await?;
    let rows = attempt.client.query(&statement, &[&after, &rows_max(arguments.1)]).await?;
    let found = rows.iter().map(|row| {
        let id: String = row.try_get(1)?;
        Ok((Cursor(row.try_get(0)?), id.into_bytes()))
    });
    found.collect()
}

pub(super) async fn is_there(attempt: Attempt<'_>, at: Arc<Cursor>) -> Result<bool, Failure> {
    let statement = attempt.client.prepare_cached(HAS_NUMBER).await?;
    Ok(attempt.client.query_opt(&statement, &[&at.0]).await?.is_some())
}

/// The complete ones are what the server reckons that there are, less the others: counting them would take the longer the
/// more there are.
pub(super) async fn counts(attempt: Attempt<'_>, _: Arc<()>) -> Result<Counts, Failure> {
    let client = attempt.client;
    let statement = client.prepare_cached(OPEN).await?;
    let open = client.query_one(&statement, &[]).await?;
    let (running, waiting) = (number(&open, 0)?, number(&open, 1)?);
    let all: i64 = client.query_one(RECKONED, &[]).await?.try_get(0)?;
    let complete = match u64::try_from(all) {
        Ok(all) if all >= COUNTED_MAX => all.saturating_sub(running + waiting),
        _ => number(&client.query_one(COMPLETE, &[]).await?, 0)?,
    };
    Ok(Counts { running, waiting, complete })
}

pub(super) async fn usage(attempt: Attempt<'_>, owner: Arc<String>) -> Result<Usage, Failure> {
    let statement = attempt.client.prepare_cached(USAGE).await?;
    let row = attempt.client.query_one(&statement, &[&*owner]).await?;
    Ok(Usage { open_sessions: number(&row, 0)?, stored_bytes: number(&row, 1)? })
}

/// What the server found wrong with its own pages: it looks whenever it reads one, where it was set up to.
pub(super) async fn file_flaws(attempt: Attempt<'_>, _: Arc<()>) -> Result<Vec<String>, Failure> {
    let sql = "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()";
    let row = attempt.client.query_opt(sql, &[]).await?;
    let failures: i64 = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    let flaw = format!("PostgreSQL has read {failures} damaged pages of this database");
    Ok(if failures > 0 { vec![flaw] } else { Vec::new() })
}

pub(super) fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit.min(PAGE_MAX + 1)).unwrap_or(i64::MAX)
}
