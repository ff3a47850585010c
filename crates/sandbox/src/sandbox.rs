//! Where programs run: on a thread of this process, or each in a process of its own that has given up all it could do.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::border::{In, Out, Room};
use crate::outcome::{Failure, Kind};
use crate::process::Processes;
use crate::program::Program;
use crate::thread::Threads;
use crate::{process, size, thread};

/// How many programs run at a time; others wait.
const AT_ONCE: usize = 16;
/// So long after a program nothing is done for the next one: who gets the result of this one comes first.
const LULL: Duration = Duration::from_millis(20);
/// How long a thread or a process is kept at least that no program has come for, and no longer than twice that.
const KEPT: Duration = Duration::from_secs(300);

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
pub struct Sandbox(Arc<Shared>);

struct Shared {
    mode: Mode,
    is_ready: bool,
    /// Whether somebody looks after what waits, so that it goes when nothing comes for it.
    is_watched: AtomicBool,
    turns: Arc<Semaphore>,
    threads: Threads,
    processes: Processes,
    /// What a machine does not give is said once.
    is_unbounded: AtomicBool,
}

impl Sandbox {
    /// `program` is our own, whose `main` calls `child::run_if_asked` first.
    pub fn new(mode: Mode, program: PathBuf) -> Self {
        Self::of(mode, program, false)
    }

    /// One where, after the first program, the thread or the process of the next is there before it comes. For who runs many
    /// programs: a process takes longer to start than most programs run.
    pub fn ready(mode: Mode, program: PathBuf) -> Self {
        Self::of(mode, program, true)
    }

    fn of(mode: Mode, program: PathBuf, is_ready: bool) -> Self {
        Self(Arc::new(Shared {
            mode,
            is_ready,
            is_watched: AtomicBool::new(false),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            threads: Threads::new(),
            processes: Processes::new(program),
            is_unbounded: AtomicBool::new(false),
        }))
    }

    /// Whether no program runs, not even one that was told to end and goes on on its thread.
    pub fn is_idle(&self) -> bool {
        self.0.turns.available_permits() == AT_ONCE && self.0.threads.is_idle()
    }

    /// Programs beyond so many wait for their turn, and their time begins with it.
    pub(crate) async fn start(&self, room: Room, program: Program) -> Result<Running, Failure> {
        let Shared { mode, turns, threads, processes, .. } = &*self.0;
        let turn = Arc::clone(turns).acquire_owned().await.ok();
        let place = match mode {
            Mode::Thread => threads.place(),
            Mode::Process => None,
        };
        let at = match place {
            Some(place) => At::Thread(threads.run(place, room, program)?),
            None => At::Process(Box::new(processes.run(room, &program).await?)),
        };
        Ok(Running { at, room, sandbox: Arc::clone(&self.0), turn })
    }
}

impl Shared {
    /// For the next program, which will need what this one needed.
    async fn prepare(sandbox: Weak<Self>, room: Room) {
        tokio::time::sleep(LULL).await;
        let Some(ours) = sandbox.upgrade() else { return };
        let is_new = match ours.mode {
            Mode::Thread => ours.threads.prepare(room),
            Mode::Process => ours.processes.prepare(room).await,
        };
        if !is_new || ours.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        drop(ours);
        loop {
            tokio::time::sleep(KEPT).await;
            let Some(ours) = sandbox.upgrade() else { return };
            // Before it is looked at: whoever gets another one ready after that watches it.
            ours.is_watched.store(false, Ordering::Relaxed);
            let is_none = ours.threads.forget(KEPT) & ours.processes.forget(KEPT);
            if is_none || ours.is_watched.swap(true, Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// A program under way.
pub(crate) struct Running {
    at: At,
    room: Room,
    sandbox: Arc<Shared>,
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

    /// Lets it have what was sent, however busy we are.
    pub(crate) fn flush(&mut self) {
        match &mut self.at {
            At::Thread(_) => {}
            At::Process(process) => process.flush(),
        }
    }

    /// It is over, one way or the other. Nobody waits until it is gone, but for its turn.
    pub(crate) fn end(self) {
        let Self { mut at, room, sandbox, turn } = self;
        if let At::Process(process) = &mut at {
            process.kill();
        }
        let sandbox = sandbox.is_ready.then(|| Arc::downgrade(&sandbox));
        let gone = match at {
            At::Process(process) => Some(process.gone()),
            At::Thread(_) if sandbox.is_none() => return,
            At::Thread(_) => None,
        };
        tokio::spawn(async move {
            if let Some(gone) = gone {
                gone.await;
            }
            drop(turn);
            if let Some(sandbox) = sandbox {
                Shared::prepare(sandbox, room).await;
            }
        });
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
        if !self.sandbox.is_unbounded.swap(true, Ordering::Relaxed) {
            let what = size::line(&what.escape_debug().to_string());
            tracing::warn!("programs of agents run with fewer bounds than they should: {what}");
        }
    }
}
