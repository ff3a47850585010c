//! What was asked over one connection and is not answered yet. Everything that the server says passes here: responses go
//! straight to whoever waits for them, as text; progress and changes are told on; what the server wants itself goes to a
//! queue for the host; what nobody asked for is dropped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use mcp::client::{
    Client, Filter, Id, Incoming, Listed, Message, RequestId, ResponseError, ResponseId,
    SERVER_REQUESTS_MAX, ServerRequest, Unreadable, guess_id,
};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::course::Course;
use super::failure::Failure;
use super::notices::Notices;
use super::whom::{GivenUp, Whom};
use crate::lock;

/// The most oddities that are logged, per connection. More of them say the same.
const ODDITIES_LOGGED: usize = 100;

/// The result as it was sent, or why there is none.
pub(crate) type Outcome = Result<Box<RawValue>, Failure>;

pub(crate) struct InFlight {
    state: Mutex<State>,
    notices: Arc<Notices>,
    wanted: mpsc::Sender<Wanted>,
    oddities: AtomicUsize,
}

#[derive(Default)]
struct State {
    client: Client<Waiting, CancellationToken>,
    /// What nobody waits for any more, but the server may still be at.
    given_up: GivenUp,
    /// Why nothing can be asked any more.
    over: Option<Failure>,
}

/// Who waits for a response.
#[derive(Debug)]
struct Waiting {
    course: Arc<Course>,
    sent: Sent,
    response: oneshot::Sender<Outcome>,
    subscription: Option<Subscribing>,
}

/// A request that is a subscription, and where the server's agreement goes.
#[derive(Debug)]
struct Subscribing(Option<oneshot::Sender<Filter>>);

/// A request that has its id.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) id: RequestId,
    pub(super) sent: Sent,
    pub(super) response: oneshot::Receiver<Outcome>,
}

/// Whether bytes of a request may have left us.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent(Arc<AtomicBool>);

impl Sent {
    pub(super) fn set(&self, is_sent: bool) {
        self.0.store(is_sent, Ordering::Release);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What the server wants from us.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) request: ServerRequest,
    /// Our request that it came with, if that is known.
    pub(super) origin: Option<RequestId>,
    pub(super) withdrawn: CancellationToken,
}

impl InFlight {
    /// What the server wants comes out of the queue. It has room for all that a server may want at a time.
    pub(super) fn new(notices: Arc<Notices>) -> (Arc<Self>, mpsc::Receiver<Wanted>) {
        let (wanted, queue) = mpsc::channel(SERVER_REQUESTS_MAX);
        let (state, oddities) = (Mutex::default(), AtomicUsize::new(0));
        (Arc::new(Self { state, notices, wanted, oddities }), queue)
    }

    pub(super) fn server(&self) -> &str {
        self.notices.server()
    }

    pub(super) fn begin(&self, course: &Arc<Course>) -> Result<Begun, Failure> {
        self.register(course, None)
    }

    /// For a subscription. The filter that the server agrees to comes first.
    pub(super) fn subscribe(
        &self,
        course: &Arc<Course>,
    ) -> Result<(Begun, oneshot::Receiver<Filter>), Failure> {
        let (acknowledge, acknowledged) = oneshot::channel();
        Ok((self.register(course, Some(Subscribing(Some(acknowledge))))?, acknowledged))
    }

    fn register(
        &self,
        course: &Arc<Course>,
        subscription: Option<Subscribing>,
    ) -> Result<Begun, Failure> {
        let mut state = lock(&self.state);
        if let Some(over) = &state.over {
            return Err(over.clone());
        }
        let (sender, response) = oneshot::channel();
        let (course, sent) = (course.clone(), Sent::default());
        let waiting = Waiting { course, sent: sent.clone(), response: sender, subscription };
        Ok(Begun { id: state.client.begin(waiting), sent, response })
    }

    /// It is over, one way or the other.
    pub(super) fn forget(&self, id: RequestId) {
        lock(&self.state).client.forget(id);
    }

    /// Nobody waits any more, but the server may still be at it.
    pub(super) fn give_up(&self, id: RequestId) {
        let mut state = lock(&self.state);
        if let Some(waiting) = state.client.forget(id) {
            state.remember(id, &waiting);
        }
    }

    /// The response has gone out, or never will.
    pub(super) fn responded(&self, id: &Id) {
        lock(&self.state).client.responded(id);
    }

    /// Whom a server's question concerns: the caller whose request it came with, if that is known, or else whoever it may
    /// belong to.
    pub(super) fn whom_to_ask(&self, origin: Option<RequestId>) -> Whom {
        let mut state = lock(&self.state);
        let State { client, given_up, .. } = &mut *state;
        if let Some(id) = origin {
            return client.get(id).map_or_else(Whom::gone, |waiting| Whom::just(&waiting.course));
        }
        let callers = client.waiting().map(|(id, waiting)| (id, &waiting.course));
        let callers = callers.filter(|(_, course)| course.party.is_some()).collect();
        given_up.whom(callers, Instant::now())
    }

