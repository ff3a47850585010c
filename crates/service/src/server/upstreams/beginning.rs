//! How a call begins that brings much: on a thread that nobody else waits for, a few at once, shared fairly between
//! principals.

use std::thread::available_parallelism;

use fair_semaphore::{FairSemaphore, Owner};
use mcp::{Carried, Finish, Outcome, guarded};

use super::Upstreams;

/// With fewer permits than this, one principal could hold all of them.
const BEGINNING_MIN: usize = 2;
/// How many calls of one principal may wait to begin.
const WAITING_MAX: usize = 64;

pub(super) struct Beginning(FairSemaphore);

impl Default for Beginning {
    fn default() -> Self {
        let permits = available_parallelism().map_or(BEGINNING_MIN, |cores| cores.get());
        Self(FairSemaphore::new(permits.max(BEGINNING_MIN)))
    }
}

impl Upstreams {
    /// Begins a call in its principal's turn.
    pub(crate) fn begin(
        &self,
        principal: Owner,
        finish: Finish,
        work: impl FnOnce() -> Carried + Send + 'static,
    ) {
        let runtime = match self.runtime() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!("nothing can speak with upstreams: {error}");
                return finish.done(Outcome::Fault);
            }
        };
        let permits = self.beginning.0.clone();
        runtime.spawn(async move {
            let Ok(permit) = permits.acquire(principal, WAITING_MAX).await else {
                return finish.done(Outcome::Busy);
            };
            let begun = tokio::task::spawn_blocking(move || {
                match guarded(work) {
                    Carried::Told(begin) => begin(finish),
                    carried => finish.done(carried),
                }
                drop(permit);
            });
            // A panic drops what it would have told, which says so.
            let _ = begun.await;
        });
    }
}
