//! Calls in flight, for both transports. Each is a future that resolves to an outcome: a call that never waits resolves in
//! its first poll, and the others are kept in [`Calls`]. Cancelling a call drops its future.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker, ready as ready_or_wait};
use std::thread::Thread;

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

/// What a handler reports before its outcome.
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
    /// Receives what the call reports. Without it, reports are discarded.
    queue: Option<(Ticket, Arc<Queue>)>,
    /// None on a thread that may block.
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
        if let Some((ticket, queue)) = &self.queue {
            queue.push(Item::News(*ticket, news));
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
        let context = Self { queue: self.queue.clone(), threads: None };
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
                    // Discarded: the outcome is that of the rest.
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
    queue: Arc<Queue>,
    threads: Arc<dyn Threads>,
    in_flight: HashMap<Ticket, UnderWay>,
}

/// An event of one of the calls.
#[derive(Debug)]
pub enum Event {
    News(Ticket, News),
    Done(Ticket, Outcome),
}

struct UnderWay {
    /// None once it has resolved, until its outcome is delivered.
    call: Option<OutcomeFuture>,
    waker: Arc<CallWaker>,
}

impl Calls {
    pub fn new(threads: Arc<dyn Threads>) -> Self {
        Self { queue: Arc::default(), threads, in_flight: HashMap::new() }
    }

    /// Begins a call. Its outcome, unless it waits for something or has more to say.
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
            Ok(Ok(outcome)) if !self.queue.has_news_of(ticket) => Some(outcome),
            Ok(Ok(outcome)) => {
                self.add(ticket, None);
                self.queue.push(Item::Done(ticket, outcome));
                None
            }
            Ok(Err(call)) => {
                self.add(ticket, Some(call));
                // Registers its waker.
                self.poll_call(ticket);
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
        self.add(ticket, Some(call));
        self.poll_call(ticket);
    }

    /// Cancels a call by dropping it.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.in_flight.remove(&ticket);
    }

    pub fn len(&self) -> usize {
        self.in_flight.len()
    }

    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The next event, in order of arrival. If there is none, the task is woken for it.
    pub fn poll_next(&mut self, task: &TaskContext<'_>) -> Poll<Event> {
        loop {
            let event = match ready_or_wait!(self.queue.poll_pop(task)) {
                Item::Woken(ticket) => {
                    self.poll_call(ticket);
                    continue;
                }
                Item::News(ticket, news) => Event::News(ticket, news),
                Item::Done(ticket, outcome) => Event::Done(ticket, outcome),
            };
            let is_wanted = match &event {
                Event::News(ticket, _) => self.in_flight.contains_key(ticket),
                Event::Done(ticket, _) => self.in_flight.remove(ticket).is_some(),
            };
            if is_wanted {
                return Poll::Ready(event);
            }
        }
    }

    fn context(&self, ticket: Ticket) -> Context {
        let (queue, threads) = (Arc::clone(&self.queue), Arc::clone(&self.threads));
        Context { queue: Some((ticket, queue)), threads: Some(threads) }
    }

    fn add(&mut self, ticket: Ticket, call: Option<OutcomeFuture>) {
        let (queue, is_woken) = (Arc::clone(&self.queue), AtomicBool::new(false));
        let waker = Arc::new(CallWaker { ticket, queue, is_woken });
        self.in_flight.insert(ticket, UnderWay { call, waker });
    }

    fn poll_call(&mut self, ticket: Ticket) {
        let Some(UnderWay { call, waker }) = self.in_flight.get_mut(&ticket) else { return };
        let Some(polled) = call else { return };
        waker.is_woken.store(false, Ordering::Release);
        let task_waker = Waker::from(Arc::clone(waker));
        let mut task = TaskContext::from_waker(&task_waker);
        let polled = catch_unwind(AssertUnwindSafe(|| polled.as_mut().poll(&mut task)));
        if let Poll::Ready(outcome) = polled.unwrap_or(Poll::Ready(Outcome::Fault)) {
            *call = None;
            // After everything that the call reported.
            self.queue.push(Item::Done(ticket, outcome));
        }
    }
}

/// Queues a call to be polled.
struct CallWaker {
    ticket: Ticket,
    queue: Arc<Queue>,
    is_woken: AtomicBool,
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.queue.push(Item::Woken(self.ticket));
        }
    }
}

/// Undelivered events of all calls, in order of arrival.
#[derive(Default)]
struct Queue(Mutex<Items>);

#[derive(Default)]
struct Items {
    items: VecDeque<Item>,
    /// How many of them are news, which are dropped above a limit. Of the others, each call has at most one.
    news: usize,
    waker: Option<Waker>,
}

enum Item {
    /// The call can go on.
    Woken(Ticket),
    News(Ticket, News),
    Done(Ticket, Outcome),
}

impl Queue {
    fn push(&self, item: Item) {
        let mut items = self.0.lock();
        if matches!(item, Item::News(..)) {
            if items.news >= PIECES_MAX {
                return;
            }
            items.news += 1;
        }
        items.items.push_back(item);
        let waker = items.waker.take();
        drop(items);
        waker.into_iter().for_each(Waker::wake);
    }

    fn poll_pop(&self, task: &TaskContext<'_>) -> Poll<Item> {
        let mut items = self.0.lock();
        let Some(item) = items.items.pop_front() else {
            items.waker = Some(task.waker().clone());
            return Poll::Pending;
        };
        items.news -= usize::from(matches!(item, Item::News(..)));
        Poll::Ready(item)
    }

