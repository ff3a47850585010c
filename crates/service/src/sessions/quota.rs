//! What one principal may keep in the store: open sessions and bytes. The store is asked seldom and beside the calls;
//! in between, what this process writes is added. A principal whose usage is not known yet is not held up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use store::Usage;

use super::{Open, refusal};
use crate::access::Who;
use crate::error::Refusal;

/// How long what the store said counts: this long, and longer if it took long to say, so that asking it takes a small
/// part of a thread.
const FRESH: Duration = Duration::from_secs(60);
const FRESH_PER_COST: u32 = 100;
/// How long a principal is remembered.
const KNOWN: Duration = Duration::from_secs(3600);
/// What an event has beside what the client sent, about.
const EVENT_BYTES: u64 = 256;
/// How long it counts for a principal that is over its quota and may have tidied up. A client is told to wait as long.
const FRESH_WHEN_OVER: Duration = Duration::from_secs(5);

/// What one principal may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub open_sessions: u64,
    pub stored_bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { open_sessions: 10_000, stored_bytes: 4 * 1024 * 1024 * 1024 }
    }
}

/// The quota of every principal, and what those have that were here lately.
#[derive(Debug, Default)]
pub struct Quotas {
    /// Unset over stdio, and for commands.
    quota: OnceLock<Quota>,
    known: Mutex<HashMap<Arc<str>, Known>>,
    is_measuring: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    usage: Usage,
    at: Instant,
    /// How long the store took to say so.
    cost: Duration,
}

impl Quotas {
    /// Holds principals to a quota from now on.
    pub(crate) fn set(&self, quota: Quota) {
        // The first one counts; a server has one.
        let _ = self.quota.set(quota);
    }

    /// Whether a principal may begin another session.
    pub(crate) fn check_start(self: &Arc<Self>, open: &Open, who: &Who) -> Result<(), Refusal> {
        let Some(principal) = who.principal() else { return Ok(()) };
        let has_too_many =
            |usage: &Usage, quota: &Quota| usage.open_sessions >= quota.open_sessions;
        self.check(open, principal, true, has_too_many)?;
        self.check(open, principal, true, has_too_much)
    }

    /// Whether a principal may write this many bytes to a session, which are counted. They are stored for the session's
    /// owner, so the owner is held to its quota too.
    pub(crate) fn check_append(
        self: &Arc<Self>,
        open: &Open,
        who: &Who,
        session: &str,
        stored_bytes: u64,
    ) -> Result<(), Refusal> {
        let Some(principal) = who.principal().filter(|_| self.quota.get().is_some()) else {
            return Ok(());
        };
        self.check(open, principal, true, has_too_much)?;
        let owner = open.sessions.owner(session).map_err(|error| refusal(session, error))?;
        let Some(owner) = owner else { return Ok(()) };
        // The local user has no quota.
        if *owner != **principal && owner != open.user {
            self.check(open, &owner.as_str().into(), false, has_too_much)?;
        }
        self.add(&owner, Usage { open_sessions: 0, stored_bytes });
        Ok(())
    }

    /// Counts what a call is about to write to a principal's sessions.
    pub(crate) fn add(&self, principal: &str, more: Usage) {
        if let Some(known) = self.known().get_mut(principal) {
            let usage = &mut known.usage;
            usage.open_sessions = usage.open_sessions.saturating_add(more.open_sessions);
            usage.stored_bytes = usage.stored_bytes.saturating_add(more.stored_bytes + EVENT_BYTES);
        }
    }

    fn check(
        self: &Arc<Self>,
        open: &Open,
        principal: &Arc<str>,
        is_caller: bool,
        is_over: impl Fn(&Usage, &Quota) -> bool,
    ) -> Result<(), Refusal> {
        let Some(quota) = self.quota.get() else { return Ok(()) };
        let known = self.known().get(principal).copied();
        let over = known.is_some_and(|known| is_over(&known.usage, quota));
        let fresh = if over { FRESH_WHEN_OVER } else { FRESH };
        if known.is_none_or(|known| known.at.elapsed() >= fresh.max(known.cost * FRESH_PER_COST)) {
            self.measure(open, principal);
        }
        match known.filter(|_| over) {
            None => Ok(()),
            Some(Known { usage, .. }) => {
                let (quota, retry_after) = (*quota, FRESH_WHEN_OVER);
                Err(Refusal::OverQuota { usage, quota, is_caller, retry_after })
            }
        }
    }

