//! What can go wrong. Callers branch on the variants, never on the texts.

use crate::model::Version;
use crate::verify::Flaw;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Somebody else was first; look at the session again.
    #[error("the session is at version {actual} already")]
    Conflict { actual: Version },
    #[error("no such session")]
    NotFound,
    /// The id is taken.
    #[error("the session exists already")]
    Exists,
    #[error("the session has {max} events, which is the most that one may have")]
    TooMany { max: u64 },
    #[error("the session is shared with {} others, which is the most", crate::limits::SHARES_MAX)]
    TooManyShares,
    #[error(
        "`{principal}` has {} open sessions of the same owner shared with them already, which is the most; complete \
         one, or end its share with `session share ID NAME --remove`",
        crate::limits::OPEN_SHARES_MAX
    )]
    TooManyOpenShares { principal: String },
    #[error("the {what} is larger than {max} bytes")]
    TooLarge { what: &'static str, max: usize },
    #[error("the {what} cannot be used: {why}")]
    Invalid { what: &'static str, why: &'static str },
    /// The disk is full or fails, or another process holds the file for too long. Nothing was written, and the
    /// same call may be made again.
    #[error("the store cannot be used now: {0}")]
    Unavailable(String),
    /// As before, and only somebody who makes room changes that.
    #[error("the store cannot be used now: {0}")]
    DiskFull(String),
    /// The path does not lead to the files that are open any more. Nothing is acknowledged until it does again, or until
    /// the store is opened anew.
    #[error("the store cannot be used: {0}")]
    Moved(String),
    /// The file was damaged, or changed by something else than a store with our key.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The chain of a log does not hold.
    #[error("the log is broken: {}", .0.iter().map(Flaw::to_string).collect::<Vec<_>>().join(", "))]
    Broken(Vec<Flaw>),
    #[error("the store has format {found}, and this program knows up to {known}; use a newer one")]
    Newer { found: i64, known: i64 },
    #[error("it is no exported session: {0}")]
    NotExported(String),
    #[error("the exported log has format {found}, and this program knows up to {known}")]
    Format { found: u32, known: u32 },
    /// There are no tables of ours, and whoever only looks makes none.
    #[error("there is no store of sessions yet")]
    NotMade,
    /// It will be so until somebody does something about it: a wrong password, a missing right.
    #[error("the store cannot be used: {0}")]
    Denied(String),
    #[error("the file is no store of sessions")]
    NotOurs,
    #[error("the store was written with another key")]
    WrongKey,
}

impl Error {
    /// Whether it is the file that failed, and with it everything in the same transaction.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::DiskFull(_))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::{Error as Sql, ErrorCode};
        match &error {
            Sql::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::NotADatabase => Self::NotOurs,
                ErrorCode::DiskFull => Self::DiskFull(error.to_string()),
                // What is wrong with the schema has no code of its own; a disk that is full or fails has one.
                ErrorCode::DatabaseCorrupt | ErrorCode::Unknown => Self::Damaged(error.to_string()),
                _ => Self::Unavailable(error.to_string()),
            },
            // A table or column that is not there, or one that holds what we never put there.
            Sql::SqlInputError { .. }
            | Sql::FromSqlConversionFailure(..)
            | Sql::IntegralValueOutOfRange(..)
            | Sql::InvalidColumnType(..)
            | Sql::Utf8Error(..) => Self::Damaged(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull => Self::DiskFull(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
