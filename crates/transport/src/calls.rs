//! Calls under way, for both transports. Each is a future that ends in an outcome: one that never waits ends in its first
//! poll, and the others go on together in [`Calls`]. Who takes a call back drops it.

use std::collections::{HashMap, VecDeque};
use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker, ready as ready_or_wait};
use std::thread::Thread;

use futures::future::{AbortHandle, Abortable};
use futures::stream::{FuturesUnordered, Stream as _};
use mcp::{Log, Outcome, Progress, Ticket};
use parking_lot::Mutex;

use crate::limits::PIECES_MAX;

/// What comes of a call.
pub type OutcomeFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Work of a call that takes its time.
pub type Work = Box<dyn FnOnce() -> Outcome + Send>;

/// Carries out work that takes its time, on threads that may wait.
pub trait Threads: Send + Sync {
    /// Begins now, or in its turn. What has not begun never does once this is dropped.
    fn run(&self, work: Work) -> OutcomeFuture;
}

/// What a call under way has to say.
#[derive(Debug)]
pub enum News {
    Progress(Progress),
    Log(Log),
    /// The client may let go for a while, and come back for the rest.
    HangUp,
}

/// What a handler may use besides its call.
#[derive(Clone, Default)]
pub struct Context {
    /// Where it is heard what the call says. Without it, nobody listens.
    inbox: Option<(Ticket, Arc<Inbox>)>,
    /// Without them we are on a thread that may wait.
    threads: Option<Arc<dyn Threads>>,
}

impl Context {
    pub fn progress(&self, progress: Progress) {
        self.tell(News::Progress(progress));
    }

    pub fn log(&self, log: Log) {
        self.tell(News::Log(log));
    }

    /// It will take some time: the client need not wait on the line, where it can come back for the rest.
    pub fn hang_up(&self) {
        self.tell(News::HangUp);
    }

    fn tell(&self, news: News) {
        if let Some((ticket, inbox)) = &self.inbox {
            inbox.push(*ticket, news);
        }
    }

    /// Carries work out on a thread that may wait.
    pub fn run(&self, work: impl FnOnce() -> Outcome + Send + 'static) -> OutcomeFuture {
        match &self.threads {
            Some(threads) => threads.run(Box::new(work)),
            None => Box::pin(ready(guarded(work))),
        }
    }

    /// Carries a whole call out on such a thread.
    pub fn run_call(
        &self,
        call: impl FnOnce(Self) -> OutcomeFuture + Send + 'static,
    ) -> OutcomeFuture {
        let context = Self { inbox: self.inbox.clone(), threads: None };
        self.run(move || block_on(call(context)))
    }

    /// Begins a call on such a thread. What it then waits for is not waited for there.
    pub fn begin_call(
        &self,
        call: impl FnOnce(Self) -> OutcomeFuture + Send + 'static,
    ) -> OutcomeFuture {
        let begun: Arc<Mutex<Option<OutcomeFuture>>> = Arc::default();
        let (slot, context) = (Arc::clone(&begun), self.clone());
        let first = self.run(move || {
            let mut call = call(context);
            match call.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => {
                    *slot.lock() = Some(call);
                    // Nobody hears of it.
                    Outcome::Fault
                }
            }
        });
        Box::pin(async move {
            let outcome = first.await;
            let rest = begun.lock().take();
            match rest {
                Some(rest) => rest.await,
                None => outcome,
            }
        })
    }
}

/// The calls of one connection, or of one request.
pub struct Calls {
    inbox: Arc<Inbox>,
    threads: Arc<dyn Threads>,
    /// Made for the first one that waits: most connections over HTTP have none.
    waiting: Option<FuturesUnordered<Abortable<Waiting>>>,
    aborts: HashMap<Ticket, AbortHandle>,
    ended: VecDeque<(Ticket, Outcome)>,
}

/// What is heard of them.
#[derive(Debug)]
pub enum Event {
    News(Ticket, News),
    Done(Ticket, Outcome),
}

impl Calls {
    pub fn new(threads: Arc<dyn Threads>) -> Self {
        Self {
            inbox: Arc::default(),
            threads,
            waiting: None,
            aborts: HashMap::new(),
            ended: VecDeque::new(),
        }
    }

