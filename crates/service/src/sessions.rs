//! The sessions of this user, opened when the first one is needed: who never begins a session has no file of ours.
//! The clock, randomness and the user's name come in here, and nowhere below.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use engine::Checker;
use parking_lot::Mutex;
use store::sessions::Sessions;
use store::{Mark, Store};

use crate::access::Who;
use crate::audit::Audit;
use crate::error::Refusal;

mod anchor;
mod denied;
mod gates;
mod key_file;
mod place;
mod quota;
mod signer;
mod tally;

use anchor::{Anchor, AnchorKeeper};
use key_file::MasterKey;

pub use denied::{Denied, Standing, from_store, refusal};
pub use gates::{Gates, Ruling};
pub use place::{KeyPlace, Place, StoreUrl, state_folder};
pub use quota::{Quota, Quotas};
pub(crate) use signer::{Asked, Gate, Signer};
pub(crate) use tally::{Beginning, Ruled, Tally};

/// How sessions are served.
#[derive(Debug, Clone, Copy)]
pub struct Serving {
    /// How many connections a store that is a server is asked for.
    pub connections: usize,
    pub gates: Gates,
}

impl Default for Serving {
    /// As a command does, which asks one thing after the other.
    fn default() -> Self {
        Self { connections: 2, gates: Gates::default() }
    }
}

/// Sessions that are opened once, and only if somebody asks.
#[derive(Debug)]
pub struct LazySessions {
    place: Option<Place>,
    checker: Arc<Checker>,
    serving: Serving,
    tally: Arc<Tally>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    open: OnceLock<Arc<Open>>,
    /// Held by whoever opens them, which may take its time. Nobody else waits for that who does not need them.
    opening: Mutex<()>,
}

#[derive(Debug)]
pub struct Open {
    pub sessions: Arc<Sessions>,
    pub(crate) signer: Signer,
    /// Whose sessions these are.
    pub user: String,
    /// What was written from then on is news. Where that would have to be asked over a network, it is from the first look
    /// on.
    pub(crate) opened_at: Option<Mark>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) gates: Gates,
    /// Why the store is not the one that its anchor was written for, once that is so.
    rollback: Arc<OnceLock<String>>,
    /// Taken when the server ends.
    anchor: Mutex<Option<AnchorKeeper>>,
    pub(crate) quotas: Arc<Quotas>,
}

impl Open {
    /// Why the store is not the one that its anchor was written for. Nothing but `session verify` works with one that is
    /// not.
    pub fn rollback(&self) -> Option<&str> {
        self.rollback.get().map(String::as_str)
    }

    fn check_anchor(&self) -> Result<(), Refusal> {
        self.rollback().map_or(Ok(()), |difference| Err(anchor::rolled_back(difference)))
    }

    /// Brings the anchor up to date for the last time. Dropping `Open` does so too, but other threads may hold it
    /// when the process ends.
    pub(crate) fn finish_anchor(&self) {
        let keeper = self.anchor.lock().take();
        drop(keeper);
    }

    /// Whether the store was seen to be away.
    pub(crate) fn is_away(&self) -> bool {
        self.sessions.store().is_away()
    }
}

impl LazySessions {
    /// No place: there is no folder to keep them in.
    pub(crate) fn new(
        place: Option<Place>,
        checker: Arc<Checker>,
        audit: Audit,
        serving: Serving,
    ) -> Self {
        let (audit, tally) = (Arc::new(audit), Arc::default());
        Self {
            place,
            checker,
            serving,
            tally,
            audit,
            quotas: Arc::default(),
            open: OnceLock::new(),
            opening: Mutex::default(),
        }
    }

    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Opens them, and makes the file or the tables where there are none. What fails is tried again with the next call.
    pub fn get(&self) -> Result<Arc<Open>, Refusal> {
        let open = self.open()?;
        open.check_anchor()?;
        open.sessions.store().allow_making();
        Ok(open)
    }

