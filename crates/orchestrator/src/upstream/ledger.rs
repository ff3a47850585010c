//! What was asked over one connection and is not answered yet. Everything that the upstream says passes here first: answers
//! go straight to whoever waits for them, as text; progress and changes are told on; what nobody asked for is dropped.
//! Only what the protocol's library must see itself goes on to it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rmcp::model::GetExtensions as _;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, GetMeta as _, NumberOrString, ProgressToken,
    RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::handshake::Handshake;
use super::message::{ErrorObject, Message, Unreadable};
use super::notices::Notices;
use super::ticket::{Course, Outcome, Ticket};
use super::typed;
use super::whom::{GivenUp, Whom};
use crate::call::Progress;
use crate::lock;
use crate::pool::Kind;

/// An upstream that wants more than this from us at a time gets no answer to the rest.
const WISHES_MAX: usize = 64;
/// What is no answer may have so many bytes.
const ASIDE_BYTES_MAX: usize = 1024 * 1024;
/// The longest address of a resource that is told on: many of them wait for who is slow.
const URI_BYTES_MAX: usize = 8 * 1024;
/// So much of what is said about progress is told on.
const PROGRESS_BYTES_MAX: usize = 4 * 1024;
/// Oddities that are logged, per connection. More of them say the same.
const ODDITIES_LOGGED: usize = 100;

pub(crate) struct Ledger {
    open: Mutex<Open>,
    notices: Arc<Notices>,
    oddities: AtomicUsize,
    handshake: Handshake,
}

#[derive(Default)]
struct Open {
    waiting: HashMap<RequestId, Waiting>,
    progress: HashMap<ProgressToken, Arc<Course>>,
    /// Requests of the upstream that we have not answered yet.
    wishes: HashSet<RequestId>,
    /// What nobody waits for any more, but the upstream may still be at.
    given_up: GivenUp,
    /// Why nothing can be asked any more.
    over: Option<Failure>,
}

enum Waiting {
    /// Ours: the library gets an empty answer in place of the real one, so that it forgets the request.
    Caller { ticket: Ticket, token: Option<ProgressToken>, method: Method },
    /// The library waits itself.
    Library { method: Method },
    /// The library has gone on without the answer to `server/discover`.
    Late,
}

/// The requests whose answers the library reads, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Initialize,
    Discover,
    Listen,
    ListTools,
    Other,
}

impl Method {
    fn of(name: &str) -> Self {
        match name {
            "initialize" => Self::Initialize,
            "server/discover" => Self::Discover,
            "subscriptions/listen" => Self::Listen,
            "tools/list" => Self::ListTools,
            _ => Self::Other,
        }
    }
}

impl Ledger {
    pub(crate) fn new(notices: Arc<Notices>) -> Self {
        Self {
            open: Mutex::default(),
            notices,
            oddities: AtomicUsize::new(0),
            handshake: Handshake::default(),
        }
    }

    pub(crate) fn server(&self) -> &str {
        self.notices.server()
    }

