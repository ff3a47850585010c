//! A program on a thread of this process, which one has at a time. It ends by itself within its time, but for what the engine does
//! in one go: such a thread is given up, and keeps its place until it ends after all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{OwnedPermit, Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::border::{In, Out, Room};
use crate::engine::{Engine, Fresh, Gone, Wire};
use crate::limits::Limits;
use crate::outcome::{Failure, Kind};
use crate::program::Program;
use inbox::Inbox;

mod inbox;

/// How many batches of what a program says may wait to be heard, beside its last word. Then its thread waits until one is
/// taken, or until nobody listens any more, as at the latest when its time is up.
const BATCHES_MAX: usize = 64;
/// A program waits for one module at a time.
const MODULES_AT_ONCE: usize = 1;
/// How long one that was told to end may go on without a word of it in the log.
const PATIENCE: Duration = Duration::from_secs(1);

/// The thread for programs. There is one: a thread cannot be ended, and the system's allocator keeps for itself what a program
/// has filled there. With one, that is little, and whoever has one agent has one program at a time.
pub(crate) struct Threads {
    place: Arc<Semaphore>,
    ours: Mutex<Ours>,
}

/// At most one of them is there at a time.
#[derive(Default)]
struct Ours {
    /// The thread of the program before.
    last: Option<JoinHandle<()>>,
    /// One for the next program.
    waiting: Option<Waiting>,
}

/// A thread that has no program yet.
struct Waiting {
    room: Room,
    since: Instant,
    given: SyncSender<Given>,
    thread: JoinHandle<()>,
}

/// What a thread is given.
struct Given {
    program: Program,
    wire: Channels,
    /// For its last word. Not of its own memory, for the same reason as that word.
    last: Vec<Out>,
    /// A place for it, whatever else waits to be heard.
    last_place: OwnedPermit<Vec<Out>>,
    cancelled: Arc<AtomicBool>,
    place: Arc<OwnedSemaphorePermit>,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self { place: Arc::new(Semaphore::new(1)), ours: Mutex::default() }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.place.available_permits() == 1
    }

    /// The right to the thread, unless a program has it.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.place).try_acquire_owned().ok()
    }

    pub(crate) fn run(
        &self,
        place: OwnedSemaphorePermit,
        room: Room,
        program: Program,
    ) -> Result<Running, Failure> {
        let place = Arc::new(place);
        let (out, said) = channel(BATCHES_MAX + 1);
        let last_place = out.clone().try_reserve_owned().map_err(|_| {
            Failure::new(Kind::Exception, "there is no place for what the program comes to")
        })?;
        let inbox = Arc::new(Inbox::new(inbox_max(&room.limits)));
        let cancelled = Arc::new(AtomicBool::new(false));
        let running = Running {
            out: said,
            heard: Vec::new().into_iter(),
            inbox: Arc::clone(&inbox),
            cancelled: Arc::clone(&cancelled),
            place: Arc::downgrade(&place),
        };
        let wire = Channels { out, inbox };
        let last = Vec::with_capacity(1);
        let given = Given { program, wire, last, last_place, cancelled, place };
        let mut ours = self.ours();
        let waiting = match ours.waiting.take_if(|waiting| waiting.room.does_for(&room)) {
            Some(waiting) => waiting,
            None => ours.start(room)?,
        };
        // It waits for nothing else, and there is room for one.
        let _ = waiting.given.send(given);
        ours.last = Some(waiting.thread);
        Ok(running)
    }

    /// Gets the thread of the next program ready; whether it was not.
    pub(crate) fn prepare(&self, room: Room) -> bool {
        // A program that comes meanwhile waits here for a moment, and finds it.
        let mut ours = self.ours();
        // Where a program has it, that one's end will do it.
        if !self.is_idle() {
            return false;
        }
        if ours.waiting.as_ref().is_some_and(|waiting| waiting.room.does_for(&room)) {
            return false;
        }
        ours.waiting = ours.start(room).ok();
        ours.waiting.is_some()
    }

    /// Lets go of one that nothing has come for in this long; whether there is none any more.
    pub(crate) fn forget(&self, after: Duration) -> bool {
        let mut ours = self.ours();
        if let Some(old) = ours.waiting.take_if(|waiting| waiting.since.elapsed() >= after) {
            // All it still does is to end, and the next one waits for that.
            ours.last = Some(old.thread);
        }
        ours.waiting.is_none()
    }

    fn ours(&self) -> MutexGuard<'_, Ours> {
        self.ours.lock()
    }
}

impl Ours {
    fn start(&mut self, room: Room) -> Result<Waiting, Failure> {
        // All that either still does is to end. What it had of the allocator is there for this one only then.
        let unused = self.waiting.take().map(|waiting| waiting.thread);
        for thread in [unused, self.last.take()].into_iter().flatten() {
            let _ = thread.join();
        }
        let (given, receiver) = sync_channel::<Given>(1);
        let thread = Builder::new().name("program".to_owned()).stack_size(room.stack);
        let thread = thread.spawn(move || {
            let fresh = Fresh::new();
            // Nobody has a program for it.
            let Ok(given) = receiver.recv() else { return };
            let Given { program, wire, mut last, last_place, cancelled, place } = given;
            // A panic of the engine's lets go of it first, too.
            let place = place;
            let engine = Engine::new(fresh, program, room.limits, Box::new(wire), cancelled);
            let ended = engine.and_then(|engine| engine.run());
            // What others get was made when the engine was gone: if it stood behind all that the program has filled, the
            // allocator would keep that as well.
            last.push(Out::Done(ended.clone()));
            drop(ended);
            // Whoever hears that it has ended finds its place free.
            drop(place);
            // Nobody listens where it was given up.
            last_place.send(last);
        });
        let thread = thread.map_err(|error| {
            Failure::new(Kind::Memory, format!("there is no thread for the program: {error}"))
        })?;
        Ok(Waiting { room, since: Instant::now(), given, thread })
    }
}

