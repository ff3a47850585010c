//! What is under way for a program: imports that are looked up, calls that are made. All of it goes on in the task that runs the
//! program: answers that come together wake it once, and a call costs no task of its own.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::border::{Answer, Thrown};
use crate::host::{Boxed, Call, Host, Module};
use crate::outcome::Kind;

/// How long a call may take to end after it is cancelled, before nobody listens to it any more.
const ENDING: Duration = Duration::from_secs(2);

pub(super) struct Doing {
    host: Arc<dyn Host>,
    under_way: FuturesUnordered<Boxed<'static, Done>>,
    calls: usize,
    /// How many calls are under way at a time; others wait.
    at_once: usize,
    waiting: VecDeque<(usize, Call)>,
    made: Arc<AtomicUsize>,
    cancelled: CancellationToken,
    /// What is under way ends with the program.
    _ending: DropGuard,
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
            under_way: FuturesUnordered::new(),
            calls: 0,
            at_once: at_once.max(1),
            waiting: VecDeque::new(),
            made: Arc::default(),
            _ending: cancelled.clone().drop_guard(),
            cancelled,
        }
    }

    /// What a call hears when the program is over.
    pub(super) fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    pub(super) fn import(&mut self, specifier: String) {
        let host = Arc::clone(&self.host);
        self.under_way.push(Box::pin(async move {
            let module = unbroken(async { host.module(&specifier).await }).await;
            let module = module.unwrap_or_else(|| {
                Err(format!("looking for `{specifier}` failed; the log says more"))
            });
            Done::Import { specifier, module }
        }));
    }

    pub(super) fn call(&mut self, at: usize, call: Call) {
        self.waiting.push_back((at, call));
        self.begin();
    }

    /// Whether calls wait until others have ended.
    pub(super) fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many calls were made: the first ones, for they begin in their order.
    pub(super) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    fn begin(&mut self) {
        while self.calls < self.at_once
            && let Some((at, call)) = self.waiting.pop_front()
        {
            self.calls += 1;
            let (host, made) = (Arc::clone(&self.host), Arc::clone(&self.made));
            self.under_way.push(Box::pin(async move {
                if call.cancelled.is_cancelled() {
                    let message = "the program is over".to_owned();
                    let answer = Err(Thrown { kind: Kind::Cancelled, message, data: None });
                    return Done::Call { at, answer, took: Duration::ZERO };
                }
                made.fetch_add(1, Ordering::Relaxed);
                let (began, tool) = (Instant::now(), call.tool.clone());
                let answer = unbroken(async { host.call(call).await }).await.unwrap_or_else(|| {
                    let message = format!("calling `{tool}` failed; the log says more");
                    Err(Thrown { kind: Kind::Tool, message, data: None })
                });
                Done::Call { at, answer, took: began.elapsed() }
            }));
        }
    }

    /// What is done next. Never, where nothing is under way.
    pub(super) async fn next(&mut self) -> Done {
        let Some(done) = self.under_way.next().await else { return std::future::pending().await };
        if matches!(done, Done::Call { .. }) {
            self.calls -= 1;
            self.begin();
        }
        done
    }
}

/// What comes of something, unless it panics. The log has that.
async fn unbroken<T>(future: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(future).catch_unwind().await.ok()
}

impl Drop for Doing {
    /// Calls hear that they are cancelled, and can say so to whom they call.
    fn drop(&mut self) {
        self.cancelled.cancel();
        if self.under_way.is_empty() {
            return;
        }
        let mut under_way = std::mem::take(&mut self.under_way);
        // Without a runtime nothing goes on anyway.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let ending = async { while under_way.next().await.is_some() {} };
                let _ = timeout(ENDING, ending).await;
            });
        }
    }
}
