//! The request channel of one connection: performs the handshake, sends requests over the transport and awaits their
//! responses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp::client::{
    ClientInfo, ErrorObject, Filter, Handshake, HandshakeError, HandshakeStep, Request, RequestId,
    ServerInfo, cancelled, initialized, version_header,
};
use mcp::{Era, Revision};
use parking_lot::Mutex;
use tokio::process::ChildStdin;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::call_context::CallContext;
use super::connection::late;
use super::deadline::Deadline;
use super::failure::{Failure, incident};
use super::http::{HttpTransport, PostedRequest};
use super::router::{MessageRouter, Outcome, RegisteredRequest, SentFlag};
use super::stdio::StdioWriter;

const CLIENT: ClientInfo =
    ClientInfo { name: "workflowlookup", version: env!("CARGO_PKG_VERSION") };
/// How long an unknown server may take to respond to `server/discover` before `initialize` is tried.
const STDIO_DISCOVERY_TIMEOUT: Duration = Duration::from_secs(3);
const HTTP_DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sending `notifications/cancelled` may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for the exit status of a process after its pipe broke.
const EXIT_REASON_TIMEOUT: Duration = Duration::from_secs(3);
/// The deadline of subscriptions, which end with their connection, and of handshakes, which the caller limits.
const FOREVER: Duration = Duration::MAX;

pub(super) struct Channel {
    /// The number of the connection.
    pub(super) serial: u64,
    pub(super) router: Arc<MessageRouter>,
    pub(super) transport: Transport,
    pub(super) runtime: Handle,
    /// Negotiated by the last handshake.
    pub(super) revision: Mutex<Option<Revision>>,
}

pub(super) enum Transport {
    Stdio(StdioWriter<ChildStdin>),
    Http(HttpTransport),
}

impl Channel {
    pub(super) fn revision(&self) -> Option<Revision> {
        *self.revision.lock()
    }

    /// Whether the server is a child process. Its exit status explains a broken connection best.
    pub(super) fn has_process(&self) -> bool {
        matches!(self.transport, Transport::Stdio(_))
    }

    /// Sends a request and awaits the response. Dropping the future cancels the request.
    pub(super) async fn request(
        self: &Arc<Self>,
        request: Request,
        context: &Arc<CallContext>,
    ) -> Outcome {
        let registered = self.router.register(context)?;
        InFlightRequest::new(self, request, registered).response(context).await
    }

    /// Opens a subscription and waits for the server to acknowledge it.
    pub(super) async fn listen(
        self: &Arc<Self>,
        filter: &Filter,
        limit: Duration,
    ) -> Result<Subscription, Failure> {
        let context = CallContext::background(Deadline::new(FOREVER, FOREVER));
        let (registered, acknowledged) = self.router.register_subscription(&context)?;
        let mut in_flight = InFlightRequest::new(self, filter.request(), registered);
        let response = self.runtime.spawn(async move { in_flight.response(&context).await });
        let mut subscription = Subscription {
            acknowledged: Filter::default(),
            response: AbortOnDropHandle::new(response),
        };
        match timeout(limit, subscription.acknowledge(acknowledged, filter)).await {
            Ok(acknowledged) => acknowledged.map(|()| subscription),
            Err(_) => {
                let why = "it does not agree to `subscriptions/listen`".to_owned();
                Err(Failure::Protocol { why })
            }
        }
    }

    /// Sends a notification or a response.
    pub(super) async fn send(&self, text: String) -> Result<(), Failure> {
        match &self.transport {
            Transport::Stdio(writer) => {
                let sent = writer.send(text, None).await;
                sent.map_err(|error| self.connection_lost(error.to_string(), true))
            }
            Transport::Http(http) => http.send(text, &version_header(self.revision())).await,
        }
    }

    /// Closes the input of the process, or ends the HTTP session.
    pub(super) async fn close(&self) {
        match &self.transport {
            Transport::Stdio(writer) => writer.close().await,
            Transport::Http(http) => http.close(&version_header(self.revision())).await,
        }
    }

    pub(super) fn connection_lost(&self, why: String, sent: bool) -> Failure {
        // Over HTTP only the request is lost.
        let incident = if self.has_process() { self.serial } else { incident() };
        Failure::Broken { why, sent, incident }
    }

    /// Negotiates with the server. `era` is known if an earlier connection succeeded. The caller limits how long it takes.
    pub(super) async fn handshake(
        self: &Arc<Self>,
        era: Option<Era>,
    ) -> Result<ServerInfo, Failure> {
        let context = CallContext::background(Deadline::new(FOREVER, FOREVER));
        let (mut handshake, mut request) = Handshake::begin(&CLIENT, era);
        // A discovery that timed out may still get its response.
        let mut discovery: Option<Pin<Box<dyn Future<Output = Outcome> + Send>>> = None;
        let info = loop {
            let mut response = Box::pin({
                let (channel, context) = (self.clone(), context.clone());
                async move { channel.request(request, &context).await }
            });
            let outcome = match handshake.can_expire() {
                true => timeout(self.discovery_timeout(), &mut response).await.ok(),
                false => Some(response.as_mut().await),
            };
            if let (Some(Err(Failure::Upstream { .. })), Some(discovery)) =
                (&outcome, discovery.take())
                && let Ok(Ok(discovered)) = timeout(Duration::ZERO, discovery).await
            {
                handshake.receive_late_discovery(&discovered);
            }
            let step = match outcome {
                None => {
                    discovery = Some(response);
                    handshake.expire_discovery()
                }
                Some(Ok(result)) => handshake.receive(Ok(&result)),
                Some(Err(Failure::Upstream { code, message, data })) => {
                    handshake.receive(Err(ErrorObject { code, message, data }))
                }
                Some(Err(failure)) => return Err(failure),
            };
            match step {
                HandshakeStep::Send(next) => request = next,
                HandshakeStep::Done(info) => break info,
                HandshakeStep::Failed(error) => return Err(handshake_failure(error)),
            }
        };
        *self.revision.lock() = Some(info.revision);
        if info.revision.era() == Era::Legacy {
            self.send(initialized()).await?;
            if let Transport::Http(http) = &self.transport {
                http.open_stream(&version_header(self.revision()));
            }
        }
        Ok(info)
    }

