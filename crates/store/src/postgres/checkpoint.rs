//! Sealed checkpoints: how many there were, and the last event before the newest one. A process that serves others makes
//! one about every second in which something was written. Appends do not touch the row, so they do not wait for each
//! other; a rollback within the last checkpoint is not noticed.

use std::sync::Arc;

use deadpool_postgres::Client;

use super::attempts::Attempt;
use super::failure::Failure;
use super::rows::{number, signed};
use crate::chain::Chain;
use crate::counter::Counter;
use crate::error::Error;
use crate::export::hex;

pub(super) const READ: &str = "SELECT store, number, position, seal FROM checkpoint WHERE one";
pub(super) const MAKE: &str = "INSERT INTO checkpoint (store, number, position, seal)
    VALUES ($1, $2, $3, $4) ON CONFLICT (one) DO NOTHING";
/// Of processes that make one at the same time, the first does.
pub(super) const REPLACE: &str = "UPDATE checkpoint SET number = $1::bigint, position = $2, seal = $3 WHERE one AND number = $1::bigint - 1";
/// The sequence, which pruning does not set back.
const POSITION: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_id_seq";
const NEW_STORE: &str = "SELECT decode(replace(gen_random_uuid()::text, '-', ''), 'hex')";

const UNIT: &str = "checkpoints";
const FORGED: &str = "the checkpoint of the store was changed";

struct Checkpoint {
    store: Vec<u8>,
    number: u64,
    position: u64,
}

/// Makes a checkpoint if something was written since the last one.
pub(super) async fn checkpoint(attempt: Attempt<'_>, _: Arc<()>) -> Result<(), Failure> {
    make(attempt).await
}

pub(super) async fn make(attempt: Attempt<'_>) -> Result<(), Failure> {
    let Attempt { client, shared, .. } = attempt;
    let position = position(client).await?;
    let last = match read(client, &shared.chain).await? {
        Ok(last) => last,
        Err(Forged) => {
            // Not sealed again: `verify` tells of it.
            tracing::error!("{FORGED}: `workflowlookup session verify` says more");
            return Ok(());
        }
    };
    let Some(Checkpoint { store, number, position: at }) = last else {
        let store: Vec<u8> = client.query_one(NEW_STORE, &[]).await?.try_get(0)?;
        let seal = shared.chain.checkpoint(&store, 1, position);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&store, &1_i64, &signed(position), &seal.as_slice()];
        client.execute(MAKE, &values).await?;
        return Ok(());
    };
    if position > at {
        let number = number + 1;
        let seal = shared.chain.checkpoint(&store, number, position);
        let statement = client.prepare_cached(REPLACE).await?;
        client.execute(&statement, &[&signed(number), &signed(position), &seal.as_slice()]).await?;
    }
    Ok(())
}

pub(super) async fn counter(attempt: Attempt<'_>, _: Arc<()>) -> Result<Option<Counter>, Failure> {
    let Attempt { client, shared, .. } = attempt;
    match read(client, &shared.chain).await? {
        Ok(last) => Ok(last.map(|Checkpoint { store, number, .. }| Counter {
            store: hex(&store),
            count: number,
            unit: UNIT,
        })),
        Err(Forged) => Err(Error::Damaged(FORGED.to_owned()).into()),
    }
}

pub(super) async fn flaws(attempt: Attempt<'_>, _: Arc<()>) -> Result<Vec<String>, Failure> {
    let Attempt { client, shared, .. } = attempt;
    Ok(match read(client, &shared.chain).await? {
        Ok(Some(last)) => {
            let position = position(client).await?;
            if position < last.position {
                let sealed = last.position;
                vec![format!("it ends at event {position} and was sealed with event {sealed}")]
            } else {
                Vec::new()
            }
        }
        Ok(None) => Vec::new(),
        Err(Forged) => vec![FORGED.to_owned()],
    })
}

/// The row is not as it was written.
struct Forged;

async fn read(
    client: &Client,
    chain: &Chain,
) -> Result<Result<Option<Checkpoint>, Forged>, Failure> {
    let statement = client.prepare_cached(READ).await?;
    let Some(row) = client.query_opt(&statement, &[]).await? else { return Ok(Ok(None)) };
    let (store, seal): (Vec<u8>, Vec<u8>) = (row.try_get(0)?, row.try_get(3)?);
    let (Ok(number), Ok(position)) = (number(&row, 1), number(&row, 2)) else {
        return Ok(Err(Forged));
    };
    let is_ours = chain.checkpoint(&store, number, position) == *seal;
    Ok(if is_ours { Ok(Some(Checkpoint { store, number, position })) } else { Err(Forged) })
}

async fn position(client: &Client) -> Result<u64, Failure> {
    let statement = client.prepare_cached(POSITION).await?;
    number(&client.query_one(&statement, &[]).await?, 0)
}
