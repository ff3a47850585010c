//! Checks of values against the schemas of upstreams. What takes more than a moment is done on a thread that nobody else
//! waits for: a few at once, shared fairly between parties.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::available_parallelism;

use fair_semaphore::FairSemaphore;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tool_schema::arguments::{Checker, Verdict};
use tool_schema::tool::Json;

use super::call_context::CallContext;
use super::connection::late;
use super::failure::Failure;

/// With fewer permits than this, one party could hold all of them.
const CHECKS_MIN: usize = 2;
/// What waits here has entered an upstream's gate, which bounds it.
const WAITING_MAX: usize = usize::MAX;

/// One of these serves all upstreams. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Checks {
    checker: Arc<Checker>,
    permits: FairSemaphore,
}

impl Default for Checks {
    fn default() -> Self {
        let permits = available_parallelism().map_or(CHECKS_MIN, |cores| cores.get());
        let permits = FairSemaphore::new(permits.max(CHECKS_MIN));
        Self { checker: Arc::default(), permits }
    }
}

impl Checks {
    /// The verdict about a value, which comes back with it.
    pub(super) async fn check(
        &self,
        schema: &Json,
        value: Value,
        context: &CallContext,
    ) -> Result<(Verdict, Value), Failure> {
        if self.checker.fits_at_once(schema, &value) {
            return Ok((Verdict::Fits, value));
        }
        let owner = context.party.as_ref().and_then(|party| party.name().cloned());
        let permit = tokio::select! {
            permit = self.permits.acquire(owner, WAITING_MAX) => permit,
            () = context.cancelled.cancelled() => return Err(Failure::Cancelled),
            () = context.deadline.passed() => return Err(late(context)),
        };
        let permit = permit.map_err(|_| Failure::Cancelled)?;
        let (checker, schema) = (Arc::clone(&self.checker), schema.clone());
        let checked = spawn_blocking(move || {
            // Held until it is done, even if nobody waits for it any more.
            let _permit = permit;
            (checker.check(&schema, &value), value)
        });
        let checked = tokio::select! {
            checked = checked => checked,
            () = context.cancelled.cancelled() => return Err(Failure::Cancelled),
            () = context.deadline.passed() => return Err(late(context)),
        };
        checked.map_err(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends.
            Err(_) => Failure::Cancelled,
        })
    }
}
