//! Handshakes that were ended before their time, so that every process that shares the database knows.

use std::sync::Arc;

use super::attempts::Attempt;
use super::failure::Failure;
use super::rows::signed;
use crate::backend::Ending;
use crate::limits::{ENDED_MAX, ENDED_PRUNED_MAX};

pub(super) const HAS: &str = "SELECT 1 FROM ended WHERE id = $1";
pub(super) const END: &str = "WITH old AS (
        DELETE FROM ended WHERE number = ANY(ARRAY(
            SELECT number FROM ended WHERE until < $1 ORDER BY until LIMIT $2))
    ), first AS (
        DELETE FROM ended WHERE number <= (SELECT max(number) FROM ended) - $3
    )
    INSERT INTO ended (id, until) VALUES ($4, $5) ON CONFLICT (id) DO NOTHING";

pub(super) async fn end(attempt: Attempt<'_>, ending: Arc<Ending>) -> Result<(), Failure> {
    let Ending { id, until, now } = &*ending;
    let statement = attempt.client.prepare_cached(END).await?;
    let (old, kept) = (ENDED_PRUNED_MAX as i64, signed(ENDED_MAX));
    let id = id.as_slice();
    attempt.client.execute(&statement, &[&signed(*now), &old, &kept, &id, &signed(*until)]).await?;
    Ok(())
}

pub(super) async fn has_ended(attempt: Attempt<'_>, id: Arc<[u8; 16]>) -> Result<bool, Failure> {
    let statement = attempt.client.prepare_cached(HAS).await?;
    Ok(attempt.client.query_opt(&statement, &[&id.as_slice()]).await?.is_some())
}
