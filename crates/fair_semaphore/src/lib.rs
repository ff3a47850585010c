//! A semaphore whose permits are shared fairly between owners, such as the principals of a server.
//!
//! Two rules keep one owner from delaying another:
//!
//! - Owners that wait are served in turn, whatever the length of their queues.
//! - An owner takes a further permit only if afterwards at least a third as many are free as it holds. One owner alone
//!   gets three quarters of all permits, and an owner that holds none finds one free as long as there are not many.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// An owner may hold this many permits for each one that stays free.
const HELD_PER_FREE: usize = 3;

/// Clones share their permits.
#[derive(Debug, Clone)]
pub struct FairSemaphore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    permits: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Permits by owner. Owners without one have no entry.
    held: HashMap<Owner, usize>,
    waiting: HashMap<Owner, VecDeque<oneshot::Sender<Permit>>>,
    /// Owners that wait, the next one first.
    turns: VecDeque<Owner>,
}

/// No name for the local user, who shares with nobody and may hold every permit.
pub type Owner = Option<Arc<str>>;

/// A permit that returns to its semaphore when it is dropped.
#[derive(Debug)]
pub struct Permit {
    semaphore: Arc<Shared>,
    owner: Owner,
}

/// The owner has as many calls in the queue as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl FairSemaphore {
    pub fn new(permits: usize) -> Self {
        let (held, waiting, turns) = (HashMap::new(), HashMap::new(), VecDeque::new());
        let state = Mutex::new(State { free: permits, held, waiting, turns });
        Self(Arc::new(Shared { permits, state }))
    }

    /// Waits for a permit, in a queue of at most `waiting_max` calls of this owner. Dropping the future leaves it.
    pub async fn acquire(&self, owner: Owner, waiting_max: usize) -> Result<Permit, QueueFull> {
        let receiver = self.enqueue(owner, waiting_max)?;
        // The sender is dropped only with a granted permit or with the semaphore, which we hold.
        receiver.await.map_err(|_| QueueFull)
    }

    /// Whether no permit is held.
    pub fn is_idle(&self) -> bool {
        self.0.state().free == self.0.permits
    }

    fn enqueue(
        &self,
        owner: Owner,
        waiting_max: usize,
    ) -> Result<oneshot::Receiver<Permit>, QueueFull> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.0.state();
        match state.waiting.entry(owner.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(VecDeque::from([sender]));
                state.turns.push_back(owner);
            }
            Entry::Occupied(occupied) => {
                let queue = occupied.into_mut();
                if queue.len() >= waiting_max {
                    queue.retain(|sender| !sender.is_closed());
                }
                if queue.len() >= waiting_max {
                    return Err(QueueFull);
                }
                queue.push_back(sender);
            }
        }
        drop(state);
        self.0.grant();
        Ok(receiver)
    }
}

impl Shared {
    /// Grants free permits to owners in turn.
    fn grant(self: &Arc<Self>) {
        loop {
            // Unlocked before anything is sent: a permit that nobody receives returns here at once.
            let next = self.state().next();
            let Some((sender, owner)) = next else { return };
            let _ = sender.send(Permit { semaphore: Arc::clone(self), owner });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Takes the next caller that may have a permit out of its queue, and the permit with it.
    fn next(&mut self) -> Option<(oneshot::Sender<Permit>, Owner)> {
        for _ in 0..self.turns.len() {
            let owner = self.turns.pop_front()?;
            if !self.may_take(&owner) {
                self.turns.push_back(owner);
                continue;
            }
            let queue = self.waiting.get_mut(&owner)?;
            let sender = std::iter::from_fn(|| queue.pop_front()).find(|own| !own.is_closed());
            match queue.is_empty() {
                true => drop(self.waiting.remove(&owner)),
                false => self.turns.push_back(owner.clone()),
            }
            if let Some(sender) = sender {
                self.free -= 1;
                *self.held.entry(owner.clone()).or_default() += 1;
                return Some((sender, owner));
            }
        }
        None
    }

    fn may_take(&self, owner: &Owner) -> bool {
        let held = self.held.get(owner).copied().unwrap_or_default();
        let is_unshared = held == 0 || owner.is_none();
        self.free > 0 && (is_unshared || held < HELD_PER_FREE * (self.free - 1))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.semaphore.state();
        state.free += 1;
        if let Entry::Occupied(mut held) = state.held.entry(self.owner.clone()) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
        drop(state);
        self.semaphore.grant();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const WAITING_MAX: usize = 64;

    type Acquiring = Pin<Box<dyn Future<Output = Result<Permit, QueueFull>>>>;

    fn owner(name: &str) -> Owner {
        Some(name.into())
    }

    /// Asks for a permit, and stays in the queue if there is none.
    fn ask(
        semaphore: &FairSemaphore,
        owner: Owner,
    ) -> (Acquiring, Poll<Result<Permit, QueueFull>>) {
        let semaphore = semaphore.clone();
        let mut asked: Acquiring =
            Box::pin(async move { semaphore.acquire(owner, WAITING_MAX).await });
        let polled = poll(&mut asked);
        (asked, polled)
    }

    fn poll(asked: &mut Acquiring) -> Poll<Result<Permit, QueueFull>> {
        asked.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn owner_with_long_queue_leaves_permits_to_others() {
        let semaphore = FairSemaphore::new(16);
        let ann: Vec<_> = (0..40).map(|_| ask(&semaphore, owner("ann"))).collect();
        let held = ann.iter().filter(|(_, permit)| permit.is_ready()).count();
        assert_eq!(held, 12);
        for name in ["bob", "cleo", "dan"] {
            let (_, permit) = ask(&semaphore, owner(name));
            assert!(permit.is_ready(), "{name} does not wait for ann");
        }
    }

    #[test]
    fn waiting_owners_take_turns() {
        let semaphore = FairSemaphore::new(1);
        let (_, first) = ask(&semaphore, owner("ann"));
        let mut ann: Vec<_> = (0..3).map(|_| ask(&semaphore, owner("ann")).0).collect();
        let (mut bob, _) = ask(&semaphore, owner("bob"));
        drop(first);
        let Poll::Ready(second) = poll(&mut ann[0]) else { panic!("ann was first in the queue") };
        drop(second);
        assert!(poll(&mut ann[1]).is_pending());
        assert!(poll(&mut bob).is_ready(), "bob waits for one permit, not for ann's queue");
    }

    #[test]
    fn abandoned_callers_leave_the_queue() {
        let semaphore = FairSemaphore::new(1);
        let (_, held) = ask(&semaphore, owner("ann"));
        let abandoned: Vec<_> = (0..WAITING_MAX).map(|_| ask(&semaphore, owner("ann")).0).collect();
        let (_, refused) = ask(&semaphore, owner("ann"));
        assert!(matches!(refused, Poll::Ready(Err(QueueFull))));
        drop(abandoned);
        let (mut waiting, polled) = ask(&semaphore, owner("ann"));
        assert!(polled.is_pending());
        drop(held);
        assert!(poll(&mut waiting).is_ready());
        drop(waiting);
        assert!(semaphore.is_idle());
        let state = semaphore.0.state();
        assert!(state.held.is_empty() && state.waiting.is_empty() && state.turns.is_empty());
    }

    #[test]
    fn local_user_may_hold_every_permit() {
        let semaphore = FairSemaphore::new(4);
        let all: Vec<_> = (0..4).map(|_| ask(&semaphore, None)).collect();
        assert!(all.iter().all(|(_, permit)| permit.is_ready()));
    }
}
