//! The tables: making them, and bringing older ones up to date, while other processes may do the same. Steps only ever
//! add, so that programs of the format before go on beside newer ones until they are replaced; a step after which they
//! could not says so.

use deadpool_postgres::Client;

use super::attempts::transaction;
use super::failure::Failure;
use super::pool::SCHEMA;
use crate::chain::Chain;
use crate::error::Error;

/// One step per format; the first makes the tables. Steps that were released never change.
const STEPS: &[Step] = &[
    Step { sql: include_str!("schema/1.sql"), needs: 1 },
    Step { sql: include_str!("schema/2.sql"), needs: 1 },
    // Who does not know the new kinds of events would hand out steps that wait for a person.
    Step { sql: include_str!("schema/3.sql"), needs: 3 },
];
/// Of all who use the database, only we wait for this lock.
const LOCK: i64 = 0x574c_4c47;

struct Step {
    sql: &'static str,
    /// The oldest format that a program must know to work with the tables from here on.
    needs: i64,
}

/// The format that this program writes.
fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Sees that the tables are there, are ours, and are not too new for us.
pub(super) async fn prepare(client: &Client, chain: &Chain, may_make: bool) -> Result<(), Failure> {
    let mut found = look(client).await?;
    if found.is_none() && !may_make {
        return Err(Error::NotMade.into());
    }
    if found.as_ref().is_none_or(|found| found.format < known()) {
        transaction(client, "BEGIN", migrate(client, chain)).await?;
        found = look(client).await?;
    }
    let found = found.ok_or_else(|| Error::Damaged("the tables are gone".to_owned()))?;
    if found.needs > known() {
        return Err(Error::Newer { found: found.format, known: known() }.into());
    }
    if found.key != chain.key_check() {
        return Err(Error::WrongKey.into());
    }
    Ok(())
}

struct Found {
    format: i64,
    needs: i64,
    key: Vec<u8>,
}

async fn look(client: &Client) -> Result<Option<Found>, Failure> {
    let there = "SELECT to_regclass($1) IS NOT NULL";
    let row = client.query_one(there, &[&format!("{SCHEMA}.settings")]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_opt("SELECT format, needs, key FROM settings", &[]).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Found { format: row.try_get(0)?, needs: row.try_get(1)?, key: row.try_get(2)? }))
}

/// Runs the steps that are missing, one process at a time.
async fn migrate(client: &Client, chain: &Chain) -> Result<(), Failure> {
    // A step over many rows may take its time, and the others wait for it.
    client.batch_execute("SET LOCAL statement_timeout = 0").await?;
    client.query_one("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // Also where it is there already, making it needs a right that its owner need not have.
    let there = client.query_one("SELECT to_regnamespace($1) IS NOT NULL", &[&SCHEMA]).await?;
    if !there.try_get::<_, bool>(0)? {
        client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {SCHEMA}")).await?;
    }
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS settings (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                format bigint NOT NULL,
                needs bigint NOT NULL,
                key bytea NOT NULL
            )",
        )
        .await?;
    // Another process may have been here while we waited.
    let done = look(client).await?.map_or(0, |found| found.format);
    let steps = STEPS.iter().skip(usize::try_from(done).unwrap_or(usize::MAX));
    let mut needs = None;
    for step in steps {
        client.batch_execute(step.sql).await?;
        needs = Some(step.needs);
    }
    let Some(needs) = needs else { return Ok(()) };
    let key = chain.key_check();
    client
        .execute(
            "INSERT INTO settings (format, needs, key) VALUES ($1, $2, $3)
            ON CONFLICT (one) DO UPDATE SET format = $1, needs = greatest(settings.needs, $2)",
            &[&known(), &needs, &key.as_slice()],
        )
        .await?;
    Ok(())
}
