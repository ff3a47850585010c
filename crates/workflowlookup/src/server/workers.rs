//! Calls that take their time. They are carried out on threads of their own, a few at once, and come back
//! through a queue to the thread that speaks with the client. Everything here is bounded.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use mcp::{Outcome, Ticket};

use super::wake::Waker;

/// How many calls are carried out at once.
const RUNNING_MAX: usize = 4;
/// How many more may wait for their turn.
const WAITING_MAX: usize = 16;

/// What came of a call.
pub(crate) enum Carried {
    Now(Outcome),
    Later(Work),
}

pub(crate) type Work = Box<dyn FnOnce() -> Outcome + Send>;

impl From<Outcome> for Carried {
    fn from(outcome: Outcome) -> Self {
        Self::Now(outcome)
    }
}

/// A panic is ours, and ends this call only. The log has it from the hook.
pub(crate) fn guarded<T: From<Outcome>>(work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Outcome::Fault.into())
}

#[derive(Debug)]
pub(crate) struct Workers {
    waker: Waker,
    finished: SyncSender<(Ticket, Outcome)>,
    inbox: Receiver<(Ticket, Outcome)>,
    running: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    ticket: Ticket,
    work: Work,
}

impl Workers {
    pub(crate) fn new(waker: Waker) -> Self {
        // Room for all that run, so that none ever waits to hand in its outcome.
        let (finished, inbox) = sync_channel(RUNNING_MAX);
        Self { waker, finished, inbox, running: 0, waiting: VecDeque::new() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// Begins with it, in its turn.
    pub(crate) fn start(&mut self, ticket: Ticket, work: Work) {
        self.waiting.push_back(Waiting { ticket, work });
        self.go_on();
    }

    /// What has not begun never does. What has begun ends for nobody.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        self.waiting.retain(|waiting| waiting.ticket != ticket);
    }

    /// The next that is done, if one is within this time.
    pub(crate) fn finished(&mut self, patience: Duration) -> Option<(Ticket, Outcome)> {
        if self.is_idle() {
            return None;
        }
        let finished = self.inbox.recv_timeout(patience).ok()?;
        self.running -= 1;
        self.go_on();
        Some(finished)
    }

    fn go_on(&mut self) {
        while self.running < RUNNING_MAX
            && let Some(Waiting { ticket, work }) = self.waiting.pop_front()
        {
            self.running += 1;
            let (finished, waker) = (self.finished.clone(), self.waker.clone());
            let thread = Builder::new().name("worker".to_owned()).spawn(move || {
                let outcome = guarded(work);
                // Nobody listens any more only when the process ends.
                let _ = finished.send((ticket, outcome));
                waker.wake();
            });
            if let Err(error) = thread {
                tracing::error!("no thread for a call: {error}");
                let _ = self.finished.send((ticket, Outcome::Fault));
                self.waker.wake();
            }
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Waiting").field(&self.ticket).finish()
    }
}
