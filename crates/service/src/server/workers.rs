//! Calls that take their time. Some are carried out on threads of their own, a few at once; others are begun here
//! and finished by somebody else, as a store is when it has written. All come back through a queue to the
//! thread that speaks with the client. Everything here is bounded.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use mcp::{Begin, Finish, News, Outcome, Ticket, Withdrawal, Work, guarded};

use super::wake::Waker;

/// How many calls are carried out at once.
const RUNNING_MAX: usize = 4;
/// How many more may wait for their turn.
const WAITING_MAX: usize = 16;

/// How many calls may be under way that need no thread, because somebody else tells when they are done.
const TOLD_MAX: usize = 256;
/// How much of how they go may wait to be told. The rest is not.
const NEWS_MAX: usize = 256;

/// What has come back, and from where.
struct Finished {
    ticket: Ticket,
    news: News,
    was_thread: bool,
}

#[derive(Debug)]
pub(crate) struct Workers {
    waker: Waker,
    finished: SyncSender<Finished>,
    inbox: Receiver<Finished>,
    running: usize,
    told: HashMap<Ticket, Withdrawal>,
    /// Taken back, and not over yet.
    withdrawn: usize,
    /// What waits to be told besides outcomes.
    news: Arc<AtomicUsize>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    ticket: Ticket,
    work: Work,
}

impl Workers {
    pub(crate) fn new(waker: Waker) -> Self {
        // Room for all that are under way, so that none ever waits to hand in its outcome.
        let (finished, inbox) = sync_channel(RUNNING_MAX + TOLD_MAX + NEWS_MAX);
        Self {
            waker,
            finished,
            inbox,
            running: 0,
            told: HashMap::new(),
            withdrawn: 0,
            news: Arc::default(),
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.told.len() + self.withdrawn >= TOLD_MAX
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running == 0 && self.told.is_empty() && self.withdrawn == 0
    }

    /// Begins what is finished elsewhere.
    pub(crate) fn begin(&mut self, ticket: Ticket, begin: Begin) {
        let (finished, waker) = (self.finished.clone(), self.waker.clone());
        let waiting = Arc::clone(&self.news);
        let finish = Finish::new(move |news| {
            let is_done = matches!(news, News::Done(_));
            if !is_done && waiting.fetch_add(1, Ordering::Relaxed) >= NEWS_MAX {
                waiting.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            // There is room. Nobody listens any more only when the process ends.
            let _ = finished.send(Finished { ticket, news, was_thread: false });
            waker.wake();
        });
        self.told.insert(ticket, finish.withdrawal());
        // A panic drops it, which says so.
        let _ = catch_unwind(AssertUnwindSafe(|| begin(finish)));
    }

    /// Begins with it, in its turn.
    pub(crate) fn start(&mut self, ticket: Ticket, work: Work) {
        self.waiting.push_back(Waiting { ticket, work });
        self.go_on();
    }

    /// What has not begun never does. What has begun ends for nobody, and is told so where it listens.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        self.waiting.retain(|waiting| waiting.ticket != ticket);
        if let Some(withdrawal) = self.told.remove(&ticket) {
            self.withdrawn += 1;
            withdrawal.withdraw();
        }
    }

    /// The next that has something to say, if one has within this time.
    pub(crate) fn finished(&mut self, patience: Duration) -> Option<(Ticket, News)> {
        if self.is_idle() {
            return None;
        }
        let Finished { ticket, news, was_thread } = self.inbox.recv_timeout(patience).ok()?;
        if was_thread {
            self.running -= 1;
            self.go_on();
        } else if !matches!(news, News::Done(_)) {
            self.news.fetch_sub(1, Ordering::Relaxed);
        } else if self.told.remove(&ticket).is_none() {
            self.withdrawn -= 1;
        }
        Some((ticket, news))
    }

    fn go_on(&mut self) {
        while self.running < RUNNING_MAX
            && let Some(Waiting { ticket, work }) = self.waiting.pop_front()
        {
            self.running += 1;
            let (finished, waker) = (self.finished.clone(), self.waker.clone());
            let thread = Builder::new().name("worker".to_owned()).spawn(move || {
                let news = News::Done(guarded(work).into());
                // Nobody listens any more only when the process ends.
                let _ = finished.send(Finished { ticket, news, was_thread: true });
                waker.wake();
            });
            if let Err(error) = thread {
                tracing::error!("no thread for a call: {error}");
                let news = News::Done(Outcome::Fault.into());
                let _ = self.finished.send(Finished { ticket, news, was_thread: true });
                self.waker.wake();
            }
        }
    }
}

impl std::fmt::Debug for Finished {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Finished").field(&self.ticket).finish()
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Waiting").field(&self.ticket).finish()
    }
}