/// A program is answered once for each call, and cannot make more calls than its limit.
fn inbox_max(limits: &Limits) -> usize {
    limits.calls.saturating_add(MODULES_AT_ONCE)
}

pub(crate) struct Running {
    out: Receiver<Vec<Out>>,
    /// What it said together.
    heard: std::vec::IntoIter<Out>,
    inbox: Arc<Inbox>,
    cancelled: Arc<AtomicBool>,
    /// There as long as its engine is.
    place: Weak<OwnedSemaphorePermit>,
}

struct Channels {
    out: Sender<Vec<Out>>,
    inbox: Arc<Inbox>,
}

impl Running {
    pub(crate) async fn next(&mut self) -> Option<Out> {
        loop {
            if let Some(out) = self.heard.next() {
                return Some(out);
            }
            self.heard = self.out.recv().await?.into_iter();
        }
    }

    pub(crate) fn has_next(&self) -> bool {
        !self.heard.as_slice().is_empty()
    }

    pub(crate) fn send(&mut self, message: In) {
        if self.inbox.push(message).is_err() {
            tracing::error!("a program was answered more often than it has asked");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        // Whoever waits for an answer hears that none will come.
        self.inbox.close();
        let Ok(runtime) = Handle::try_current() else { return };
        if self.place.strong_count() == 0 {
            return;
        }
        let place = Weak::clone(&self.place);
        runtime.spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            if place.strong_count() > 0 {
                tracing::warn!(
                    "a program was told to end and goes on; others get processes until it ends"
                );
            }
        });
    }
}

impl Wire for Channels {
    fn send(&mut self, out: &mut Vec<Out>) -> Result<(), Gone> {
        match self.out.try_send(std::mem::take(out)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(out)) => self.out.blocking_send(out).map_err(|_| Gone),
            Err(TrySendError::Closed(_)) => Err(Gone),
        }
    }

    fn receive(&mut self, until: Option<Instant>) -> Result<Option<In>, Gone> {
        self.inbox.receive(until)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn a_thread_that_nobody_needs_goes() {
        let threads = Threads::new();
        let (limits, stack) = (Limits::default(), 16 * 1024 * 1024);
        let room =
            Room { limits, stack, is_confinement_required: false, has_lowest_priority: false };
        assert!(threads.prepare(room) && !threads.prepare(room), "there is one");
        assert!(!threads.forget(Duration::from_secs(60)), "it is new");
        assert!(threads.forget(Duration::ZERO));
        // It ends by itself.
        threads.ours().last.take().unwrap().join().unwrap();
        assert!(threads.prepare(room), "another one can be there");
    }

    /// A program with a thread of its own, and what it says.
    fn start(code: &str, limits: Limits) -> Running {
        let threads = Threads::new();
        let room = Room {
            limits,
            stack: 16 * 1024 * 1024,
            is_confinement_required: false,
            has_lowest_priority: false,
        };
        threads.run(threads.place().unwrap(), room, Program::of(code)).unwrap()
    }

    #[tokio::test]
    async fn output_that_is_not_read_stops_program_and_outcome_arrives() {
        let lines = 20_000;
        let limits = Limits { lines, time: Duration::from_secs(600), ..Limits::default() };
        let code = format!("for (let n = 0; n < {lines}; n++) console.log(n); 'done'");
        let mut running = start(&code, limits);
        while running.out.len() < BATCHES_MAX {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(running.out.len(), BATCHES_MAX, "it waits to be heard");
        let mut heard = 0;
        let ended = loop {
            match running.next().await.unwrap() {
                Out::Line(line) => {
                    assert_eq!(line, heard.to_string());
                    heard += 1;
                }
                Out::Done(ended) => break ended,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((heard, ended.unwrap().unwrap().get()), (lines, "\"done\""));
    }

    #[tokio::test]
    async fn program_that_waits_to_be_heard_ends_if_nobody_listens() {
        let limits = Limits { lines: 20_000, time: Duration::from_secs(600), ..Limits::default() };
        let running = start("for (let n = 0; n < 20_000; n++) console.log(n);", limits);
        while running.out.len() < BATCHES_MAX {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let place = Weak::clone(&running.place);
        drop(running);
        while place.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// A full queue of batches has a place for the last word.
    #[test]
    fn outcome_has_a_reserved_place() {
        let (out, mut said) = channel::<Vec<Out>>(BATCHES_MAX + 1);
        let last = out.clone().try_reserve_owned().unwrap();
        while out.try_send(Vec::new()).is_ok() {}
        assert_eq!(said.len(), BATCHES_MAX);
        last.send(vec![Out::Done(Ok(None))]);
        let last = std::iter::from_fn(|| said.try_recv().ok()).last().unwrap();
        assert!(matches!(last.as_slice(), [Out::Done(Ok(None))]));
    }
}