    fn has_news_of(&self, ticket: Ticket) -> bool {
        let is_of = |item: &Item| matches!(item, Item::News(of, _) if *of == ticket);
        self.0.lock().items.iter().any(is_of)
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::future::pending;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;

    /// Threads that work at once.
    struct AtOnce;

    impl Threads for AtOnce {
        fn run(&self, work: Work) -> OutcomeFuture {
            Box::pin(ready(guarded(work)))
        }
    }

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The calls of a connection whose task is woken so often.
    struct Connection {
        calls: Calls,
        woken: Arc<Woken>,
    }

    impl Connection {
        fn new() -> Self {
            Self { calls: Calls::new(Arc::new(AtOnce)), woken: Arc::default() }
        }

        fn next(&mut self) -> Option<String> {
            let waker = Waker::from(Arc::clone(&self.woken));
            match self.calls.poll_next(&TaskContext::from_waker(&waker)) {
                Poll::Ready(Event::News(_, News::Progress(progress))) => {
                    Some(progress.done.to_string())
                }
                Poll::Ready(Event::News(..)) => Some("news".to_owned()),
                Poll::Ready(Event::Done(_, outcome)) => Some(text(&outcome)),
                Poll::Pending => None,
            }
        }

        fn all(&mut self) -> Vec<String> {
            std::iter::from_fn(|| self.next()).collect()
        }
    }

    fn text(outcome: &Outcome) -> String {
        match outcome {
            Outcome::BadParams(text) => text.clone(),
            outcome => format!("{outcome:?}"),
        }
    }

    fn said(text: &str) -> Outcome {
        Outcome::BadParams(text.to_owned())
    }

    fn progress(context: &Context, done: f64) {
        context.progress(Progress { done, total: None, message: None });
    }

    fn ticket(number: u64) -> Ticket {
        Ticket(number)
    }

    #[test]
    fn call_that_never_waits_ends_where_it_began() {
        let mut it = Connection::new();
        let outcome = it.calls.start(ticket(1), |_| Box::pin(async { said("at once") }));
        assert_eq!(text(&outcome.unwrap()), "at once");
        assert!(it.calls.is_empty());
        let outcome = it.calls.start(ticket(2), |_| panic!("the handler is broken"));
        assert!(matches!(outcome, Some(Outcome::Fault)));
    }

    #[test]
    fn call_goes_on_when_what_it_waits_for_is_there() {
        let mut it = Connection::new();
        assert_eq!(it.next(), None);
        let (sender, receiver) = oneshot::channel();
        let waits = async move { receiver.await.unwrap_or(Outcome::Fault) };
        assert!(it.calls.start(ticket(1), |_| Box::pin(waits)).is_none());
        assert_eq!((it.next(), it.calls.len()), (None, 1));
        sender.send(said("here")).unwrap();
        assert_eq!(it.woken.0.load(Ordering::SeqCst), 1, "without being polled in between");
        assert_eq!(it.all(), ["here"]);
        assert!(it.calls.is_empty());
    }

    #[test]
    fn what_a_call_says_comes_before_its_outcome() {
        let mut it = Connection::new();
        let (sender, receiver) = oneshot::channel::<()>();
        let call = |context: Context| -> OutcomeFuture {
            Box::pin(async move {
                progress(&context, 1.0);
                let _ = receiver.await;
                progress(&context, 2.0);
                said("done")
            })
        };
        assert!(it.calls.start(ticket(1), call).is_none());
        sender.send(()).unwrap();
        assert_eq!(it.all(), ["1", "2", "done"]);
        // Also where it never waits.
        let call = |context: Context| -> OutcomeFuture {
            progress(&context, 3.0);
            Box::pin(ready(said("at once")))
        };
        assert!(it.calls.start(ticket(2), call).is_none());
        assert_eq!(it.all(), ["3", "at once"]);
    }

    #[test]
    fn call_that_is_taken_back_is_dropped_at_once_and_not_heard() {
        let mut it = Connection::new();
        let (sender, mut receiver) = oneshot::channel::<()>();
        let call = |context: Context| -> OutcomeFuture {
            progress(&context, 1.0);
            Box::pin(async move {
                let _held = sender;
                pending().await
            })
        };
        assert!(it.calls.start(ticket(1), call).is_none());
        assert!(matches!(receiver.try_recv(), Err(oneshot::error::TryRecvError::Empty)));
        it.calls.cancel(ticket(1));
        assert!(matches!(receiver.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
        assert!(it.all().is_empty() && it.calls.is_empty());
    }

    #[test]
    fn panic_after_a_wait_is_a_fault() {
        let mut it = Connection::new();
        let (sender, receiver) = oneshot::channel::<()>();
        let call = async move {
            let _ = receiver.await;
            panic!("the handler is broken")
        };
        assert!(it.calls.start(ticket(1), |_| Box::pin(call)).is_none());
        drop(sender);
        assert_eq!(it.all(), ["Fault"]);
    }

    #[test]
    fn outcomes_arrive_when_progress_fills_the_queue() {
        let mut it = Connection::new();
        let call = |context: Context| -> OutcomeFuture {
            Box::pin(async move {
                (0..2 * PIECES_MAX).for_each(|_| progress(&context, 1.0));
                said("done")
            })
        };
        assert!(it.calls.start(ticket(1), call).is_none());
        let heard = it.all();
        assert_eq!((heard.len(), heard.last().map(String::as_str)), (PIECES_MAX + 1, Some("done")));
    }

    #[test]
    fn call_that_begins_on_a_thread_goes_on_without_it() {
        let mut it = Connection::new();
        let (sender, receiver) = oneshot::channel();
        it.calls.start_on_thread(ticket(1), |_| {
            Box::pin(async move { receiver.await.unwrap_or(Outcome::Fault) })
        });
        assert_eq!(it.next(), None);
        sender.send(said("here")).unwrap();
        assert_eq!(it.all(), ["here"]);
    }
}
