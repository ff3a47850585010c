//! The two eras: with a handshake, and without. A request belongs to one of them, whatever came before.

pub(crate) mod legacy;
pub(crate) mod modern;

use serde_json::value::RawValue;

use crate::action::{Abilities, Level};
use crate::asking::Answers;
use crate::revision::Revision;

/// Where a request comes from, as far as its call must know.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) revision: Revision,
    pub(crate) abilities: Abilities,
    /// Under which name the client wants to hear how it goes, as JSON.
    pub(crate) progress_token: Option<Box<RawValue>>,
    /// From which level on its client wants to read log lines.
    pub(crate) log_level: Option<Level>,
    pub(crate) answers: Option<Answers>,
}

/// A string or a number; anything else is no token.
fn progress_token(raw: &RawValue) -> Option<Box<RawValue>> {
    let first = raw.get().as_bytes()[0];
    (first == b'"' || first == b'-' || first.is_ascii_digit()).then(|| raw.to_owned())
}