    fn open(&self) -> Result<Arc<Open>, Refusal> {
        if let Some(open) = self.opened() {
            return Ok(open);
        }
        let _opening = self.opening.lock();
        if let Some(open) = self.opened() {
            return Ok(open);
        }
        self.check_missing_store()?;
        let (place, key) = self.key()?;
        let chain_key = Some(key.for_chain());
        let store = match &place.store {
            StoreUrl::Sqlite(path) => Store::open(path, chain_key),
            StoreUrl::Postgres(address) => {
                Store::looking(address, chain_key, self.serving.connections)
            }
        };
        let store = store.map_err(|error| no_store(place, &error))?;
        let opened_at = match store.is_remote() {
            true => None,
            false => Some(store.mark().map_err(|error| from_store(&error))?),
        };
        let (rollback, anchor) = anchored(place, &key, &store)?;
        let sessions = Arc::new(Sessions::new(store, Arc::clone(&self.checker)));
        let made = Arc::new(Open {
            sessions,
            signer: key.signer(),
            user: user(),
            opened_at,
            tally: Arc::clone(&self.tally),
            audit: Arc::clone(&self.audit),
            gates: self.serving.gates,
            rollback,
            anchor: Mutex::new(anchor),
            quotas: Arc::clone(&self.quotas),
        });
        Ok(Arc::clone(self.open.get_or_init(|| made)))
    }

    /// What handshakes over HTTP are signed with.
    pub(crate) fn handshake_key(&self) -> Result<[u8; 32], Refusal> {
        self.key().map(|(_, key)| key.for_handshakes())
    }

    /// What questions of upstreams are sealed with, over HTTP.
    pub(crate) fn question_key(&self) -> Result<[u8; 32], Refusal> {
        self.key().map(|(_, key)| key.for_questions())
    }

    fn key(&self) -> Result<(&Place, MasterKey), Refusal> {
        let place = self.place.as_ref().ok_or_else(|| Refusal::Store {
            details: "there is no folder to keep sessions in".to_owned(),
            hint: Some("set HOME, or name a file with `--store sqlite:PATH`".to_owned()),
        })?;
        let key = key_file::at(&place.key).map_err(|error| no_key(place, &error))?;
        Ok((place, key))
    }

    /// Where they are kept, or will be.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The same for who only looks: where there is no file and there are no tables, there are no sessions.
    pub fn get_if_any(&self) -> Result<Option<Arc<Open>>, Refusal> {
        let open = self.get_unanchored()?;
        open.as_ref().map_or(Ok(()), |open| open.check_anchor())?;
        Ok(open)
    }

    /// The same for who finds out what is wrong with the store: also where its anchor says that something is.
    pub fn get_unanchored(&self) -> Result<Option<Arc<Open>>, Refusal> {
        let is_there = || self.place.as_ref().is_some_and(|place| place.store.exists());
        if self.opened().is_none() && !is_there() {
            self.check_missing_store()?;
            return Ok(None);
        }
        let open = self.open()?;
        if open.sessions.store().is_made().map_err(|error| from_store(&error))? {
            return Ok(Some(open));
        }
        // An anchor of tables that are gone.
        open.check_anchor()?;
        Ok(None)
    }

    /// Fails if there is no file and its anchor has seen one: a store that was removed is not a new one.
    fn check_missing_store(&self) -> Result<(), Refusal> {
        let place = self.place.as_ref().filter(|place| !place.store.exists());
        // Without an anchor no key is needed, and none is made.
        let Some(path) = place.and_then(|place| place.anchor.as_ref()).filter(|path| path.exists())
        else {
            return Ok(());
        };
        let (_, key) = self.key()?;
        let loss = Anchor::new(path, key.for_anchor()).describe_loss()?;
        loss.map_or(Ok(()), |loss| Err(anchor::rolled_back(&loss)))
    }

    /// For a call about one session that they may see: where there is no file, it is not there either.
    pub(crate) fn seen_by(&self, who: &Who, id: &str, wanted: &str) -> Result<Arc<Open>, Refusal> {
        let Some(open) = self.get_if_any()? else {
            who.finds_none(id, wanted, &self.audit);
            return Err(Refusal::SessionNotFound { id: id.to_owned() });
        };
        open.see(who, id, wanted)?;
        Ok(open)
    }

    /// Whether a call about sessions has to wait for a network.
    pub fn are_remote(&self) -> bool {
        matches!(&self.place, Some(Place { store: StoreUrl::Postgres(_), .. }))
    }

    /// Whether this is a session of theirs that we have in memory: nobody has to be asked about it.
    pub(crate) fn knows(&self, who: &Who, id: &str) -> bool {
        let Some(open) = self.opened() else { return false };
        let session = open.sessions.in_memory(id);
        session.is_some_and(|session| *session.owner == *who.owner(&open))
    }