    pub(crate) fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// A message of ours is about to go. Gives back its ticket, if it is a request that somebody waits for.
    pub(crate) fn going(&self, message: &ClientJsonRpcMessage) -> Option<Ticket> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let method = Method::of(request.request.method());
        let ticket = request.request.extensions().get::<Ticket>().cloned();
        let mut open = lock(&self.open);
        let waiting = match &ticket {
            None => Waiting::Library { method },
            Some(ticket) => {
                if let Some(over) = &open.over {
                    ticket.settle(Err(over.clone()));
                    return None;
                }
                if ticket.is_given_up() {
                    open.give_up(&request.id, ticket);
                    return Some(ticket.clone());
                }
                let token = request.request.get_meta().get_progress_token();
                if let Some(token) = &token {
                    open.progress.insert(token.clone(), ticket.course().clone());
                }
                Waiting::Caller { ticket: ticket.clone(), token, method }
            }
        };
        open.waiting.insert(request.id.clone(), waiting);
        ticket
    }

    /// A message of ours has gone, all of it, or never will.
    pub(crate) fn gone(&self, answers: Option<&RequestId>) {
        if let Some(id) = answers {
            lock(&self.open).wishes.remove(id);
        }
    }

    /// It is over.
    pub(crate) fn forget(&self, id: &RequestId) {
        lock(&self.open).take(id);
    }

    /// Nobody waits any more.
    pub(crate) fn give_up(&self, id: &RequestId) {
        let mut open = lock(&self.open);
        if let Some(Waiting::Caller { ticket, .. }) = open.take(id) {
            open.give_up(id, &ticket);
        }
    }

    /// Whom an upstream's question concerns: the caller whose request it came with, where that is known, or else whoever
    /// it may belong to.
    pub(crate) fn whom_to_ask(&self, request: Option<&RequestId>) -> Whom {
        let mut open = lock(&self.open);
        let Open { waiting, given_up, .. } = &mut *open;
        if let Some(id) = request {
            return match waiting.get(id) {
                Some(Waiting::Caller { ticket, .. }) => Whom::just(ticket.course()),
                Some(Waiting::Library { .. } | Waiting::Late) | None => Whom::gone(),
            };
        }
        let callers = waiting.iter().filter_map(|(id, waiting)| match waiting {
            Waiting::Caller { ticket, .. } => {
                Some((id, ticket.course())).filter(|(_, course)| course.party.is_some())
            }
            Waiting::Library { .. } | Waiting::Late => None,
        });
        given_up.whom(callers.collect(), Instant::now())
    }

    /// The connection is over. Whoever waits hears why, and so does whoever comes.
    pub(crate) fn end(&self, failure: impl Fn(bool) -> Failure) {
        let waiting = {
            let mut open = lock(&self.open);
            open.over.get_or_insert_with(|| failure(false));
            open.progress.clear();
            std::mem::take(&mut open.waiting)
        };
        for waiting in waiting.into_values() {
            if let Waiting::Caller { ticket, .. } = waiting {
                ticket.settle(Err(failure(ticket.is_sent())));
            }
        }
    }

    /// Something came that is too long to be read. Whom it concerns may stand at its beginning or at its end.
    pub(crate) fn too_long(
        &self,
        head: &[u8],
        tail: &[u8],
        limit: usize,
    ) -> Option<ServerJsonRpcMessage> {
        self.odd(&format!("a message of more than {limit} bytes was dropped"));
        let id = [head, tail].into_iter().find_map(|part| {
            let id = typed::guess_id(part)?;
            lock(&self.open).waiting.contains_key(&id).then_some(id)
        });
        let failure = Failure::TooLarge { limit };
        if let Some(id) = id {
            return self.settle(&id, Err(failure));
        }
        // It cannot be told who waits for it. Nobody should wait in vain.
        let mut open = lock(&self.open);
        for (id, waiting) in std::mem::take(&mut open.waiting) {
            if let Waiting::Caller { ticket, .. } = waiting {
                ticket.settle(Err(failure.clone()));
                open.give_up(&id, &ticket);
            }
        }
        None
    }

    /// Takes in one message, and says what the library must see of it.
    pub(crate) fn hear(
        &self,
        message: Result<Message<'_>, Unreadable>,
    ) -> Option<ServerJsonRpcMessage> {
        match message {
            Ok(Message::Result { id, result }) => self.answered(id, result),
            Ok(Message::Error { id: Some(id), error }) => self.refused(&id, error),
            Ok(Message::Error { id: None, error }) => {
                self.odd(&format!("an error about nothing: {} {}", error.code, error.message));
                None
            }
            Ok(
                Message::Request { method, params, .. } | Message::Notification { method, params },
            ) if params.is_some_and(|params| params.get().len() > ASIDE_BYTES_MAX) => {
                let method = typed::cut(&method);
                self.odd(&format!("`{method}` of more than {ASIDE_BYTES_MAX} bytes was dropped"));
                None
            }
            Ok(Message::Request { id, method, params }) => self.wished(id, &method, params),
            Ok(Message::Notification { method, params }) => self.told(&method, params),
            Err(Unreadable::NoAnswer { id }) => {
                let why = Unreadable::NoAnswer { id: id.clone() }.to_string();
                self.settle(&id, Err(Failure::Protocol { why }))
            }
            Err(unreadable) => {
                self.odd(&unreadable.to_string());
                None
            }
        }
    }

    /// The server does not answer `server/discover`. The library hears that there is no such thing.
    pub(crate) fn give_up_discovery(&self) -> Option<ServerJsonRpcMessage> {
        let mut open = lock(&self.open);
        let discovery = open
            .waiting
            .iter_mut()
            .find(|(_, waiting)| matches!(waiting, Waiting::Library { method: Method::Discover }));
        let (id, waiting) = discovery?;
        *waiting = Waiting::Late;
        let error =
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer to `server/discover`", None);
        Some(ServerJsonRpcMessage::error(error, Some(id.clone())))
    }

    fn answered(&self, id: RequestId, result: &RawValue) -> Option<ServerJsonRpcMessage> {
        let library = match lock(&self.open).waiting.get(&id) {
            Some(Waiting::Library { method }) => Some(*method),
            Some(Waiting::Late) => {
                self.handshake.discovered_late(result);
                None
            }
            Some(Waiting::Caller { .. }) | None => None,
        };
        let Some(method) = library else { return self.settle(&id, Ok(result.to_owned())) };
        self.forget(&id);
        let result = match method {
            Method::Initialize => self.handshake.initialized(result),
            Method::Discover => self.handshake.discovered(result),
            Method::Listen => typed::listened(result),
            Method::ListTools | Method::Other => Ok(ServerResult::empty(())),
        };
        Some(match result {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            Err(why) => {
                // Some old servers answer whatever they are asked: then the old way is tried.
                if method != Method::Discover {
                    self.handshake.fail(Failure::Unusable { why: why.clone() });
                }
                let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
                ServerJsonRpcMessage::error(error, Some(id))
            }
        })
    }

    fn refused(&self, id: &RequestId, error: ErrorObject) -> Option<ServerJsonRpcMessage> {
        let library = match lock(&self.open).waiting.get(id) {
            Some(Waiting::Library { method }) => Some(*method),
            Some(Waiting::Caller { .. } | Waiting::Late) | None => None,
        };
        let Some(method) = library else {
            let ErrorObject { code, message, data } = error;
            return self.settle(id, Err(Failure::Upstream { code, message, data }));
        };
        self.forget(id);
        if method == Method::Initialize
            && let Some(result) = self.handshake.instead()
        {
            let result = ServerResult::InitializeResult(result);
            return Some(ServerJsonRpcMessage::response(result, id.clone()));
        }
        let code = ErrorCode(i32::try_from(error.code).unwrap_or(i32::MIN));
        let error = ErrorData::new(code, error.message, error.data);
        Some(ServerJsonRpcMessage::error(error, Some(id.clone())))
    }

    fn settle(&self, id: &RequestId, outcome: Outcome) -> Option<ServerJsonRpcMessage> {
        // A tool that was forgotten, an answer that came twice, or an id of the upstream's own making.
        let waiting = {
            let mut open = lock(&self.open);
            open.given_up.answered(id);
            open.take(id)
        };
        let Some(waiting) = waiting else {
            self.odd(&format!("an answer to {id}, which nobody waits for, was dropped"));
            return None;
        };
        let Waiting::Caller { ticket, method, .. } = waiting else { return None };
        let mut stand_in = ServerResult::empty(());
        if method == Method::ListTools
            && let Ok(result) = &outcome
        {
            stand_in = typed::listed_tools(result);
        }
        ticket.settle(outcome);
        Some(ServerJsonRpcMessage::response(stand_in, id.clone()))
    }

    /// The upstream wants something from us.
    fn wished(
        &self,
        id: RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ServerJsonRpcMessage> {
        let is_too_much = {
            let mut open = lock(&self.open);
            open.wishes.len() >= WISHES_MAX || !open.wishes.insert(id.clone())
        };
        if is_too_much {
            self.odd(&format!("`{method}` is not answered, for it asks too much at a time"));
            return None;
        }
        Some(typed::request(id, method, params))
    }

    /// The upstream does not want any more what it wanted.
    fn withdrawn(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            request_id: RequestId,
        }
        if let Some(Ok(params)) = params.map(|params| serde_json::from_str::<Params>(params.get()))
        {
            lock(&self.open).wishes.remove(&params.request_id);
        }
    }

    fn told(&self, method: &str, params: Option<&RawValue>) -> Option<ServerJsonRpcMessage> {
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/tools/list_changed" => self.notices.changed(Kind::Tools),
            "notifications/prompts/list_changed" => self.notices.changed(Kind::Prompts),
            "notifications/resources/list_changed" => {
                self.notices.changed(Kind::Resources);
                self.notices.changed(Kind::Templates);
            }
            "notifications/resources/updated" => self.updated(params),
            "notifications/message" => {
                let server = self.server();
                tracing::debug!(server, "it logs: {}", typed::shown(params));
            }
            "notifications/cancelled" => {
                self.withdrawn(params);
                return typed::notification(method, params);
            }
            "notifications/subscriptions/acknowledged" => {
                return typed::notification(method, params);
            }
            _ => tracing::trace!(
                server = self.server(),
                method,
                "a notification that means nothing to us"
            ),
        }
        None
    }

    fn progressed(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: NumberOrString,
            #[serde(default)]
            progress: f64,
            total: Option<f64>,
            message: Option<String>,
        }
        let Some(Ok(params)) = params.map(|params| serde_json::from_str::<Params>(params.get()))
        else {
            self.odd("progress that cannot be read");
            return;
        };
        let token = match params.progress_token {
            NumberOrString::String(text) => {
                text.parse().map_or(NumberOrString::String(text), NumberOrString::Number)
            }
            number @ NumberOrString::Number(_) => number,
        };
        let Some(course) = lock(&self.open).progress.get(&ProgressToken(token)).cloned() else {
            return;
        };
        course.deadline.extend();
        if let Some(hear) = &course.progress {
            let message = params.message.map(|mut message| {
                message.truncate(message.floor_char_boundary(PROGRESS_BYTES_MAX));
                message
            });
            hear(Progress { done: params.progress, total: params.total, message });
        }
    }

    fn updated(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Params {
            uri: String,
        }
        match params.map(|params| serde_json::from_str::<Params>(params.get())) {
            Some(Ok(Params { uri })) if uri.len() <= URI_BYTES_MAX => self.notices.updated(uri),
            Some(Ok(_)) => self.odd("news of a resource whose `uri` is too long was dropped"),
            _ => self.odd("news of a resource that has no `uri`"),
        }
    }

    /// Something that a good server does not do.
    pub(crate) fn odd(&self, what: &str) {
        match self.oddities.fetch_add(1, Ordering::Relaxed) {
            0..ODDITIES_LOGGED => tracing::warn!(server = self.server(), "{what}"),
            ODDITIES_LOGGED => {
                tracing::warn!(server = self.server(), "more of this kind is not logged");
            }
            _ => {}
        }
    }
}

/// The request of the upstream that a message of ours answers.
pub(crate) fn answers(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Response(response) => Some(response.id.clone()),
        ClientJsonRpcMessage::Error(error) => error.id.clone(),
        ClientJsonRpcMessage::Request(_) | ClientJsonRpcMessage::Notification(_) => None,
    }
}

impl Open {
    fn take(&mut self, id: &RequestId) -> Option<Waiting> {
        let waiting = self.waiting.remove(id)?;
        if let Waiting::Caller { token: Some(token), .. } = &waiting {
            self.progress.remove(token);
        }
        Some(waiting)
    }

    /// The upstream may still be at it, whoever waited.
    fn give_up(&mut self, id: &RequestId, ticket: &Ticket) {
        if let Some(party) = &ticket.course().party {
            self.given_up.add(id, party, Instant::now());
        }
    }
}
