//! What went wrong with an attempt: something that another attempt may get over, or an answer.

use std::error::Error as _;

use tokio_postgres::error::SqlState;

use crate::error::Error;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The connection is gone, the server restarts, another transaction was in the way: nothing was decided about what
    /// we wanted, and it may or may not have happened.
    #[error("{0}")]
    Again(String),
    /// This is how it is.
    #[error(transparent)]
    Final(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let text = text(&error);
        let Some(code) = error.code() else {
            // A column that does not hold what we put there; anything else without a code is about the connection.
            return match &text {
                text if text.contains("deserializing column") => {
                    Self::Final(Error::Damaged(text.clone()))
                }
                // Nobody but us finds these two wrong.
                text if text.contains("invalid peer certificate")
                    || text.contains("invalid configuration") =>
                {
                    Self::Final(Error::Denied(text.clone()))
                }
                _ => Self::Again(text),
            };
        };
        match (code.code().get(..2).unwrap_or_default(), code) {
            // The plan of a statement may have to be made anew after a newer program has changed a table.
            ("08" | "40" | "57", code) if *code != SqlState::QUERY_CANCELED => Self::Again(text),
            _ if [
                SqlState::TOO_MANY_CONNECTIONS,
                SqlState::READ_ONLY_SQL_TRANSACTION,
                SqlState::FEATURE_NOT_SUPPORTED,
                SqlState::INVALID_SQL_STATEMENT_NAME,
                SqlState::FOREIGN_KEY_VIOLATION,
                SqlState::LOCK_NOT_AVAILABLE,
            ]
            .contains(code) =>
            {
                Self::Again(text)
            }
            (_, code)
                if [
                    SqlState::UNDEFINED_TABLE,
                    SqlState::UNDEFINED_COLUMN,
                    // Heads and events are written together: one that stands where another goes is nobody's.
                    SqlState::UNIQUE_VIOLATION,
                ]
                .contains(code) =>
            {
                Self::Final(Error::Damaged(text))
            }
            ("28" | "42", _) => Self::Final(Error::Denied(text)),
            _ => Self::Final(Error::Unavailable(text)),
        }
    }
}

/// Its own words and those of what led to it, without what is said twice.
fn text(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}
