//! One connection to an upstream, from its handshake to its end. A task of its own waits for the end, says why to whoever is
//! waiting, and leaves no process behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp::client::Request;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::channel::Channel;
use super::course::Course;
use super::deadline::Deadline;
use super::failure::Failure;
use super::in_flight::Outcome;
use super::info::{Era, Info};
use super::lines::Gone;
use crate::error::Awaited;

/// How long a server that did not answer in time has to show that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    pub(super) channel: Arc<Channel>,
    pub(super) info: Info,
    pub(super) endings: Endings,
    pub(super) gone: Gone,
    /// Somebody is looking whether the server is alive.
    pub(super) doubted: AtomicBool,
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
            || self.gone.hung_up.is_cancelled()
            || self.gone.deaf.is_cancelled()
    }

    pub(super) fn server(&self) -> &str {
        self.channel.in_flight.server()
    }

    /// Whether what goes to the server has headers that repeat some of it.
    pub(super) fn has_headers(&self) -> bool {
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

    /// Asks, and waits as long as the course allows.
    pub(crate) async fn ask(self: &Arc<Self>, request: Request, course: &Arc<Course>) -> Outcome {
        let outcome = self.channel.ask(request, course).await;
        if matches!(outcome, Err(Failure::Timeout { .. })) {
            self.doubt();
        }
        outcome
    }

    /// Whether the server answers anything at all. That it does not know the question is an answer too.
    pub(crate) async fn sign_of_life(
        self: &Arc<Self>,
        course: &Arc<Course>,
    ) -> Result<(), Failure> {
        match self.ask(Request::sign_of_life(self.info.era), course).await {
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

    /// It did not answer in time. Where it does not answer at all, the connection ends, and the next call gets a new one.
    fn doubt(self: &Arc<Self>) {
        if self.doubted.swap(true, Ordering::AcqRel) {
            return;
        }
        let connection = self.clone();
        self.channel.runtime.spawn(async move {
            let course = Course::quiet(Deadline::new(SIGN_OF_LIFE, SIGN_OF_LIFE));
            let is_wanted = || !connection.endings.politely.is_cancelled();
            if connection.sign_of_life(&course).await.is_err() && is_wanted() {
                let server = connection.channel.in_flight.server();
                tracing::warn!(server, "it shows no sign of life, and is ended");
                connection.endings.at_once.cancel();
            }
            connection.doubted.store(false, Ordering::Release);
        });
    }
}

pub(super) fn late(course: &Course) -> Failure {
    Failure::Timeout { what: Awaited::Answer, after: course.deadline.elapsed() }
}
