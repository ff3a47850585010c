//! The file of tokens as a running server sees it: what was made or revoked counts within a second, and no request
//! reads the file unless it has changed.
//!
//! A file that cannot be used lets nobody in, although the tokens of a moment ago are known: one of them may have been
//! revoked by what cannot be read. It is replaced as a whole by our own commands, so this is no state that it goes through.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::file::{self, Stamp, TokenFile};
use super::{Hash, Record, id_of};
use crate::auth::Principal;
use crate::auth::denied::{Denied, Why};
use crate::sessions::now;

/// How often the file is looked at, at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A file that was written less than this before it was read is read once more.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(in crate::auth) struct Tokens {
    path: PathBuf,
    look_interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    looked: Option<Instant>,
    /// None where the file has to be read again in any case.
    stamp: Option<Stamp>,
    known: Arc<Known>,
}

/// Tokens by their ids, or why there are none.
type Known = Result<HashMap<String, Record>, String>;

impl Tokens {
    pub(in crate::auth) fn new(path: PathBuf) -> Self {
        Self::looking_every(path, LOOK_INTERVAL)
    }

    fn looking_every(path: PathBuf, look_interval: Duration) -> Self {
        let state = State { looked: None, stamp: None, known: Arc::new(Ok(HashMap::new())) };
        Self { path, look_interval, state: Mutex::new(state) }
    }

    /// The file, for who changes it.
    pub(in crate::auth) fn file(&self) -> TokenFile {
        TokenFile::new(self.path.clone())
    }

    /// Whether there is a token with this name that is good for this.
    pub(in crate::auth) fn has(&self, name: &str, right: &str) -> bool {
        let is_it = |record: &Record| &*record.name == name && record.right.name() == right;
        let known = self.known();
        Result::as_ref(&known).is_ok_and(|known| known.values().any(is_it))
    }

    /// Who has presented this token. An id that nobody has takes as long as a wrong secret.
    pub(in crate::auth) fn check(&self, token: &str) -> Result<Principal, Denied> {
        let known = self.known();
        let known = Result::as_ref(&known).map_err(|_| {
            Denied::new(Why::Unavailable, "the server cannot read its tokens; its log says why")
        })?;
        let record = id_of(token).and_then(|id| known.get(id));
        let nobodys = Hash([0; 32]);
        let is_right = record.map_or(&nobodys, |record| &record.hash).is(&Hash::of(token));
        match record {
            Some(record) if is_right && !record.is_expired(now()) => {
                let (name, right) = (Arc::clone(&record.name), record.right);
                Ok(Principal { name, right, until: record.until })
            }
            // Whoever has the secret may know that it was right.
            Some(_) if is_right => Err(Denied::new(Why::Invalid, "the token has expired")),
            _ => Err(Denied::new(Why::Invalid, "the token is not known")),
        }
    }

    pub(in crate::auth) fn not_ready(&self) -> Option<String> {
        let known = self.known();
        Result::as_ref(&known).err().map(|why| format!("the tokens cannot be used: {why}"))
    }

    fn known(&self) -> Arc<Known> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.is_none_or(|looked| looked.elapsed() >= self.look_interval) {
            state.looked = Some(Instant::now());
            self.look(&mut state);
        }
        Arc::clone(&state.known)
    }

    fn look(&self, state: &mut State) {
        let stamp = match Stamp::look(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            stamp => stamp.ok(),
        };
        if stamp.is_some() && stamp == state.stamp {
            return;
        }
        let known = match file::read(&self.path) {
            Ok(Some((records, stamp))) => {
                state.stamp = stamp.is_settled(SETTLED_AFTER).then_some(stamp);
                let by_id = records.into_iter().map(|record| (record.id.clone(), record));
                Ok(by_id.collect())
            }
            // Nobody has made a token yet, or somebody has taken all of them back.
            Ok(None) => {
                state.stamp = None;
                Ok(HashMap::new())
            }
            Err(why) => {
                state.stamp = None;
                Err(why)
            }
        };
        if *state.known == known {
            return;
        }
        match &known {
            Ok(known) => tracing::info!(tokens = known.len(), "the tokens have changed"),
            Err(why) => {
                let file = self.path.display();
                tracing::error!(%file, "the tokens cannot be used, and none is let in: {why}");
            }
        }
        state.known = Arc::new(known);
    }
}

#[cfg(test)]
mod tests;
