//! A call that is finished elsewhere may be taken back by who made it. Who carries it out says beforehand what to do
//! then, and learns at once if it has happened already.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by the two sides of a call.
#[derive(Clone, Default)]
pub struct Withdrawal(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    #[default]
    Wanted,
    /// Somebody wants to know.
    Minded(Box<dyn FnOnce() + Send>),
    TakenBack,
}

impl Withdrawal {
    /// Nobody waits for the call any more.
    pub fn withdraw(&self) {
        let state = std::mem::replace(&mut *self.state(), State::TakenBack);
        // Outside of the lock: it may look at us again.
        if let State::Minded(then) = state {
            then();
        }
    }

    /// What to do when it is taken back; at once, if it is. The last one who says so counts.
    pub fn then(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if matches!(*state, State::TakenBack) {
            drop(state);
            then();
        } else {
            *state = State::Minded(Box::new(then));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Withdrawal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Withdrawal")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Finish, News};

    #[test]
    fn it_is_heard_once_whoever_comes_first() {
        let heard = Arc::new(AtomicUsize::new(0));
        let note = |heard: &Arc<AtomicUsize>| {
            let heard = Arc::clone(heard);
            move || {
                heard.fetch_add(1, Ordering::Relaxed);
            }
        };
        let (early, late) = (Withdrawal::default(), Withdrawal::default());
        early.then(note(&heard));
        early.withdraw();
        early.withdraw();
        assert_eq!(heard.load(Ordering::Relaxed), 1);
        late.withdraw();
        late.then(note(&heard));
        assert_eq!(heard.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn whoever_looks_on_does_not_stand_between() {
        let finish = Finish::new(|_: News| {});
        let theirs = finish.withdrawal();
        let passed = finish.through(|carried| carried);
        let heard = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&heard);
        passed.withdrawal().then(move || {
            own.fetch_add(1, Ordering::Relaxed);
        });
        theirs.withdraw();
        assert_eq!(heard.load(Ordering::Relaxed), 1);
    }
}
