//! One connection to an upstream after its handshake. A separate task waits for its end, fails pending requests with the
//! reason, and leaves no process behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp::client::Request;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call_context::CallContext;
use super::channel::Channel;
use super::deadline::Deadline;
use super::failure::Failure;
use super::info::{Era, Info};
use super::router::Outcome;
use super::stdio::PeerClosed;
use crate::error::Awaited;

/// How long a server may take to respond to a ping after a request timed out.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    pub(super) channel: Arc<Channel>,
    pub(super) info: Info,
    pub(super) endings: Endings,
    pub(super) closed: PeerClosed,
    /// A liveness check is running.
    pub(super) is_verifying: AtomicBool,
    /// Whoever drops a connection ends it.
    pub(super) _drop: DropGuard,
}

/// The ways in which a connection comes to its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Endings {
    /// It is not needed any more.
    pub(super) politely: CancellationToken,
    /// It is of no use any more.
    pub(super) at_once: CancellationToken,
    /// Nothing can be asked any more.
    pub(super) over: CancellationToken,
    /// Nothing is left of it.
    pub(super) done: CancellationToken,
}

impl Connection {
    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    pub(crate) fn serial(&self) -> u64 {
        self.channel.serial
    }

    pub(super) fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    pub(crate) fn is_over(&self) -> bool {
        self.endings.over.is_cancelled()
            || self.closed.eof.is_cancelled()
            || self.closed.broken_input.is_cancelled()
            || self.closed.forgotten.is_cancelled()
    }

    pub(super) fn server(&self) -> &str {
        self.channel.router.server()
    }

    /// Whether arguments are mirrored in HTTP headers.
    pub(super) fn mirrors_arguments(&self) -> bool {
        !self.channel.has_process() && self.info.era == Era::Modern
    }

    /// Cancelled when nothing can be asked any more.
    pub(crate) fn over(&self) -> &CancellationToken {
        &self.endings.over
    }

    /// Ends it politely, and returns when nothing is left of it.
    pub(crate) async fn close(&self) {
        self.endings.politely.cancel();
        self.endings.done.cancelled().await;
    }

    /// Sends a request and awaits the response. A timeout triggers a liveness check.
    pub(crate) async fn request(
        self: &Arc<Self>,
        request: Request,
        context: &Arc<CallContext>,
    ) -> Outcome {
        let outcome = self.channel.request(request, context).await;
        if matches!(outcome, Err(Failure::Timeout { .. })) {
            self.verify_alive();
        }
        outcome
    }

    /// Checks that the server responds. An error response counts too.
    pub(crate) async fn ping(self: &Arc<Self>, context: &Arc<CallContext>) -> Result<(), Failure> {
        match self.request(Request::sign_of_life(self.info.era), context).await {
            Ok(_)
            | Err(
                Failure::Upstream { .. }
                | Failure::Refused { .. }
                | Failure::TooLarge { .. }
                | Failure::Protocol { .. },
            ) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Closes the connection if the server does not respond to a ping. The next call opens a new one.
    fn verify_alive(self: &Arc<Self>) {
        if self.is_verifying.swap(true, Ordering::AcqRel) {
            return;
        }
        let connection = self.clone();
        self.channel.runtime.spawn(async move {
            let context = CallContext::background(Deadline::new(PING_TIMEOUT, PING_TIMEOUT));
            let is_wanted = || !connection.endings.politely.is_cancelled();
            if connection.ping(&context).await.is_err() && is_wanted() {
                let server = connection.channel.router.server();
                tracing::warn!(server, "it shows no sign of life, and is ended");
                connection.endings.at_once.cancel();
            }
            connection.is_verifying.store(false, Ordering::Release);
        });
    }
}

pub(super) fn late(context: &CallContext) -> Failure {
    Failure::Timeout { what: Awaited::Answer, after: context.deadline.elapsed() }
}