    /// Begins a call. Its outcome, unless it waits for something.
    pub fn start(
        &mut self,
        ticket: Ticket,
        call: impl FnOnce(Context) -> OutcomeFuture,
    ) -> Option<Outcome> {
        let context = self.context(ticket);
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut call = call(context);
            match call.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
                Poll::Ready(outcome) => Ok(outcome),
                Poll::Pending => Err(call),
            }
        }));
        match begun {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(call)) => {
                self.wait_for(ticket, call);
                None
            }
            // The log has it from the hook.
            Err(_) => Some(Outcome::Fault),
        }
    }

    /// The same on a thread that may wait.
    pub fn start_on_thread(
        &mut self,
        ticket: Ticket,
        call: impl FnOnce(Context) -> OutcomeFuture + Send + 'static,
    ) {
        let call = self.context(ticket).begin_call(call);
        self.wait_for(ticket, call);
    }

    /// Takes a call back.
    pub fn cancel(&mut self, ticket: Ticket) {
        if let Some(abort) = self.aborts.remove(&ticket) {
            abort.abort();
        }
        self.ended.retain(|(ended, _)| *ended != ticket);
    }

    pub fn len(&self) -> usize {
        self.aborts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.aborts.is_empty()
    }

    /// The next that is heard of them. What a call has said comes before its outcome.
    pub fn poll_next(&mut self, task: &mut TaskContext<'_>) -> Poll<Event> {
        if let Some(waiting) = &mut self.waiting {
            while let Poll::Ready(Some(ended)) = Pin::new(&mut *waiting).poll_next(task) {
                if let Ok((ticket, outcome)) = ended {
                    self.ended.push_back((ticket, outcome));
                }
            }
        }
        while let Poll::Ready((ticket, news)) = self.inbox.poll_pop(task) {
            if self.aborts.contains_key(&ticket) {
                return Poll::Ready(Event::News(ticket, news));
            }
        }
        let Some((ticket, outcome)) = self.ended.pop_front() else { return Poll::Pending };
        self.aborts.remove(&ticket);
        Poll::Ready(Event::Done(ticket, outcome))
    }

    pub async fn next(&mut self) -> Event {
        poll_fn(|task| self.poll_next(task)).await
    }

    fn context(&self, ticket: Ticket) -> Context {
        let (inbox, threads) = (Arc::clone(&self.inbox), Arc::clone(&self.threads));
        Context { inbox: Some((ticket, inbox)), threads: Some(threads) }
    }

    fn wait_for(&mut self, ticket: Ticket, call: OutcomeFuture) {
        let (abort, registration) = AbortHandle::new_pair();
        self.aborts.insert(ticket, abort);
        let waiting = self.waiting.get_or_insert_default();
        waiting.push(Abortable::new(Waiting { ticket, call }, registration));
    }
}

/// A call that waits for something.
struct Waiting {
    ticket: Ticket,
    call: OutcomeFuture,
}

impl Future for Waiting {
    type Output = (Ticket, Outcome);

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.call.as_mut().poll(task)));
        let outcome = ready_or_wait!(polled.unwrap_or(Poll::Ready(Outcome::Fault)));
        Poll::Ready((self.ticket, outcome))
    }
}

/// What calls say while they are under way. Who says more than is heard is cut short.
#[derive(Default)]
struct Inbox(Mutex<Pieces>);

#[derive(Default)]
struct Pieces {
    queue: VecDeque<(Ticket, News)>,
    waker: Option<Waker>,
}

impl Inbox {
    fn push(&self, ticket: Ticket, news: News) {
        let mut pieces = self.0.lock();
        if pieces.queue.len() >= PIECES_MAX {
            return;
        }
        pieces.queue.push_back((ticket, news));
        let waker = pieces.waker.take();
        drop(pieces);
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll_pop(&self, task: &TaskContext<'_>) -> Poll<(Ticket, News)> {
        let mut pieces = self.0.lock();
        match pieces.queue.pop_front() {
            Some(piece) => Poll::Ready(piece),
            None => {
                pieces.waker = Some(task.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A panic is ours, and ends this call only. The log has it from the hook.
pub fn guarded(work: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Outcome::Fault)
}

/// Waits for a future on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut task = TaskContext::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut task) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
