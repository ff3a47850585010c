//! Finding sessions by words: of their workflow and goal, and of what their events gave to be found by. What a user
//! types is only ever words, never the index's query language.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio_postgres::types::Type;

use super::attempts::Attempt;
use super::failure::Failure;
use super::list::rows_max;
use super::rows::{meta, meta_columns};
use crate::limits::{MATCHES_MAX, PAGE_MAX};
use crate::model::Meta;
use crate::words::{owner_word, query_words};

/// The last that matched come first, each session once.
pub(super) const SEARCH: &str = concat!(
    "SELECT ",
    meta_columns!(),
    " FROM (
        SELECT session, max(id) AS last FROM (
            SELECT id, session FROM events WHERE words @@ $1::text::tsquery ORDER BY id DESC LIMIT $2
        ) matches GROUP BY session ORDER BY last DESC LIMIT $3
    ) found JOIN sessions s ON s.number = found.session ORDER BY found.last DESC"
);

pub(super) struct Search {
    pub(super) query: String,
    pub(super) owner: Option<String>,
    pub(super) limit: usize,
}

pub(super) async fn search(
    attempt: Attempt<'_>,
    search: Arc<Search>,
) -> Result<Vec<Meta>, Failure> {
    let Search { query, owner, limit } = &*search;
    let Some(expression) = expression(query, owner.as_deref()) else { return Ok(Vec::new()) };
    let (matches, limit) = (MATCHES_MAX as i64, rows_max((*limit).min(PAGE_MAX)));
    // Not prepared: how it is best done depends on how frequent these very words are.
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
        [(&expression, Type::TEXT), (&matches, Type::INT8), (&limit, Type::INT8)];
    let rows = attempt.client.query_typed(SEARCH, &values).await?;
    rows.iter().map(meta).collect()
}

/// The words, each quoted. None where there are none.
pub(super) fn expression(query: &str, owner: Option<&str>) -> Option<String> {
    let mut expression = String::new();
    for (word, is_beginning) in query_words(query) {
        let joint = if expression.is_empty() { "" } else { " & " };
        let end = if is_beginning { ":*" } else { "" };
        // Letters and digits need no escape.
        let _ = write!(expression, "{joint}'t{word}'{end}");
    }
    if expression.is_empty() {
        return None;
    }
    if let Some(owner) = owner {
        let _ = write!(expression, " & '{}'", owner_word(owner));
    }
    Some(expression)
}
