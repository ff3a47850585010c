//! Where programs run: on a thread of this process, or each in a process of its own that has given up all it could do.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use fair_semaphore::{FairSemaphore, Owner, Permit};

use crate::border::{In, Out, Room};
use crate::limits::Limits;
use crate::outcome::{Failure, Kind};
use crate::process::Processes;
use crate::program::Program;
use crate::thread::Threads;
use crate::{process, size, thread};

/// How many programs run at a time; others wait.
const AT_ONCE: usize = 16;
/// How many programs of the local user may wait.
const WAITING_MAX: usize = 256;
/// So long after a program nothing is done for the next one: who gets the result of this one comes first.
const LULL: Duration = Duration::from_millis(20);
/// How long a thread or a process is kept at least that no program has come for, and no longer than twice that.
const KEPT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// On a thread of this process, which the system does not confine. A program that finds the thread
    /// taken gets an `UnconfinedProcess`.
    Thread,
    /// In a process that the system confines. If it cannot, programs are refused.
    Process,
    /// In a process that the system confines as far as it can.
    UnconfinedProcess,
}

impl Mode {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process | Self::UnconfinedProcess => "process",
        }
    }
}

/// Clones share everything.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
    /// Whose programs run, and how many of them may wait for their turn.
    owner: Owner,
    waiting_max: usize,
}

struct Shared {
    mode: Mode,
    is_ready: bool,
    /// Whether somebody looks after what waits, so that it goes when nothing comes for it.
    is_watched: AtomicBool,
    turns: FairSemaphore,
    threads: Threads,
    processes: Processes,
    /// Whether the log has told what protections the system lacks.
    has_told_gaps: AtomicBool,
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
        let shared = Arc::new(Shared {
            mode,
            is_ready,
            is_watched: AtomicBool::new(false),
            turns: FairSemaphore::new(AT_ONCE),
            threads: Threads::new(),
            processes: Processes::new(program),
            has_told_gaps: AtomicBool::new(false),
        });
        Self { shared, owner: None, waiting_max: WAITING_MAX }
    }

    /// The same sandbox for the programs of one principal, who shares its slots fairly with others.
    pub fn with_owner(&self, owner: Owner, waiting_max: usize) -> Self {
        Self { shared: Arc::clone(&self.shared), owner, waiting_max }
    }

    /// Whether no program runs, not even one that was told to end and goes on on its thread.
    pub fn is_idle(&self) -> bool {
        self.shared.turns.is_idle() && self.shared.threads.is_idle()
    }

    pub(crate) fn room(&self, limits: Limits, stack: usize) -> Room {
        Room {
            limits,
            stack,
            is_confinement_required: self.shared.mode == Mode::Process,
            // Calls of other principals come before programs; the local user wants both.
            has_lowest_priority: self.owner.is_some(),
        }
    }

    /// Programs beyond so many wait for their turn, and their time begins with it.
    pub(crate) async fn start(&self, room: Room, program: Program) -> Result<Running, Failure> {
        let Shared { mode, turns, threads, processes, .. } = &*self.shared;
        let turn = turns.acquire(self.owner.clone(), self.waiting_max).await.map_err(|_| {
            let message = "too many of your programs wait already; try again when one has ended";
            Failure::new(Kind::Busy, message)
        })?;
        let place = match mode {
            Mode::Thread => threads.place(),
            Mode::Process | Mode::UnconfinedProcess => None,
        };
        let at = match place {
            Some(place) => At::Thread(threads.run(place, room, program)?),
            None => At::Process(Box::new(processes.run(room, &program).await?)),
        };
        Ok(Running { at, room, sandbox: Arc::clone(&self.shared), turn })
    }
}

impl Shared {
    /// For the next program, which will need what this one needed.
    async fn prepare(sandbox: Weak<Self>, room: Room) {
        tokio::time::sleep(LULL).await;
        let Some(ours) = sandbox.upgrade() else { return };
        let is_new = match ours.mode {
            Mode::Thread => ours.threads.prepare(room),
            Mode::Process | Mode::UnconfinedProcess => ours.processes.prepare(room).await,
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
    turn: Permit,
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

    /// Warns once about what the system lacks.
    pub(crate) fn note_unprotected(&self, missing: &str) {
        if !self.sandbox.has_told_gaps.swap(true, Ordering::Relaxed) {
            let missing = size::line(&missing.escape_debug().to_string());
            tracing::warn!(%missing, "the sandbox has fewer protections than it should");
        }
    }
}
