//! Threads for work that takes its time: a few at once, and a few more in a queue.

use std::collections::VecDeque;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::Builder;
use std::time::Duration;

use mcp::Outcome;
use parking_lot::{Condvar, Mutex};
use transport::{OutcomeFuture, Threads, Work, guarded};

/// How much work is carried out at once.
const RUNNING_MAX: usize = 4;
/// How much more may wait for its turn.
const WAITING_MAX: usize = 16;
/// Work that is done within this time keeps its place among the answers: the session's thread waits for it.
const INLINE: Duration = Duration::from_millis(20);

#[derive(Clone, Default)]
pub(super) struct Workers {
    queue: Arc<Mutex<Queue>>,
    /// Whether work was started since the last check.
    have_worked: Arc<AtomicBool>,
}

#[derive(Default)]
struct Queue {
    running: usize,
    waiting: VecDeque<(Work, Arc<Slot>)>,
}

impl Threads for Workers {
    fn run(&self, work: Work) -> OutcomeFuture {
        self.have_worked.store(true, Ordering::Relaxed);
        let slot = Arc::new(Slot::default());
        {
            let mut queue = self.queue.lock();
            queue.waiting.retain(|(_, slot)| slot.is_awaited());
            if queue.waiting.len() >= WAITING_MAX {
                return Box::pin(ready(Outcome::Busy));
            }
            queue.waiting.push_back((work, Arc::clone(&slot)));
        }
        self.begin_next();
        match slot.wait(INLINE) {
            Some(outcome) => Box::pin(ready(outcome)),
            None => Box::pin(Done(slot)),
        }
    }
}

impl Workers {
    /// Whether work was begun since the last look, which may have changed something.
    pub(super) fn have_worked(&self) -> bool {
        self.have_worked.swap(false, Ordering::Relaxed)
    }

    /// Starts queued work while threads are free. Cancelled work never starts.
    fn begin_next(&self) {
        let mut queue = self.queue.lock();
        while queue.running < RUNNING_MAX
            && let Some((work, slot)) = queue.waiting.pop_front()
        {
            if !slot.is_awaited() {
                continue;
            }
            queue.running += 1;
            let (own, done) = (self.clone(), Arc::clone(&slot));
            let thread = Builder::new().name("worker".to_owned()).spawn(move || {
                let outcome = guarded(work);
                own.queue.lock().running -= 1;
                done.fill(outcome);
                own.begin_next();
            });
            if let Err(error) = thread {
                tracing::error!("no thread for a call: {error}");
                queue.running -= 1;
                slot.fill(Outcome::Fault);
            }
        }
    }
}

/// Hands an outcome from a worker thread to the future that waits for it.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Slot {
    /// Whether a future still waits for it.
    fn is_awaited(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    fn fill(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        self.filled.notify_one();
        waker.into_iter().for_each(Waker::wake);
    }

    fn wait(&self, patience: Duration) -> Option<Outcome> {
        let mut state = self.state.lock();
        self.filled.wait_while_for(&mut state, |state| state.outcome.is_none(), patience);
        state.outcome.take()
    }
}

/// The outcome, once it is there.
struct Done(Arc<Slot>);

impl Future for Done {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.0.state.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(task.waker().clone());
                Poll::Pending
            }
        }
    }
}
