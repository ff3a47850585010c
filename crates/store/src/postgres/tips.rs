//! The ends of the logs that we have read or written last, so that an append is one statement. It is safe to be wrong
//! here: the statement compares.

use std::collections::HashMap;
use std::sync::Arc;

use deadpool_postgres::Client;
use parking_lot::Mutex;

use super::failure::Failure;
use super::rows::{hash, head, number};
use crate::chain::{Chain, Hash};
use crate::error::Error;
use crate::model::Version;
use crate::words::owner_word;

pub(super) const TIP: &str = "SELECT version, touched, seal, status, step, revision,
    (SELECT hash FROM events e WHERE e.session = s.number AND e.version = s.version), owner
    FROM sessions s WHERE id = $1";

/// Beyond so many, all are forgotten and read again.
const TIPS_MAX: usize = 10_000;

/// What the next event hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tip {
    pub(super) version: Version,
    /// Of the last event.
    pub(super) hash: Hash,
    /// Of the head, and so of all that is in it.
    pub(super) seal: Hash,
    /// What stands for the owner in the index of words.
    pub(super) owner: Arc<str>,
}

#[derive(Debug, Default)]
pub(super) struct Tips(Mutex<HashMap<String, Tip>>);

impl Tips {
    pub(super) fn get(&self, session: &str) -> Option<Tip> {
        self.0.lock().get(session).cloned()
    }

    pub(super) fn put(&self, session: &str, tip: Tip) {
        let mut tips = self.0.lock();
        if let Some(known) = tips.get_mut(session) {
            *known = tip;
            return;
        }
        if tips.len() >= TIPS_MAX {
            tips.clear();
        }
        tips.insert(session.to_owned(), tip);
    }
}

/// Reads the end of a log. A head that was forged must not be sealed again by us.
pub(super) async fn read(
    client: &Client,
    chain: &Chain,
    session: &str,
) -> Result<Option<Tip>, Failure> {
    let statement = client.prepare_cached(TIP).await?;
    let Some(row) = client.query_opt(&statement, &[&session]).await? else { return Ok(None) };
    let version = number(&row, 0)?;
    let (touched, seal) = (number(&row, 1)?, hash(&row, 2)?);
    let head = head(&row, 3)?;
    let last = match row.try_get::<_, Option<&[u8]>>(6)? {
        Some(_) => Some(hash(&row, 6)?),
        None => None,
    };
    match last {
        Some(last) if chain.seal(&last, session, version, &head, touched) == seal => {
            let owner = owner_word(row.try_get(7)?).into();
            Ok(Some(Tip { version, hash: last, seal, owner }))
        }
        _ => {
            let why = format!("the head of `{session}` does not fit its last event");
            Err(Error::Damaged(why).into())
        }
    }
}
