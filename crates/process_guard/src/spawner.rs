//! The one thread that starts child processes. The kernel sends a child its death signal when the *thread*
//! that started it ends, so this thread lives as long as our process. It starts our own binary and nothing
//! else, so a disk that does not respond cannot block it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;

use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::task::{self, Task};
use super::{Child, GuardProgram, Guarded, SpawnError, open_files};

/// How many jobs may wait for the thread; other callers wait to enqueue theirs.
const WAITING: usize = 64;

/// How far processes of low priority give way to the server, and so to calls of other principals, when processors are
/// short.
pub(super) const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce() + Send>;

/// A handle of the thread.
#[derive(Debug, Clone)]
struct Spawner {
    jobs: mpsc::Sender<Job>,
    /// The limit of open files before we raised it.
    open_files: Option<u64>,
}

static SPAWNER: Mutex<Option<Spawner>> = Mutex::new(None);
/// The thread for processes of low priority. They inherit it from the first moment, so that even their start gives way.
static BACKGROUND: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);

pub(super) async fn spawn(
    program: &GuardProgram,
    mut task: Task,
    variables: BTreeMap<OsString, OsString>,
) -> Result<Child, SpawnError> {
    let spawner = spawner().map_err(|error| failed(program, &task, error))?;
    task.open_files = spawner.open_files;
    let mut command = Command::new(&program.0);
    command.arg0(task::NAME).arg(task::GUARD).args(task.words());
    command.env_clear().envs(variables);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = on_thread(move || start(&mut command)).await;
    child.map_err(|error| failed(program, &task, error))
}

/// Runs `start` on the spawner thread, in the caller's runtime, which owns the child's pipes. If the caller
/// is gone by then, the child is dropped.
pub(super) async fn on_thread<T: Send + 'static>(
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    run(&spawner()?.jobs, start).await
}

/// The same on the thread of low priority, for processes in our own session.
pub(super) async fn on_background_thread<T: Send + 'static>(
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    run(&background()?, start).await
}

async fn run<T: Send + 'static>(
    jobs: &mpsc::Sender<Job>,
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let runtime = Handle::current();
    let (reply, started) = oneshot::channel();
    let job = move || {
        // What is dropped here, because its caller is gone, needs the runtime too.
        let _runtime = runtime.enter();
        // A runtime without I/O panics here. If this thread ended, all children would.
        let started = catch_unwind(AssertUnwindSafe(start));
        let _ = reply.send(started.unwrap_or_else(|_| Err(io::Error::other("it panicked"))));
    };
    let ended = || io::Error::other("the thread that starts processes has ended");
    jobs.send(Box::new(job)).await.map_err(|_| ended())?;
    started.await.map_err(|_| ended())?
}

fn failed(guard: &GuardProgram, task: &Task, source: io::Error) -> SpawnError {
    let program = task.program.clone();
    match Errno::from_io_error(&source) {
        Some(Errno::MFILE) => SpawnError::OpenFiles { program, limit: open_files::limit() },
        Some(Errno::TOOBIG) => SpawnError::TooLong { program },
        _ => SpawnError::Guard { program, guard: guard.0.clone(), source },
    }
}

/// Starts the thread on first use.
fn spawner() -> io::Result<Spawner> {
    let mut spawner = SPAWNER.lock();
    if let Some(spawner) = &*spawner {
        return Ok(spawner.clone());
    }
    let (jobs, waiting) = mpsc::channel(WAITING);
    std::thread::Builder::new().name("spawner".to_owned()).spawn(|| serve(waiting))?;
    #[cfg(target_os = "linux")]
    {
        super::orphans::spare_present()?;
        // What a guard leaves behind comes to us.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    Ok(spawner.insert(Spawner { jobs, open_files: open_files::raise() }).clone())
}

fn background() -> io::Result<mpsc::Sender<Job>> {
    let mut background = BACKGROUND.lock();
    if let Some(jobs) = &*background {
        return Ok(jobs.clone());
    }
    let (jobs, waiting) = mpsc::channel(WAITING);
    std::thread::Builder::new().name("background".to_owned()).spawn(|| {
        // Linux has a priority for each thread. A system that refuses loses nothing but that.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(NICENESS);
        serve(waiting);
    })?;
    Ok(background.insert(jobs).clone())
}

fn serve(mut waiting: mpsc::Receiver<Job>) {
    while let Some(job) = waiting.blocking_recv() {
        job();
    }
}

fn start(command: &mut Command) -> io::Result<Child> {
    let mut child = command.spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let guarded = Guarded::new(child);
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("it has no pipes"));
    };
    Ok(Child { stdin, stdout, stderr, guarded })
}
