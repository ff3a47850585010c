//! Routes every inbound message of one connection. Responses go to the waiting caller as raw JSON, progress and changes are
//! forwarded, requests of the server go to a bounded queue, and unsolicited messages are dropped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use mcp::client::{
    Client, Filter, Id, Incoming, ListKind, Message, MessageError, RequestId, ResponseError,
    ResponseId, SERVER_REQUESTS_MAX, ServerRequest, guess_id,
};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use untrusted_text::cut;

use super::call_context::CallContext;
use super::failure::Failure;
use super::notices::Notices;
use super::whom::{GivenUp, Whom};
use crate::wire::Secrets;

/// The most anomalies that are logged per connection.
const ANOMALIES_LOGGED_MAX: usize = 100;
/// How many abandoned requests are remembered.
const ABANDONED_MAX: usize = 256;
/// How much of what a server says is logged.
const LOGGED_BYTES_MAX: usize = 1_000;

/// The result as the server sent it, or why there is none.
pub(crate) type Outcome = Result<Box<RawValue>, Failure>;

pub(crate) struct MessageRouter {
    state: Mutex<RouterState>,
    notices: Arc<Notices>,
    secrets: Secrets,
    inbound: mpsc::Sender<InboundRequest>,
    anomalies: AtomicUsize,
}

#[derive(Default)]
struct RouterState {
    client: Client<PendingRequest, CancellationToken>,
    /// Abandoned requests that the server may still be working on.
    given_up: GivenUp,
    /// Abandoned requests, newest last. Their responses are late, and no anomaly.
    abandoned: VecDeque<RequestId>,
    /// Why the connection accepts no more requests.
    closed: Option<Failure>,
}

#[derive(Debug)]
struct PendingRequest {
    context: Arc<CallContext>,
    sent: SentFlag,
    response: oneshot::Sender<Outcome>,
    subscription: Option<PendingSubscription>,
}

/// Marks a request as a subscription. Holds the sender until the server acknowledges it.
#[derive(Debug)]
struct PendingSubscription(Option<oneshot::Sender<Filter>>);

/// A request with its id, before it is sent.
#[derive(Debug)]
pub(super) struct RegisteredRequest {
    pub(super) id: RequestId,
    pub(super) sent: SentFlag,
    pub(super) response: oneshot::Receiver<Outcome>,
}

/// Whether bytes of a request may have reached the server.
#[derive(Debug, Clone, Default)]
pub(super) struct SentFlag(Arc<AtomicBool>);

