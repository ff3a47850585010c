//! A program on a thread of this process. It ends by itself within its time, but for what the engine does in one go: such a
//! thread is given up, and keeps its place until it ends after all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::border::{In, Job, Out};
use crate::engine::{self, Gone, Wire};
use crate::outcome::{Failure, Kind};
use crate::stack;

/// How long one that was told to end may go on without a word of it in the log.
const PATIENCE: Duration = Duration::from_secs(1);

/// The thread of the program before this one.
pub(crate) type Last = Mutex<Option<JoinHandle<()>>>;

pub(crate) struct Running {
    out: UnboundedReceiver<Vec<Out>>,
    /// What it said together.
    heard: std::vec::IntoIter<Out>,
    into: Option<Sender<In>>,
    cancelled: Arc<AtomicBool>,
    /// There as long as its engine is.
    place: Weak<OwnedSemaphorePermit>,
}

struct Channels {
    out: UnboundedSender<Vec<Out>>,
    into: Receiver<In>,
}

pub(crate) fn start(
    job: Job,
    place: OwnedSemaphorePermit,
    last: &Last,
) -> Result<Running, Failure> {
    let stack = stack::bytes(&job)?;
    let place = Arc::new(place);
    let (out, said) = unbounded_channel();
    let (into, received) = channel();
    let cancelled = Arc::new(AtomicBool::new(false));
    let running = Running {
        out: said,
        heard: Vec::new().into_iter(),
        into: Some(into),
        cancelled: Arc::clone(&cancelled),
        place: Arc::downgrade(&place),
    };
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = last.take() {
        // Its engine is gone, and all that it still does is to end. What it had of the allocator is there for this one only then.
        let _ = before.join();
    }
    let thread = Builder::new().name("program".to_owned()).stack_size(stack);
    let started = thread.spawn(move || {
        // A panic of the engine's lets go of it first, too.
        let place = place;
        let wire = Box::new(Channels { out: out.clone(), into: received });
        let ended = engine::run(job, wire, cancelled);
        // Whoever hears that it has ended finds its place free.
        drop(place);
        // Nobody listens where it was given up.
        let _ = out.send(vec![Out::Done(ended)]);
    });
    let started = started.map_err(|error| {
        Failure::new(Kind::Memory, format!("there is no thread for the program: {error}"))
    })?;
    *last = Some(started);
    Ok(running)
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
        if let Some(into) = &self.into {
            // It may have ended.
            let _ = into.send(message);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        // Whoever waits for an answer hears that none will come.
        self.into = None;
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
        self.out.send(std::mem::take(out)).map_err(|_| Gone)
    }

    fn receive(&mut self, until: Option<Instant>) -> Result<Option<In>, Gone> {
        let Some(until) = until else { return self.into.recv().map(Some).map_err(|_| Gone) };
        match self.into.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }
}