    /// Asks the store on a thread of its own, one principal at a time: whoever finds it busy asks with a later call.
    pub(crate) fn measure(self: &Arc<Self>, open: &Open, principal: &Arc<str>) {
        let guard = self.quota.get().and_then(|_| MeasuringGuard::acquire(self));
        let Some(guard) = guard else { return };
        let principal = Arc::clone(principal);
        let store = open.sessions.store().clone();
        let measuring = std::thread::Builder::new().name("usage".to_owned()).spawn(move || {
            let begun = Instant::now();
            match store.usage(&principal) {
                Ok(usage) => guard.0.learn(principal, usage, begun.elapsed()),
                Err(error) => tracing::warn!(%error, "failed to measure what a principal stores"),
            }
        });
        if let Err(error) = measuring {
            tracing::warn!(%error, "failed to start a thread that measures what a principal stores");
        }
    }

    fn learn(&self, principal: Arc<str>, usage: Usage, cost: Duration) {
        let at = Instant::now();
        let mut known = self.known();
        known.retain(|_, known| known.at.elapsed() < KNOWN);
        known.insert(principal, Known { usage, at, cost });
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Known>> {
        self.known.lock()
    }
}

fn has_too_much(usage: &Usage, quota: &Quota) -> bool {
    usage.stored_bytes >= quota.stored_bytes
}

/// The permission to ask the store, which one thread has at a time, until it ends or panics.
#[derive(Debug)]
struct MeasuringGuard(Arc<Quotas>);

impl MeasuringGuard {
    fn acquire(quotas: &Arc<Quotas>) -> Option<Self> {
        let is_taken = quotas.is_measuring.swap(true, Ordering::AcqRel);
        (!is_taken).then(|| Self(Arc::clone(quotas)))
    }
}

impl Drop for MeasuringGuard {
    fn drop(&mut self) {
        self.0.is_measuring.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_goes_on_after_panic() {
        let quotas = Arc::new(Quotas::default());
        let guard = MeasuringGuard::acquire(&quotas).unwrap();
        assert!(MeasuringGuard::acquire(&quotas).is_none());
        let thread = std::thread::spawn(move || {
            let _guard = guard;
            panic!("as a store might");
        });
        thread.join().unwrap_err();
        assert!(MeasuringGuard::acquire(&quotas).is_some());
    }

    fn usage(quotas: &Quotas, name: &str) -> Option<Usage> {
        quotas.known().get(name).map(|known| known.usage)
    }

    #[test]
    fn writes_count_only_for_known_principals() {
        let quotas = Quotas::default();
        let anna: Arc<str> = "anna".into();
        quotas.add(&anna, Usage { open_sessions: 1, stored_bytes: 10 });
        assert_eq!(usage(&quotas, "anna"), None, "the store is asked first");
        let measured = Usage { open_sessions: 3, stored_bytes: 1_000 };
        quotas.learn(Arc::clone(&anna), measured, Duration::ZERO);
        quotas.add(&anna, Usage { open_sessions: 1, stored_bytes: 10 });
        quotas.add("bert", Usage { open_sessions: 1, stored_bytes: 10 });
        let expected = Usage { open_sessions: 4, stored_bytes: 1_010 + EVENT_BYTES };
        assert_eq!(usage(&quotas, "anna"), Some(expected));
        assert_eq!(usage(&quotas, "bert"), None);
        // What the store says counts again from then on.
        quotas.learn(anna, measured, Duration::ZERO);
        assert_eq!(usage(&quotas, "anna"), Some(measured));
    }

    #[test]
    fn quota_is_used_up_when_it_is_reached() {
        let quota = Quota { open_sessions: 2, stored_bytes: 100 };
        for (stored_bytes, is_over) in [(0, false), (99, false), (100, true), (u64::MAX, true)] {
            let usage = Usage { open_sessions: 9, stored_bytes };
            assert_eq!(has_too_much(&usage, &quota), is_over, "{stored_bytes}");
        }
    }

    #[test]
    fn first_quota_counts() {
        let quotas = Quotas::default();
        let [first, second] =
            [1, 2].map(|open_sessions| Quota { open_sessions, ..Quota::default() });
        quotas.set(first);
        quotas.set(second);
        assert_eq!(quotas.quota.get(), Some(&first));
    }
}
