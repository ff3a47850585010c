//! What is under way for a program: imports that are looked up, calls that are made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::border::{Answer, Thrown};
use crate::host::{Call, Clock, Host, Module};
use crate::outcome::Kind;

/// How long a call may take to end after it is cancelled, before nobody listens to it any more.
const ENDING: Duration = Duration::from_secs(2);

pub(super) struct Doing {
    host: Arc<dyn Host>,
    tasks: JoinSet<Done>,
    /// What is said where one of them breaks.
    broken: HashMap<Id, Done>,
    /// Who may be called at the same time.
    turns: Arc<Semaphore>,
    cancelled: CancellationToken,
    /// What is under way ends with the program.
    _ending: DropGuard,
}

/// A call that a program wants to be made.
pub(super) struct Wanted {
    pub(super) module: String,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) arguments: Box<RawValue>,
}

/// Something that was done.
pub(super) enum Done {
    Import { specifier: String, module: Result<Module, String> },
    Call { at: usize, answer: Answer, took: Duration },
}

impl Doing {
    pub(super) fn new(host: Arc<dyn Host>, at_once: usize, cancelled: &CancellationToken) -> Self {
        let cancelled = cancelled.child_token();
        Self {
            host,
            tasks: JoinSet::new(),
            broken: HashMap::new(),
            turns: Arc::new(Semaphore::new(at_once.max(1))),
            _ending: cancelled.clone().drop_guard(),
            cancelled,
        }
    }

    pub(super) fn import(&mut self, specifier: String) {
        let broken = Done::Import {
            specifier: specifier.clone(),
            module: Err(format!("looking for `{specifier}` failed; the log says more")),
        };
        let host = Arc::clone(&self.host);
        let task = self.tasks.spawn(async move {
            let module = host.module(&specifier).await;
            Done::Import { specifier, module }
        });
        self.broken.insert(task.id(), broken);
    }

    pub(super) fn call(&mut self, at: usize, wanted: Wanted, clock: Clock) {
        let Wanted { module, server, tool, arguments } = wanted;
        let message = format!("calling `{tool}` failed; the log says more");
        let thrown = Thrown { kind: Kind::Tool, message, data: None };
        let broken = Done::Call { at, answer: Err(thrown), took: Duration::ZERO };
        let (host, turns) = (Arc::clone(&self.host), Arc::clone(&self.turns));
        let cancelled = self.cancelled.clone();
        let task = self.tasks.spawn(async move {
            // It is never closed.
            let _turn = turns.acquire_owned().await;
            let began = Instant::now();
            let call = Call { module, server, tool, arguments, cancelled, clock };
            let answer = host.call(call).await;
            Done::Call { at, answer, took: began.elapsed() }
        });
        self.broken.insert(task.id(), broken);
    }

    /// What is done next. Never, where nothing is under way.
    pub(super) async fn next(&mut self) -> Done {
        loop {
            let (id, done) = match self.tasks.join_next_with_id().await {
                Some(Ok((id, done))) => (id, Some(done)),
                Some(Err(error)) => (error.id(), None),
                None => std::future::pending().await,
            };
            // A panic is in the log.
            let broken = self.broken.remove(&id);
            if let Some(done) = done.or(broken) {
                return done;
            }
        }
    }
}

impl Drop for Doing {
    /// Calls hear that they are cancelled, and can say so to whom they call.
    fn drop(&mut self) {
        self.cancelled.cancel();
        if self.tasks.is_empty() {
            return;
        }
        let mut tasks = std::mem::take(&mut self.tasks);
        // Without a runtime nothing goes on anyway.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let ending = async { while tasks.join_next().await.is_some() {} };
                let _ = timeout(ENDING, ending).await;
            });
        }
    }
}
