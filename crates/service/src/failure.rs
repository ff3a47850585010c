//! How something does not succeed.

use std::io;

use crate::error::Refusal;

/// A refusal is the caller's, anything else is ours.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Refusal(#[from] Refusal),
    #[error(transparent)]
    Fault(#[from] anyhow::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Fault(error.into())
    }
}