    fn discovery_timeout(&self) -> Duration {
        match self.transport {
            Transport::Stdio(_) => STDIO_DISCOVERY_TIMEOUT,
            Transport::Http(_) => HTTP_DISCOVERY_TIMEOUT,
        }
    }

    /// Sends a request. Over HTTP it returns when the response has been routed; over stdio only if writing fails, because
    /// responses arrive elsewhere.
    async fn exchange(
        self: &Arc<Self>,
        request: &Request,
        id: RequestId,
        sent: &SentFlag,
    ) -> Result<(), Failure> {
        let revision = self.revision().filter(|_| !request.is_handshake());
        let text = request.encode(id, &CLIENT, revision);
        let http = match &self.transport {
            Transport::Stdio(writer) => {
                return match writer.send(text, Some(sent)).await {
                    Ok(()) => std::future::pending().await,
                    Err(error) => Err(self.connection_lost(error.to_string(), sent.get())),
                };
            }
            Transport::Http(http) => http,
        };
        let posted = PostedRequest { id, request, revision, text: text.into(), sent };
        http.exchange(&posted).await
    }
}

/// Why a handshake failed.
pub(super) fn handshake_failure(error: HandshakeError) -> Failure {
    match error {
        HandshakeError::Refused(ErrorObject { code, message, .. }) => {
            let why = format!("it refuses the handshake: {code} {message}");
            Failure::Connect { why, incident: incident() }
        }
        HandshakeError::NoCommonRevision(theirs) => {
            let theirs = theirs.join(", ");
            let why = format!("it speaks only revisions that we do not know: {theirs}");
            Failure::Unusable { why }
        }
        HandshakeError::Unusable(why) => Failure::Unusable { why },
    }
}

/// A request in flight. Dropping it before it is finished cancels it and notifies the server.
struct InFlightRequest {
    channel: Arc<Channel>,
    request: Request,
    registered: RegisteredRequest,
    is_finished: bool,
}

impl InFlightRequest {
    fn new(channel: &Arc<Channel>, request: Request, registered: RegisteredRequest) -> Self {
        Self { channel: channel.clone(), request, registered, is_finished: false }
    }

    async fn response(&mut self, context: &CallContext) -> Outcome {
        let Self { channel, request, registered, is_finished } = self;
        let RegisteredRequest { id, sent, response } = registered;
        let closed = || Err(channel.connection_lost("it is closed".to_owned(), sent.get()));
        let exchanged = tokio::select! {
            biased;
            outcome = &mut *response => {
                *is_finished = true;
                return outcome.unwrap_or_else(|_| closed());
            }
            () = context.cancelled.cancelled() => return Err(Failure::Cancelled),
            exchanged = channel.exchange(request, *id, sent) => exchanged,
            () = context.deadline.passed() => return Err(late(context)),
        };
        // The exit status of a process explains more than a failed write.
        let limit = if channel.has_process() { EXIT_REASON_TIMEOUT } else { Duration::ZERO };
        let outcome = timeout(limit, &mut *response).await;
        *is_finished = true;
        match (outcome, exchanged) {
            (Ok(Ok(outcome)), _) => outcome,
            (_, Ok(())) => closed(),
            (_, Err(failure)) => {
                match &failure {
                    Failure::Broken { sent: true, .. } => channel.router.abandon(*id),
                    _ => channel.router.remove(*id),
                }
                Err(failure)
            }
        }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let id = self.registered.id;
        self.channel.router.abandon(id);
        let revision = self.channel.revision().filter(|_| !self.request.is_handshake());
        let Some(revision) = revision.filter(|_| self.registered.sent.get()) else { return };
        // Over modern HTTP, closing the stream cancels the request.
        if !self.channel.has_process() && revision.era() == Era::Modern {
            return;
        }
        let channel = self.channel.clone();
        self.channel.runtime.spawn(async move {
            let _ = timeout(CANCEL_TIMEOUT, channel.send(cancelled(id))).await;
        });
    }
}

/// An open subscription, which ends when this is dropped. The router receives its notifications.
pub(super) struct Subscription {
    pub(super) acknowledged: Filter,
    response: AbortOnDropHandle<Outcome>,
}

impl Subscription {
    async fn acknowledge(
        &mut self,
        acknowledged: oneshot::Receiver<Filter>,
        requested: &Filter,
    ) -> Result<(), Failure> {
        let failure = tokio::select! {
            biased;
            Ok(filter) = acknowledged => {
                if filter.is_subset_of(requested) {
                    self.acknowledged = filter;
                    return Ok(());
                }
                let why = "it agrees to send notifications that nobody asked for".to_owned();
                Failure::Protocol { why }
            }
            outcome = &mut self.response => match outcome {
                Ok(Err(failure)) => failure,
                Ok(Ok(_)) | Err(_) => {
                    let why = "it ends `subscriptions/listen` without agreeing to it".to_owned();
                    Failure::Protocol { why }
                }
            },
        };
        Err(failure)
    }

    /// Returns when the server ends the subscription, or the connection closes.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.response).await;
    }
}
