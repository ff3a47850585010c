//! Where programs run: on a thread of this process, or each in a process of its own that has given up all it could do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::border::{In, Job, Out};
use crate::outcome::{Failure, Kind};
use crate::{process, size, thread};

/// How many programs run at a time; others wait.
const AT_ONCE: usize = 16;
/// How many of them on threads; others get processes. A thread cannot be ended, and the system's allocator keeps for itself
/// what a program has filled there: with one, that is little, and whoever has one agent has one program at a time.
const ON_THREADS: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Thread,
    Process,
}

impl Mode {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
        }
    }
}

/// Clones share everything.
#[derive(Clone)]
pub struct Sandbox {
    mode: Mode,
    /// Our own program, which a process of a program's is.
    program: Arc<PathBuf>,
    turns: Arc<Semaphore>,
    threads: Arc<Semaphore>,
    last: Arc<thread::Last>,
    /// What a machine does not give is said once.
    is_unbounded: Arc<AtomicBool>,
}

impl Sandbox {
    /// `program` is our own, whose `main` calls `child::run_if_asked` first.
    pub fn new(mode: Mode, program: PathBuf) -> Self {
        Self {
            mode,
            program: Arc::new(program),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            threads: Arc::new(Semaphore::new(ON_THREADS)),
            last: Arc::default(),
            is_unbounded: Arc::default(),
        }
    }

    /// Whether no program runs, not even one that was told to end and goes on on its thread.
    pub fn is_idle(&self) -> bool {
        let (turns, threads) = (&self.turns, &self.threads);
        turns.available_permits() == AT_ONCE && threads.available_permits() == ON_THREADS
    }

    /// Programs beyond so many wait for their turn, and their time begins with it.
    pub(crate) async fn start(&self, job: Job) -> Result<Running, Failure> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        let is_unbounded = Arc::clone(&self.is_unbounded);
        let thread = match self.mode {
            Mode::Thread => Arc::clone(&self.threads).try_acquire_owned().ok(),
            Mode::Process => None,
        };
        let at = match thread {
            Some(place) => At::Thread(thread::start(job, place, &self.last)?),
            None => At::Process(Box::new(process::start(&self.program, &job).await?)),
        };
        Ok(Running { at, is_unbounded, turn })
    }
}

/// A program under way.
pub(crate) struct Running {
    at: At,
    is_unbounded: Arc<AtomicBool>,
    turn: Option<OwnedSemaphorePermit>,
}

enum At {
    Thread(thread::Running),
    Process(Box<process::Running>),
}

impl Running {
    /// What it says next; none where it has ended without a word.
    pub(crate) async fn next(&mut self) -> Option<Out> {
        match &mut self.at {
            At::Thread(thread) => thread.next().await,
            At::Process(process) => process.next().await,
        }
    }

    /// Whether what it says next is here already: it said more than one thing at once.
    pub(crate) fn has_next(&self) -> bool {
        match &self.at {
            At::Thread(thread) => thread.has_next(),
            At::Process(process) => process.has_next(),
        }
    }

    pub(crate) fn send(&mut self, message: In) {
        match &mut self.at {
            At::Thread(thread) => thread.send(message),
            At::Process(process) => process.send(message),
        }
    }

    /// It is over, one way or the other. Nobody waits until it is gone, but for its turn.
    pub(crate) fn end(self) {
        match self.at {
            At::Thread(thread) => drop(thread),
            At::Process(mut process) => {
                process.kill();
                tokio::spawn(async move {
                    process.gone().await;
                    drop(self.turn);
                });
            }
        }
    }

    /// Why it ended without a word.
    pub(crate) async fn lost(&mut self) -> Failure {
        match &mut self.at {
            At::Thread(_) => {
                Failure::new(Kind::Exception, "the program broke its engine; the log says more")
            }
            At::Process(process) => process.lost().await,
        }
    }

    /// A machine that does not give all bounds is spoken of loudly, once.
    pub(crate) fn note_unbounded(&self, what: &str) {
        if !self.is_unbounded.swap(true, Ordering::Relaxed) {
            let what = size::line(&what.escape_debug().to_string());
            tracing::warn!("programs of agents run with fewer bounds than they should: {what}");
        }
    }
}
