//! Small texts that processes share, each replaced as a whole by whoever knows what it replaces.

use std::sync::Arc;

use super::attempts::Attempt;
use super::failure::Failure;
use super::rows::{number, signed};
use crate::backend::Replacing;
use crate::model::Document;

pub(super) const READ: &str = "SELECT version, text FROM documents WHERE name = $1";
pub(super) const FIRST: &str = "INSERT INTO documents (name, version, text) VALUES ($1, 1, $2)
    ON CONFLICT (name) DO NOTHING";
pub(super) const REPLACE: &str =
    "UPDATE documents SET version = version + 1, text = $2 WHERE name = $1 AND version = $3";

pub(super) async fn read(
    attempt: Attempt<'_>,
    name: Arc<String>,
) -> Result<Option<Document>, Failure> {
    let statement = attempt.client.prepare_cached(READ).await?;
    let row = attempt.client.query_opt(&statement, &[&*name]).await?;
    let document = row.map(|row| Ok(Document { version: number(&row, 0)?, text: row.try_get(1)? }));
    document.transpose()
}

/// Whether it was still the one that we know.
pub(super) async fn replace(
    attempt: Attempt<'_>,
    replacing: Arc<Replacing>,
) -> Result<bool, Failure> {
    let Replacing { name, document: Document { version, text } } = &*replacing;
    let written = if *version == 0 {
        let statement = attempt.client.prepare_cached(FIRST).await?;
        attempt.client.execute(&statement, &[name, text]).await?
    } else {
        let statement = attempt.client.prepare_cached(REPLACE).await?;
        attempt.client.execute(&statement, &[name, text, &signed(*version)]).await?
    };
    if written == 0 && attempt.is_again {
        // Ours, from an attempt that we did not hear of.
        let now = read(attempt, Arc::new(name.clone())).await?;
        return Ok(now.is_some_and(|now| now.version == version + 1 && now.text == *text));
    }
    Ok(written == 1)
}