    /// If they have been opened already. Whoever is opening them is not waited for.
    pub(crate) fn opened(&self) -> Option<Arc<Open>> {
        self.open.get().cloned()
    }

    /// What principals may keep.
    pub(crate) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

/// Compares a store that was just opened with its anchor, and has the anchor kept up to date where they agree.
fn anchored(
    place: &Place,
    key: &MasterKey,
    store: &Store,
) -> Result<(Arc<OnceLock<String>>, Option<AnchorKeeper>), Refusal> {
    let rollback = Arc::new(OnceLock::new());
    let Some(path) = &place.anchor else { return Ok((rollback, None)) };
    let anchor = Anchor::new(path, key.for_anchor());
    if let Some(difference) = anchor.update(store)? {
        tracing::error!("{difference}");
        let _ = rollback.set(difference);
        return Ok((rollback, None));
    }
    let keeper = AnchorKeeper::start(anchor, store.clone(), Arc::clone(&rollback));
    let keeper = keeper.map_err(|error| Refusal::Store {
        details: format!("cannot start a thread: {error}"),
        hint: None,
    })?;
    Ok((rollback, Some(keeper)))
}

fn no_key(place: &Place, error: &io::Error) -> Refusal {
    let hint = match error.kind() {
        _ if place.key == KeyPlace::Environment => {
            "set it to the 64 hexadecimal digits of the key, or unset it to use the one in a file"
        }
        io::ErrorKind::InvalidData => {
            "put the right one back, or move it away together with its store to begin anew"
        }
        _ => "see that its folder is yours to read and write",
    };
    Refusal::Store {
        details: format!("the key `{}` cannot be used: {error}", place.key),
        hint: Some(hint.to_owned()),
    }
}

fn no_store(place: &Place, error: &store::Error) -> Refusal {
    let hint = match error {
        store::Error::WrongKey => Some(format!(
            "put the key that belongs to it back at `{}` (it was made together with the store), or begin a new \
             store with `--store sqlite:PATH`",
            place.key
        )),
        store::Error::NotOurs | store::Error::Damaged(_) => {
            Some("move it away, or name another one with `--store sqlite:PATH`".to_owned())
        }
        store::Error::Denied(_) => Some(
            "`sslmode=` and `sslrootcert=` in the address say how it is encrypted, and who signs for the server"
                .to_owned(),
        ),
        store::Error::Unavailable(_) => Some(
            "see that it is a file that is yours to read and write, or name another one with \
             `--store sqlite:PATH`"
                .to_owned(),
        ),
        _ => None,
    };
    Refusal::Store { details: format!("`{}`: {error}", place.store.shown()), hint }
}

/// The end of the year 9999: what comes later cannot be written as a date.
const LAST_TIME: u64 = 253_402_300_799_999;

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time of ours for people: UTC, to the second.
pub fn time_text(time: u64) -> String {
    // An imported log may say anything.
    if time > LAST_TIME {
        return "after the year 9999".to_owned();
    }
    let time = UNIX_EPOCH + std::time::Duration::from_millis(time);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// The length of an id: 50 random bits. An id is in every result that an agent reads, so it is short. It is no secret:
/// access is checked, and the store refuses an id that exists.
const ID_LENGTH: usize = 10;
/// Nothing in it that is mistaken for something else.
const ID_LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The id of a session that is to begin.
pub fn new_id() -> Result<String, Refusal> {
    let mut bytes = [0; ID_LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| Refusal::Store {
        details: format!("the system gives no random numbers: {error}"),
        hint: None,
    })?;
    Ok(bytes.iter().map(|byte| char::from(ID_LETTERS[usize::from(byte % 32)])).collect())
}

/// Who we work for: the local user.
pub fn user() -> String {
    whoami::username().unwrap_or_else(|_| "somebody".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_can_be_written() {
        assert_eq!(time_text(0), "1970-01-01T00:00:00Z");
        assert_eq!(time_text(LAST_TIME), "9999-12-31T23:59:59Z");
        assert_eq!(time_text(LAST_TIME + 1), "after the year 9999");
        assert_eq!(time_text(u64::MAX), "after the year 9999");
    }
}
