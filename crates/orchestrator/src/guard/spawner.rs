//! The one thread that starts guards. A guard hears of the end of the thread that started it, so that thread never ends
//! while we live. It starts our own program and nothing else, so that nothing on a disk that does not answer holds it
//! up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;
use std::sync::Mutex;

use rustix::io::Errno;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::task::{self, Task};
use super::{Child, GuardProgram, Guarded, SpawnError, open_files};
use crate::lock;

/// How many may wait for the thread; others wait to wait.
const WAITING: usize = 64;

/// How to reach the thread.
#[derive(Debug, Clone)]
struct Spawner {
    jobs: mpsc::Sender<Job>,
    /// What was allowed before we asked for more.
    open_files: Option<u64>,
}

#[derive(Debug)]
struct Job {
    command: Command,
    /// Whose pipes they will be.
    runtime: Handle,
    /// Where nobody waits any more, the child is dropped, and ends by that.
    reply: oneshot::Sender<io::Result<Child>>,
}

static SPAWNER: Mutex<Option<Spawner>> = Mutex::new(None);

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
    let (reply, child) = oneshot::channel();
    let job = Job { command, runtime: Handle::current(), reply };
    spawner.jobs.send(job).await.map_err(|_| SpawnError::Stopped)?;
    let child = child.await.map_err(|_| SpawnError::Stopped)?;
    child.map_err(|error| failed(program, &task, error))
}

fn failed(guard: &GuardProgram, task: &Task, source: io::Error) -> SpawnError {
    let program = task.program.clone();
    match Errno::from_io_error(&source) {
        Some(Errno::MFILE) => SpawnError::OpenFiles { program, limit: open_files::limit() },
        Some(Errno::TOOBIG) => SpawnError::TooLong { program },
        _ => SpawnError::Guard { program, guard: guard.0.clone(), source },
    }
}

/// The thread is made when it is first needed.
fn spawner() -> io::Result<Spawner> {
    let mut spawner = lock(&SPAWNER);
    if let Some(spawner) = &*spawner {
        return Ok(spawner.clone());
    }
    let (jobs, waiting) = mpsc::channel(WAITING);
    std::thread::Builder::new().name("spawner".to_owned()).spawn(|| serve(waiting))?;
    Ok(spawner.insert(Spawner { jobs, open_files: open_files::raise() }).clone())
}

fn serve(mut waiting: mpsc::Receiver<Job>) {
    while let Some(Job { mut command, runtime, reply }) = waiting.blocking_recv() {
        // A runtime without what is needed panics. With this thread all children would end.
        let started = catch_unwind(AssertUnwindSafe(|| {
            let _runtime = runtime.enter();
            start(&mut command)
        }));
        let child = started.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        // Dropped here where nobody wants it.
        let _ = reply.send(child);
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
