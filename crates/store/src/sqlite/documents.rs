//! Small texts that processes share, each replaced as a whole by whoever knows what it replaces.

use rusqlite::{Connection, OptionalExtension, params};

use crate::backend::Replacing;
use crate::error::Error;
use crate::model::Document;

pub(crate) const READ: &str = "SELECT version, text FROM documents WHERE name = ?1";
pub(crate) const FIRST: &str =
    "INSERT OR IGNORE INTO documents (name, version, text) VALUES (?1, 1, ?2)";
pub(crate) const REPLACE: &str =
    "UPDATE documents SET version = version + 1, text = ?2 WHERE name = ?1 AND version = ?3";

pub(crate) fn read(connection: &Connection, name: &str) -> Result<Option<Document>, Error> {
    let mut statement = connection.prepare_cached(READ)?;
    let row =
        statement.query_row([name], |row| Ok(Document { version: row.get(0)?, text: row.get(1)? }));
    Ok(row.optional()?)
}

/// Inside the writer's transaction. Whether it was still the one that we know.
pub(crate) fn replace(connection: &Connection, replacing: &Replacing) -> Result<bool, Error> {
    let Replacing { name, document: Document { version, text } } = replacing;
    let written = match version {
        0 => connection.prepare_cached(FIRST)?.execute(params![name, text])?,
        _ => connection.prepare_cached(REPLACE)?.execute(params![name, text, version])?,
    };
    Ok(written == 1)
}
