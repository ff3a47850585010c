//! Finding sessions by words: of their workflow and goal, and of what their events gave to be found by. What a user
//! types is only ever words, never the index's query language.

use std::collections::HashSet;
use std::fmt::Write;

use rusqlite::{Connection, params};

use crate::error::Error;
use crate::limits::{MATCHES_MAX, PAGE_MAX, QUERY_WORDS_MAX};
use crate::model::Meta;
use crate::sqlite::read::{meta_columns, meta_of};
use crate::words::{is_common, owner_word};

pub(crate) const MATCHES: &str = "SELECT session FROM words CROSS JOIN events ON id = words.rowid
    WHERE words MATCH ?1 ORDER BY words.rowid DESC LIMIT ?2";
pub(crate) const META_BY_NUMBER: &str =
    concat!("SELECT ", meta_columns!(), " FROM sessions WHERE number = ?1");
/// Shorter words are only found as they are: too much begins with one letter.
const PREFIX_CHARS_MIN: usize = 3;

/// The sessions that have all words in one place: in workflow and goal, or in one event. The last that
/// matched comes first.
pub(crate) fn search(
    connection: &Connection,
    query: &str,
    owner: Option<&str>,
    limit: usize,
) -> Result<Vec<Meta>, Error> {
    let Some(expression) = expression(query, owner) else { return Ok(Vec::new()) };
    let limit = limit.min(PAGE_MAX);
    let mut statement = connection.prepare_cached(MATCHES)?;
    let mut rows = statement.query(params![expression, MATCHES_MAX])?;
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        let number: i64 = row.get(0)?;
        if seen.insert(number) {
            let mut statement = connection.prepare_cached(META_BY_NUMBER)?;
            found.push(statement.query_row([number], meta_of)?);
        }
    }
    Ok(found)
}

/// The words, each quoted. None where there are none.
fn expression(query: &str, owner: Option<&str>) -> Option<String> {
    let words = query.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.filter(|word| !is_common(&word.to_lowercase()));
    let mut expression = String::new();
    for word in words.take(QUERY_WORDS_MAX) {
        let joint = if expression.is_empty() { "" } else { " AND " };
        let prefix = if word.chars().count() < PREFIX_CHARS_MIN { "" } else { "*" };
        let _ = write!(expression, "{joint}text : \"{word}\" {prefix}");
    }
    if expression.is_empty() {
        return None;
    }
    if let Some(owner) = owner {
        let _ = write!(expression, " AND owner : \"{}\"", owner_word(owner));
    }
    Some(expression)
}
