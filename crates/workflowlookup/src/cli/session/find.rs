//! Which session is meant: its id, or as much of the beginning of it as only this one has.

use std::sync::Arc;

use clap::Args;
use store::sessions::Session;

use super::open_if_any;
use crate::cli::SourceOptions;
use service::error::Refusal;
use service::sessions::{Open, from_store, refusal};

/// Less than this could be the beginning of anything.
const BEGINNING_CHARS_MIN: usize = 4;
/// How many sessions are named where several are meant.
const CANDIDATES_MAX: usize = 5;

/// The argument that all commands about one session have.
#[derive(Debug, Args)]
pub(super) struct SessionId {
    /// The session's id, as `session list` shows it, or its first letters (at least 4)
    pub(super) id: String,
}

/// A session that is there.
pub(super) struct Found {
    pub(super) open: Arc<Open>,
    pub(super) id: String,
}

impl SessionId {
    pub(super) fn find(&self, sources: &SourceOptions) -> Result<Found, Refusal> {
        let Some(open) = open_if_any(sources)? else {
            return Err(not_found(&self.id));
        };
        let id = whole_id(&open, &self.id)?;
        Ok(Found { open, id })
    }
}

impl Found {
    pub(super) fn session(&self) -> Result<Arc<Session>, Refusal> {
        self.open.sessions.open(&self.id).map_err(|error| refusal(&self.id, error))
    }
}

/// The id that this is, or the one that it is the beginning of.
pub(crate) fn whole_id(open: &Open, typed: &str) -> Result<String, Refusal> {
    let store = open.sessions.store();
    // A whole id is one, also where others begin with it.
    if store.meta(typed).map_err(|error| from_store(&error))?.is_some() {
        return Ok(typed.to_owned());
    }
    if typed.chars().count() < BEGINNING_CHARS_MIN {
        return Err(Refusal::InvalidParams {
            details: format!("there is no session `{typed}`, and that is too short to begin an id"),
            hint: Some(format!("type at least {BEGINNING_CHARS_MIN} letters of it")),
        });
    }
    let found = store.beginning_with(typed, CANDIDATES_MAX + 1);
    let mut found = found.map_err(|error| from_store(&error))?;
    match found.len() {
        0 => Err(not_found(typed)),
        1 => Ok(found.swap_remove(0).id),
        many => {
            let named = found.iter().take(CANDIDATES_MAX).map(|meta| format!("`{}`", meta.id));
            let named: Vec<String> = named.collect();
            let more = if many > CANDIDATES_MAX { " and more" } else { "" };
            Err(Refusal::InvalidParams {
                details: format!("`{typed}` begins several ids: {}{more}", named.join(", ")),
                hint: Some("type more of the one that you mean".to_owned()),
            })
        }
    }
}

fn not_found(typed: &str) -> Refusal {
    Refusal::SessionNotFound { id: typed.to_owned() }
}
