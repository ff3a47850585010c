//! The file of tokens as a running server sees it: what was made or revoked counts within a second, and no request
//! reads the file unless it has changed.
//!
//! A file that cannot be used lets nobody in, although the tokens of a moment ago are known: one of them may have been
//! revoked by what cannot be read. It is replaced as a whole by our own commands, so this is no state that it goes through.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::file::{self, Stamp};
use super::list::{TokenList, TokenPlace};
use super::{Hash, Record, id_of};
use crate::auth::Principal;
use crate::auth::denied::{Denied, Why};
use crate::sessions::now;

/// How often the file is looked at, at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long those of a store are good that cannot be asked: as long as the keys of an issuer. No session can be reached
/// then, and nothing can be revoked there.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);
/// A file that was written less than this before it was read is read once more.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(in crate::auth) struct Tokens {
    place: TokenPlace,
    look_interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    looked: Option<Instant>,
    /// None where the file has to be read again in any case.
    stamp: Option<Stamp>,
    /// Of those in a store, by the last good look.
    are_there: Option<bool>,
    known: Arc<Known>,
}

/// Tokens by their ids, or why there are none.
type Known = Result<HashMap<String, Record>, String>;

impl Tokens {
    pub(in crate::auth) fn new(place: TokenPlace) -> Self {
        Self::looking_every(place, LOOK_INTERVAL)
    }

    fn looking_every(place: TokenPlace, look_interval: Duration) -> Self {
        let known = match &place {
            TokenPlace::File(_) => Ok(HashMap::new()),
            TokenPlace::Store(_) => Err("nobody has looked yet".to_owned()),
        };
        let state = State { looked: None, stamp: None, are_there: None, known: Arc::new(known) };
        Self { place, look_interval, state: Mutex::new(state) }
    }

    /// The list, for who changes it.
    pub(in crate::auth) fn list(&self) -> TokenList {
        TokenList::new(self.place.clone())
    }

    /// Whether anybody has made one, by the last good look; none where there was none yet.
    pub(in crate::auth) fn are_there(&self) -> Option<bool> {
        match &self.place {
            TokenPlace::File(path) => Some(path.exists()),
            TokenPlace::Store(_) => self.state().are_there,
        }
    }

    /// Somebody has looked a moment ago, and there were none.
    pub(in crate::auth) fn found_none(&self) {
        let mut state = self.state();
        (state.looked, state.are_there) = (Some(Instant::now()), Some(false));
        state.known = Arc::new(Ok(HashMap::new()));
    }

    /// Looks into the store, where they are there; to be called by who may wait for it, again and again. While the store
    /// is away nothing can be revoked in it either, so what was known is good for a while.
    pub(in crate::auth) fn refresh(&self) {
        let TokenPlace::Store(app) = &self.place else { return };
        let read = TokenPlace::in_store(app);
        let mut state = self.state();
        let is_recent = state.looked.is_some_and(|looked| looked.elapsed() < KNOWN_FOR);
        let known = match read {
            Ok(records) => {
                state.looked = Some(Instant::now());
                state.are_there = Some(records.is_some());
                Ok(by_id(records.unwrap_or_default()))
            }
            Err(_) if is_recent && state.known.is_ok() => return,
            Err(why) => Err(why),
        };
        self.learn(&mut state, known);
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn known(&self) -> Arc<Known> {
        let mut state = self.state();
        if let TokenPlace::File(path) = &self.place
            && state.looked.is_none_or(|looked| looked.elapsed() >= self.look_interval)
        {
            state.looked = Some(Instant::now());
            self.look(path, &mut state);
        }
        Arc::clone(&state.known)
    }

    fn look(&self, path: &Path, state: &mut State) {
        let stamp = match Stamp::look(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            stamp => stamp.ok(),
        };
        if stamp.is_some() && stamp == state.stamp {
            return;
        }
        let known = match file::read(path) {
            Ok(Some((records, stamp))) => {
                state.stamp = stamp.is_settled(SETTLED_AFTER).then_some(stamp);
                Ok(by_id(records))
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
        self.learn(state, known);
    }

    fn learn(&self, state: &mut State, known: Known) {
        if *state.known == known {
            return;
        }
        match &known {
            Ok(known) => tracing::info!(tokens = known.len(), "the tokens have changed"),
            Err(why) => {
                let place = &self.place;
                tracing::error!(?place, "the tokens cannot be used, and none is let in: {why}");
            }
        }
        state.known = Arc::new(known);
    }
}

fn by_id(records: Vec<Record>) -> HashMap<String, Record> {
    records.into_iter().map(|record| (record.id.clone(), record)).collect()
}

#[cfg(test)]
mod tests;
