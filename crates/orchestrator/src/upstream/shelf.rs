//! A list of an upstream, kept until the upstream says that it changed or its time is over. One fetches it at a time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::notices::Notices;
use crate::pool::Kind;

/// A list without a time of its own is kept until the server says that it changed; where it never says so, this long.
const UNTOLD_LIFE: Duration = Duration::from_secs(300);
/// Calls go by a list that is at most this old, however short its life is: each would fetch it anew else.
const CALL_GRACE: Duration = Duration::from_secs(1);

pub(super) struct Shelf<L> {
    kind: Kind,
    notices: Arc<Notices>,
    kept: Mutex<Option<Kept<L>>>,
    /// Held by who fetches.
    pub(super) fetching: tokio::sync::Mutex<()>,
}

struct Kept<L> {
    list: Arc<L>,
    /// As of which change.
    count: u64,
    fetched: Instant,
    until: Option<Instant>,
}

/// How fresh a list must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    AsTold,
    ForACall,
}

/// A fetch that has begun: what changes from here on, changes what it brings.
pub(super) struct Begun(u64);

impl<L> Shelf<L> {
    pub(super) fn new(kind: Kind, notices: Arc<Notices>) -> Self {
        Self { kind, notices, kept: Mutex::new(None), fetching: Default::default() }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn get(&self, freshness: Freshness) -> Option<Arc<L>> {
        let kept = self.kept.lock();
        let kept = kept.as_ref().filter(|kept| kept.count == self.notices.count(self.kind))?;
        let now = Instant::now();
        let is_new = freshness == Freshness::ForACall && now < kept.fetched + CALL_GRACE;
        (is_new || kept.until.is_none_or(|until| now < until)).then(|| kept.list.clone())
    }

    /// What was known last, outdated or not.
    pub(super) fn last(&self) -> Option<Arc<L>> {
        self.kept.lock().as_ref().map(|kept| kept.list.clone())
    }

    /// To be said once there is a connection.
    pub(super) fn begin(&self) -> Begun {
        Begun(self.notices.count(self.kind))
    }

    pub(super) fn put(
        &self,
        begun: Begun,
        list: L,
        time_to_live: Option<Duration>,
        tells_changes: bool,
    ) -> Arc<L> {
        let list = Arc::new(list);
        let life = time_to_live.or((!tells_changes).then_some(UNTOLD_LIFE));
        let fetched = Instant::now();
        // A life without an end is none.
        let until = life.and_then(|life| fetched.checked_add(life));
        let kept = Kept { list: list.clone(), count: begun.0, fetched, until };
        *self.kept.lock() = Some(kept);
        list
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    fn shelf() -> Shelf<u32> {
        let notices = Notices::new("x", broadcast::Sender::new(4));
        Shelf::new(Kind::Tools, Arc::new(notices))
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_lives_as_long_as_it_is_said_to() {
        let second = Duration::from_secs(1);
        let shelf = shelf();
        assert!(shelf.get(Freshness::AsTold).is_none());
        shelf.put(shelf.begin(), 1, Some(5 * second), true);
        tokio::time::advance(4 * second).await;
        assert!(shelf.get(Freshness::AsTold).is_some());
        tokio::time::advance(second).await;
        assert!(shelf.get(Freshness::AsTold).is_none() && shelf.get(Freshness::ForACall).is_none());
        shelf.put(shelf.begin(), 1, Some(Duration::ZERO), true);
        assert!(shelf.get(Freshness::AsTold).is_none() && shelf.get(Freshness::ForACall).is_some());
        shelf.put(shelf.begin(), 1, None, true);
        tokio::time::advance(100 * UNTOLD_LIFE).await;
        assert!(shelf.get(Freshness::AsTold).is_some());
        shelf.put(shelf.begin(), 1, None, false);
        tokio::time::advance(UNTOLD_LIFE).await;
        assert!(shelf.get(Freshness::AsTold).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_during_a_fetch_is_not_missed() {
        let shelf = shelf();
        let begun = shelf.begin();
        shelf.notices.changed(Kind::Tools);
        shelf.put(begun, 1, None, true);
        assert!(shelf.get(Freshness::AsTold).is_none() && shelf.get(Freshness::ForACall).is_none());
        shelf.put(shelf.begin(), 1, None, true);
        shelf.notices.changed(Kind::Prompts);
        assert!(shelf.get(Freshness::AsTold).is_some());
    }
}
