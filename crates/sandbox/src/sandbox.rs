//! Where programs run: on a thread of this process, or each in a process of its own that has given up all it could do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::border::{In, Job, Out};
use crate::outcome::{Failure, Kind};
use crate::thread::GivenUp;
use crate::{process, size, thread};

/// How many programs run at a time; others wait.
const AT_ONCE: usize = 16;
/// How long a thread that was told to end is waited for, before the next program runs elsewhere.
const PATIENCE: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(2);

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
    given_up: Arc<GivenUp>,
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
            given_up: Arc::default(),
            is_unbounded: Arc::default(),
        }
    }

    /// How many programs should have ended and go on, on threads that nobody can end.
    pub fn stuck(&self) -> usize {
        self.given_up.count()
    }

    /// Programs beyond so many wait for their turn, and their time begins with it.
    pub(crate) async fn start(&self, job: Job) -> Result<Running, Failure> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        let is_unbounded = Arc::clone(&self.is_unbounded);
        // A thread cannot be ended. While one goes on that should not, others run where they can be.
        let at = match self.mode {
            Mode::Thread if !self.is_stuck().await => {
                At::Thread(thread::start(job, &self.given_up)?)
            }
            Mode::Thread | Mode::Process => {
                At::Process(Box::new(process::start(&self.program, &job).await?))
            }
        };
        Ok(Running { at, is_unbounded, turn })
    }

    /// One that has just been cancelled needs a moment.
    async fn is_stuck(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.stuck() {
                0 => return false,
                threads if Instant::now() >= until => {
                    tracing::warn!(
                        "{threads} programs go on that should have ended; others run in processes of their own until then"
                    );
                    return true;
                }
                _ => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
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