impl SentFlag {
    pub(super) fn set(&self, is_sent: bool) {
        self.0.store(is_sent, Ordering::Release);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A request of the server.
#[derive(Debug)]
pub(super) struct InboundRequest {
    pub(super) request: ServerRequest,
    /// The request of ours on whose stream it arrived, if known.
    pub(super) origin: Option<RequestId>,
    pub(super) cancelled: CancellationToken,
}

impl MessageRouter {
    /// The queue has room for all requests that a server may have in flight.
    pub(super) fn new(
        notices: Arc<Notices>,
        secrets: Secrets,
    ) -> (Arc<Self>, mpsc::Receiver<InboundRequest>) {
        let (inbound, queue) = mpsc::channel(SERVER_REQUESTS_MAX);
        let (state, anomalies) = (Mutex::default(), AtomicUsize::new(0));
        (Arc::new(Self { state, notices, secrets, inbound, anomalies }), queue)
    }

    /// What a server says, for the log: it may repeat what it was given, at any length.
    fn for_log(&self, text: &str) -> String {
        cut(&(self.secrets)().hide(text), LOGGED_BYTES_MAX)
    }

    pub(super) fn server(&self) -> &str {
        self.notices.server()
    }

    pub(super) fn register(
        &self,
        context: &Arc<CallContext>,
    ) -> Result<RegisteredRequest, Failure> {
        self.register_pending(context, None)
    }

    /// Registers a subscription. The receiver gets the filter that the server acknowledges.
    pub(super) fn register_subscription(
        &self,
        context: &Arc<CallContext>,
    ) -> Result<(RegisteredRequest, oneshot::Receiver<Filter>), Failure> {
        let (sender, acknowledged) = oneshot::channel();
        let subscription = PendingSubscription(Some(sender));
        Ok((self.register_pending(context, Some(subscription))?, acknowledged))
    }

    fn register_pending(
        &self,
        context: &Arc<CallContext>,
        subscription: Option<PendingSubscription>,
    ) -> Result<RegisteredRequest, Failure> {
        let mut state = self.state.lock();
        if let Some(closed) = &state.closed {
            return Err(closed.clone());
        }
        let (sender, response) = oneshot::channel();
        let (context, sent) = (context.clone(), SentFlag::default());
        let pending =
            PendingRequest { context, sent: sent.clone(), response: sender, subscription };
        Ok(RegisteredRequest { id: state.client.register(pending), sent, response })
    }

    pub(super) fn remove(&self, id: RequestId) {
        self.state.lock().client.remove(id);
    }

    /// Removes a request that the server may still be working on.
    pub(super) fn abandon(&self, id: RequestId) {
        let mut state = self.state.lock();
        if let Some(pending) = state.client.remove(id) {
            state.remember_abandoned(id, &pending);
        }
    }

    /// Records that a response to the server was sent or given up.
    pub(super) fn finish_response(&self, id: &Id) {
        self.state.lock().client.finish_response(id);
    }

    /// Selects the caller that answers an elicitation: the one whose request it came with if that is known, otherwise any
    /// caller that it may belong to.
    pub(super) fn prompt_target(&self, origin: Option<RequestId>) -> Whom {
        let mut state = self.state.lock();
        let RouterState { client, given_up, .. } = &mut *state;
        if let Some(id) = origin {
            return client.get(id).map_or_else(Whom::gone, |pending| Whom::just(&pending.context));
        }
        let callers = client.pending().map(|(id, pending)| (id, &pending.context));
        let callers = callers.filter(|(_, context)| context.party.is_some()).collect();
        given_up.whom(callers, Instant::now())
    }

    /// Fails all pending and later requests. `failure` gets whether the request was sent.
    pub(super) fn close(&self, failure: impl Fn(bool) -> Failure) {
        let pending = {
            let mut state = self.state.lock();
            state.closed.get_or_insert_with(|| failure(false));
            state.client.drain()
        };
        for (_, pending) in pending {
            let failure = failure(pending.sent.get());
            pending.fulfill(Err(failure));
        }
    }

    /// Handles a message that is too long to be parsed. Its id may be in its beginning or its end.
    pub(super) fn reject_oversized(&self, head: &[u8], tail: &[u8], limit: usize) {
        self.log_anomaly(&format!("a message of more than {limit} bytes was dropped"));
        let mut state = self.state.lock();
        let id = [head, tail]
            .into_iter()
            .find_map(|part| guess_id(part).filter(|id| state.client.get(*id).is_some()));
        let failure = || Failure::TooLarge { limit };
        if let Some(id) = id {
            if let Some(pending) = state.client.remove(id) {
                pending.fulfill(Err(failure()));
            }
            return;
        }
        // The response may be for any of them, and none may wait in vain.
        for (id, pending) in state.client.drain() {
            state.remember_abandoned(id, &pending);
            pending.fulfill(Err(failure()));
        }
    }

    /// Routes one message. `origin` is the request of ours on whose stream it arrived, if known. Returns the id of the request
    /// that it responds to.
    pub(super) fn route(
        &self,
        message: Result<Message<'_>, MessageError>,
        origin: Option<RequestId>,
    ) -> Option<RequestId> {
        let mut state = self.state.lock();
        match state.client.receive(message) {
            Incoming::Response { id, pending, outcome } => {
                state.given_up.answered(id);
                drop(state);
                pending.fulfill(outcome.map(RawValue::to_owned).map_err(Failure::from));
                return Some(id);
            }
            Incoming::Unmatched(id) => {
                let is_late = match &id {
                    ResponseId::Ours(id) => {
                        state.given_up.answered(*id);
                        let at = state.abandoned.iter().position(|abandoned| abandoned == id);
                        let abandoned = at.and_then(|at| state.abandoned.remove(at));
                        // After closing, every response is late.
                        abandoned.is_some() || state.closed.is_some()
                    }
                    ResponseId::Foreign(_) => false,
                };
                drop(state);
                let what = format!("an answer to {id}, which nobody waits for, was dropped");
                match is_late {
                    true => tracing::debug!(server = self.server(), "{what}"),
                    false => self.log_anomaly(&what),
                }
            }
            Incoming::Request(request) => {
                let (id, cancelled) = (request.id.clone(), CancellationToken::new());
                state.client.accept_request(id.clone(), cancelled.clone());
                if self.inbound.try_send(InboundRequest { request, origin, cancelled }).is_err() {
                    state.client.finish_response(&id);
                }
            }
            Incoming::RequestCancelled(cancelled) => cancelled.cancel(),
            Incoming::Progress { id, progress } => {
                let context = state.client.get(id).map(|pending| pending.context.clone());
                drop(state);
                if let Some(context) = context {
                    context.deadline.extend();
                    context.report_progress(progress);
                }
            }
            Incoming::SubscriptionAcknowledged { id, filter } => {
                let pending = state.client.get_mut(id);
                let subscription = pending.and_then(|pending| pending.subscription.as_mut());
                if let Some(sender) = subscription.and_then(|subscription| subscription.0.take()) {
                    // The subscriber may have stopped waiting.
                    let _ = sender.send(filter);
                }
            }
            Incoming::SubscriptionEnded { id } => {
                let is_subscription = |pending: &PendingRequest| pending.subscription.is_some();
                if state.client.get(id).is_some_and(is_subscription)
                    && let Some(pending) = state.client.remove(id)
                {
                    pending.fulfill(Err(Failure::Cancelled));
                }
            }
            Incoming::ListChanged(list) => {
                drop(state);
                self.notices.changed(list);
                if list == ListKind::Resources {
                    self.notices.changed(ListKind::Templates);
                }
            }
            Incoming::ResourceUpdated { uri } => self.notices.updated(uri),
            Incoming::Log(text) => {
                tracing::debug!(server = self.server(), "it logs: {}", self.for_log(&text));
            }
            Incoming::UnknownNotification(method) => {
                tracing::trace!(server = self.server(), method, "unknown notification");
            }
            Incoming::Anomaly(what) => self.log_anomaly(&what),
        }
        None
    }

    /// Logs a violation of the protocol, up to a limit per connection.
    pub(super) fn log_anomaly(&self, what: &str) {
        match self.anomalies.fetch_add(1, Ordering::Relaxed) {
            0..ANOMALIES_LOGGED_MAX => {
                tracing::warn!(server = self.server(), "{}", self.for_log(what));
            }
            ANOMALIES_LOGGED_MAX => {
                tracing::warn!(server = self.server(), "more of this kind is not logged");
            }
            _ => {}
        }
    }
}

impl PendingRequest {
    fn fulfill(self, outcome: Outcome) {
        // The caller may have stopped waiting.
        let _ = self.response.send(outcome);
    }
}

impl RouterState {
    fn remember_abandoned(&mut self, id: RequestId, pending: &PendingRequest) {
        if self.abandoned.len() >= ABANDONED_MAX {
            self.abandoned.pop_front();
        }
        self.abandoned.push_back(id);
        if let Some(party) = &pending.context.party {
            self.given_up.add(id, party, Instant::now());
        }
    }
}

impl From<ResponseError> for Failure {
    fn from(error: ResponseError) -> Self {
        match error {
            ResponseError::Rpc(error) => {
                Self::Upstream { code: error.code, message: error.message, data: error.data }
            }
            ResponseError::NoOutcome => {
                Self::Protocol { why: "it answers with neither a result nor an error".to_owned() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use registry::Masks;
    use tokio::sync::broadcast;

    use super::*;

    #[test]
    fn log_has_no_secret_that_a_server_repeats_and_nothing_long() {
        let notices = Arc::new(Notices::new("test", broadcast::Sender::new(1)));
        let masks = Arc::new(Masks::new(["s3cr3t-t0ken"]));
        let secrets: Secrets = Arc::new(move || masks.clone());
        let (router, _) = MessageRouter::new(notices, secrets);
        let logged = router.for_log(&format!("bad token s3cr3t-t0ken, {}", "no ".repeat(10_000)));
        assert!(logged.starts_with("bad token ") && !logged.contains("s3cr3t"), "{logged}");
        assert!(logged.len() < LOGGED_BYTES_MAX + 10, "{}", logged.len());
    }
}
