//! Appends to one session go out in the order in which they came in, so that one may build on another that is still
//! under way. Those of different sessions know nothing of each other.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// For each session with something under way: the number of the last to come, and its end.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    count: u64,
    sessions: HashMap<String, (u64, oneshot::Receiver<()>)>,
}

/// A place in the order; the next one's turn comes when this goes.
pub(super) struct Turn {
    turns: Arc<Turns>,
    session: String,
    number: u64,
    before: Option<oneshot::Receiver<()>>,
    _end: oneshot::Sender<()>,
}

impl Turns {
    pub(super) fn take(this: &Arc<Self>, session: &str) -> Turn {
        let (end, ended) = oneshot::channel();
        let mut last = this.lock();
        last.count += 1;
        let number = last.count;
        let before = last.sessions.insert(session.to_owned(), (number, ended));
        let before = before.map(|(_, ended)| ended);
        Turn { turns: Arc::clone(this), session: session.to_owned(), number, before, _end: end }
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.0.lock()
    }
}

impl Turn {
    pub(super) async fn come(&mut self) {
        if let Some(before) = self.before.take() {
            // It says nothing, and goes.
            let _ = before.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut last = self.turns.lock();
        if last.sessions.get(&self.session).is_some_and(|(number, _)| *number == self.number) {
            last.sessions.remove(&self.session);
        }
    }
}
