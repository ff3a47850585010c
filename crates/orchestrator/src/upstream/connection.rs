//! One connection to an upstream, from its handshake to its end. Requests go out here and answers come back; a task of its
//! own waits for the end, says why to whoever is waiting, and leaves no process behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    DiscoverRequest, DiscoverRequestParams, GetExtensions as _, PingRequest, RequestId,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::deadline::Deadline;
use super::failure::{Failure, incident};
use super::info::{Era, Info};
use super::ledger::Ledger;
use super::once::Once;
use super::ticket::{Course, Outcome, Ticket};
use crate::error::Awaited;

/// How long a server that did not answer in time has to show that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// How long telling the server about a call that was given up may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the reason of a break may take to be known.
const REASON: Duration = Duration::from_secs(3);

pub(crate) struct Connection {
    pub(super) serial: u64,
    pub(super) peer: Peer<RoleClient>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) info: Info,
    pub(super) runtime: Handle,
    pub(super) endings: Endings,
    /// There is a process, whose end says more than any error on the way.
    pub(super) has_process: bool,
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
        self.serial
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    pub(crate) fn is_over(&self) -> bool {
        self.endings.over.is_cancelled() || self.peer.is_transport_closed()
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
    pub(crate) async fn ask(
        self: &Arc<Self>,
        request: impl Into<ClientRequest>,
        course: &Arc<Course>,
    ) -> Outcome {
        let mut asked = self.begin(request.into(), course).await?;
        asked.outcome(course).await
    }

    /// The same for `tools/list`. The library rejects tools that want impossible headers, where there are headers: the
    /// names of those that have any and may stay come too.
    pub(crate) async fn ask_for_tools(
        self: &Arc<Self>,
        request: impl Into<ClientRequest>,
        course: &Arc<Course>,
    ) -> Result<(Box<serde_json::value::RawValue>, Vec<String>), Failure> {
        let mut asked = self.begin(request.into(), course).await?;
        let result = asked.outcome(course).await?;
        let names = match timeout(REASON, asked.theirs.wait()).await.map(Option::take) {
            Ok(Some(Ok(ServerResult::ListToolsResult(list)))) => {
                list.tools.into_iter().map(|tool| tool.name.into_owned()).collect()
            }
            _ => Vec::new(),
        };
        Ok((result, names))
    }

    async fn begin(
        self: &Arc<Self>,
        mut request: ClientRequest,
        course: &Arc<Course>,
    ) -> Result<Asked, Failure> {
        let (ticket, outcome) = Ticket::new(course.clone());
        request.extensions_mut().insert(ticket.clone());
        let options = PeerRequestOptions::no_options();
        let handle = tokio::select! {
            biased;
            () = course.cancelled.cancelled() => return Err(Failure::Cancelled),
            handle = self.peer.send_request_with_option(request, options) => handle,
            () = course.deadline.passed() => return Err(late(course)),
        };
        match handle {
            Ok(handle) => Ok(Asked {
                connection: self.clone(),
                ticket,
                id: handle.id,
                ours: Once::new(outcome),
                theirs: Once::new(handle.rx),
                is_open: true,
            }),
            Err(_) => Err(self.broken("it is closed".to_owned(), false)),
        }
    }

    fn broken(&self, why: String, sent: bool) -> Failure {
        // Over HTTP one request breaks, and not the connection.
        let incident = if self.has_process { self.serial } else { incident() };
        Failure::Broken { why, sent, incident }
    }

    /// Whether the server answers anything at all. That it does not know the question is an answer too.
    pub(crate) async fn sign_of_life(
        self: &Arc<Self>,
        course: &Arc<Course>,
    ) -> Result<(), Failure> {
        let outcome = match self.info.era {
            Era::Legacy => {
                let ping =
                    PingRequest { method: Default::default(), extensions: Default::default() };
                self.ask(ClientRequest::PingRequest(ping), course).await
            }
            // There is no ping any more.
            Era::Modern => {
                let discover = DiscoverRequest::new(DiscoverRequestParams {});
                self.ask(ClientRequest::DiscoverRequest(discover), course).await
            }
        };
        match outcome {
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
        self.runtime.spawn(async move {
            let course = Course::quiet(Deadline::new(SIGN_OF_LIFE, SIGN_OF_LIFE));
            let is_wanted = || !connection.endings.politely.is_cancelled();
            if connection.sign_of_life(&course).await.is_err() && is_wanted() {
                let server = connection.ledger.server();
                tracing::warn!(server, "it shows no sign of life, and is ended");
                connection.endings.at_once.cancel();
            }
            connection.doubted.store(false, Ordering::Release);
        });
    }
}

/// A request that is under way. Whoever drops it before its end gives it up, and the server hears of that.
struct Asked {
    connection: Arc<Connection>,
    ticket: Ticket,
    id: RequestId,
    /// The answer as it came.
    ours: Once<Outcome>,
    /// What the library made of it. It is of use only where there is no answer, and for lists of tools.
    theirs: Once<Result<ServerResult, ServiceError>>,
    is_open: bool,
}

impl Asked {
    async fn outcome(&mut self, course: &Arc<Course>) -> Outcome {
        let why = tokio::select! {
            biased;
            _ = self.ours.wait() => "it is closed".to_owned(),
            theirs = self.theirs.wait() => reason(theirs),
            // It stays open, and is given up when this is dropped.
            () = course.cancelled.cancelled() => return Err(Failure::Cancelled),
            () = course.deadline.passed() => {
                self.connection.doubt();
                return Err(late(course));
            }
        };
        // Where a process has ended, it is known in a moment how.
        let patience = if self.connection.has_process { REASON } else { Duration::ZERO };
        let ours = timeout(patience, self.ours.wait()).await.ok().and_then(Option::take);
        self.is_open = false;
        ours.unwrap_or_else(|| Err(self.connection.broken(why, self.ticket.is_sent())))
    }
}

/// Why there is no answer, if there is none.
fn reason(theirs: &Option<Result<ServerResult, ServiceError>>) -> String {
    match theirs {
        Some(Err(ServiceError::TransportSend(error))) => error.error.to_string(),
        Some(Err(ServiceError::McpError(error))) => error.message.clone().into_owned(),
        Some(Err(ServiceError::TransportClosed)) => "it ended before it answered".to_owned(),
        Some(Err(error)) => error.to_string(),
        Some(Ok(_)) | None => "it is closed".to_owned(),
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let id = self.id.clone();
        // First, for it may be about to go.
        self.ours.close();
        self.connection.ledger.give_up(&id);
        let peer = self.connection.peer.clone();
        let farewell = async move {
            let _ = timeout(FAREWELL, peer.send_notification(given_up(id))).await;
        };
        self.connection.runtime.spawn(farewell);
    }
}

fn given_up(id: RequestId) -> ClientNotification {
    let reason = "nobody waits for it any more".to_owned();
    let params = CancelledNotificationParam::new(Some(id), Some(reason));
    ClientNotification::CancelledNotification(CancelledNotification::new(params))
}

pub(super) fn late(course: &Course) -> Failure {
    Failure::Timeout { what: Awaited::Answer, after: course.deadline.elapsed() }
}