    /// The connection is over. Whoever waits hears why, and so does whoever comes.
    pub(super) fn end(&self, failure: impl Fn(bool) -> Failure) {
        let waiting = {
            let mut state = lock(&self.state);
            state.over.get_or_insert_with(|| failure(false));
            state.client.forget_all()
        };
        for (_, waiting) in waiting {
            let failure = failure(waiting.sent.get());
            waiting.settle(Err(failure));
        }
    }

    /// Something came that is too long to be read. Its id may stand at its beginning or at its end.
    pub(super) fn too_long(&self, head: &[u8], tail: &[u8], limit: usize) {
        self.odd(&format!("a message of more than {limit} bytes was dropped"));
        let mut state = lock(&self.state);
        let id = [head, tail]
            .into_iter()
            .find_map(|part| guess_id(part).filter(|id| state.client.get(*id).is_some()));
        let concerned: Vec<_> = match id {
            Some(id) => state.client.forget(id).map(|waiting| (id, waiting)).into_iter().collect(),
            // It cannot be told who waits for it. Nobody should wait in vain.
            None => state.client.forget_all().collect(),
        };
        for (other, waiting) in concerned {
            if id.is_none() {
                state.remember(other, &waiting);
            }
            waiting.settle(Err(Failure::TooLarge { limit }));
        }
    }

    /// Takes in one message. `origin` is our request that it came with, if that is known. Gives back the id of the request
    /// that it answers.
    pub(super) fn hear(
        &self,
        message: Result<Message<'_>, Unreadable>,
        origin: Option<RequestId>,
    ) -> Option<RequestId> {
        let mut state = lock(&self.state);
        match state.client.hear(message) {
            Incoming::Response { id, waiting, outcome } => {
                state.given_up.answered(id);
                drop(state);
                waiting.settle(outcome.map(RawValue::to_owned).map_err(Failure::from));
                return Some(id);
            }
            Incoming::Stray(id) => {
                if let ResponseId::Ours(id) = id {
                    state.given_up.answered(id);
                }
                drop(state);
                // A late one, one that came twice, or an id of the server's own making.
                self.odd(&format!("an answer to {id}, which nobody waits for, was dropped"));
            }
            Incoming::Request(request) => {
                let withdrawn = CancellationToken::new();
                state.client.prepare(request.id.clone(), withdrawn.clone());
                let id = request.id.clone();
                // There is room for all that are prepared at a time.
                if self.wanted.try_send(Wanted { request, origin, withdrawn }).is_err() {
                    state.client.responded(&id);
                }
            }
            Incoming::Withdrawn(withdrawn) => withdrawn.cancel(),
            Incoming::Progress { id, progress } => {
                let course = state.client.get(id).map(|waiting| waiting.course.clone());
                drop(state);
                if let Some(course) = course {
                    course.deadline.extend();
                    course.tell(progress);
                }
            }
            Incoming::Acknowledged { id, filter } => {
                let waiting = state.client.get_mut(id);
                let subscribing = waiting.and_then(|waiting| waiting.subscription.as_mut());
                if let Some(acknowledge) = subscribing.and_then(|subscribing| subscribing.0.take())
                {
                    // Whoever is gone does not want to know.
                    let _ = acknowledge.send(filter);
                }
            }
            Incoming::SubscriptionEnded { id } => {
                let is_one = |waiting: &Waiting| waiting.subscription.is_some();
                if state.client.get(id).is_some_and(is_one)
                    && let Some(waiting) = state.client.forget(id)
                {
                    waiting.settle(Err(Failure::Cancelled));
                }
            }
            Incoming::ListChanged(list) => {
                drop(state);
                self.notices.changed(list);
                if list == Listed::Resources {
                    self.notices.changed(Listed::Templates);
                }
            }
            Incoming::ResourceUpdated { uri } => self.notices.updated(uri),
            Incoming::Log(text) => tracing::debug!(server = self.server(), "it logs: {text}"),
            Incoming::Unknown(method) => {
                let server = self.server();
                tracing::trace!(server, method, "a notification that means nothing to us");
            }
            Incoming::Odd(what) => self.odd(&what),
        }
        None
    }

    /// Something that a good server does not do.
    pub(super) fn odd(&self, what: &str) {
        match self.oddities.fetch_add(1, Ordering::Relaxed) {
            0..ODDITIES_LOGGED => tracing::warn!(server = self.server(), "{what}"),
            ODDITIES_LOGGED => {
                tracing::warn!(server = self.server(), "more of this kind is not logged");
            }
            _ => {}
        }
    }
}

impl Waiting {
    fn settle(self, outcome: Outcome) {
        // Whoever is gone does not want to know.
        let _ = self.response.send(outcome);
    }
}

impl State {
    fn remember(&mut self, id: RequestId, waiting: &Waiting) {
        if let Some(party) = &waiting.course.party {
            self.given_up.add(id, party, Instant::now());
        }
    }
}

impl From<ResponseError> for Failure {
    fn from(error: ResponseError) -> Self {
        match error {
            ResponseError::Refused(error) => {
                Self::Upstream { code: error.code, message: error.message, data: error.data }
            }
            ResponseError::Empty => {
                Self::Protocol { why: "it answers with neither a result nor an error".to_owned() }
            }
        }
    }
}
