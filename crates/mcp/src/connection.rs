//! One peer: what it has negotiated, what it waits for, and what it wants to hear about. Every request
//! gets exactly one answer, a cancelled one none.

mod answering;
mod calling;
mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use answering::{ask_id, taken_back};

use crate::action::{Abilities, Action, Level, OK, Outcome, Reply, Ticket};
use crate::asking::Asking;
use crate::batches::Batches;
use crate::dispatch::{PARAMS_BYTES_MAX, Shape, Step, outcome};
use crate::era::{legacy, modern};
use crate::jsonrpc::{self, Body, Error, Id, Message, Received, Rejected, Request};
use crate::listening::Listener;
use crate::revision::Revision;
use crate::server::{Caching, Server};
use crate::traced::Traced;

/// How many resources a client may subscribe to, and how many streams a modern one may open.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 1000;
/// The longest URI that is remembered.
pub(crate) const URI_BYTES_MAX: usize = 2048;

/// How many messages may come together. Their answers wait for the last of them, and cannot be written before.
pub const BATCH_MAX: usize = 100;

/// Room beyond this is not kept.
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// How a peer is reached. Some of the product's first protocol is for stdio alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
}

/// What a handshake came to. Whoever has it can go on where it ended, in any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    pub revision: Revision,
    pub abilities: Abilities,
}

/// Who is on the other side of an HTTP request.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    pub principal: Option<Arc<str>>,
    /// What it may do, in the host's words.
    pub scope: Option<Arc<str>>,
    pub handshake: Option<Handshake>,
    /// Another for every connection, in every process.
    pub salt: u128,
    /// From which level on it wants to read log lines, if it has said so.
    pub log_level: Option<Level>,
}

#[derive(Debug)]
pub struct Connection {
    pub(crate) server: Arc<Server>,
    pub(crate) transport: Transport,
    /// What the handshake came to.
    pub(crate) revision: Option<Revision>,
    /// By the handshake, what the client can do for us.
    pub(crate) abilities: Abilities,
    /// From which level on the client wants to read log lines, once it has said so.
    pub(crate) log_level: Option<Level>,
    /// Who this is, where the transport knows.
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) scope: Option<Arc<str>>,
    /// What makes the ids of our own requests different from everybody else's, where several connections are one
    /// client.
    salt: Option<u128>,
    /// The resources that a legacy client has subscribed to.
    pub(crate) subscribed: BTreeSet<String>,
    /// The streams that a modern client has opened.
    pub(crate) listeners: Vec<Listener>,
    /// How often one of these two became another, or the client's user was asked.
    pub(crate) subscriptions: u64,
    /// By ticket, and so in the order in which they came.
    pending: BTreeMap<Ticket, Pending>,
    batches: Batches,
    counter: u64,
    /// The client has shut us down: what it still sends is not looked at.
    is_closed: bool,
    /// A `shutdown` that is answered after the calls that came before it.
    shutdown: Option<Shutdown>,
    /// A text that has been sent, whose room is used again.
    spare: String,
}

/// A request whose call is under way.
#[derive(Debug)]
struct Pending {
    id: Id,
    revision: Revision,
    shape: Shape,
    batch: Option<u64>,
    abilities: Abilities,
    telling: Option<Telling>,
    /// From which level on its client wants to read log lines.
    log_level: Option<Level>,
    /// What its user has been asked, and has not answered yet.
    asking: Option<Asking>,
    /// For the host, when it is carried out again.
    traced: Option<Arc<Traced>>,
}

#[derive(Debug)]
struct Shutdown {
    id: Id,
    result: String,
    batch: Option<u64>,
}

/// Progress that the client wants to hear about.
#[derive(Debug)]
struct Telling {
    token: Box<RawValue>,
    /// What was told last: it must grow.
    done: f64,
}

impl Connection {
    pub fn new(server: Arc<Server>, transport: Transport) -> Self {
        Self {
            server,
            transport,
            revision: None,
            abilities: Abilities::default(),
            log_level: None,
            principal: None,
            scope: None,
            salt: None,
            subscribed: BTreeSet::new(),
            listeners: Vec::new(),
            subscriptions: 0,
            pending: BTreeMap::new(),
            batches: Batches::default(),
            counter: 0,
            is_closed: false,
            shutdown: None,
            spare: String::new(),
        }
    }

    /// For a request over HTTP, or for several of one client.
    pub fn over_http(server: Arc<Server>, peer: Peer) -> Self {
        let Peer { principal, scope, handshake, salt, log_level } = peer;
        Self {
            revision: handshake.map(|handshake| handshake.revision),
            abilities: handshake.map(|handshake| handshake.abilities).unwrap_or_default(),
            principal,
            scope,
            salt: Some(salt),
            log_level,
            ..Self::new(server, Transport::Http)
        }
    }

    /// What the handshake came to, if there was one.
    pub fn handshake(&self) -> Option<Handshake> {
        let abilities = self.abilities;
        self.revision.map(|revision| Handshake { revision, abilities })
    }

    /// From which level on the client wants to read log lines, once it has said so.
    pub fn log_level(&self) -> Option<Level> {
        self.log_level
    }

    /// Nothing is under way, and nobody listens.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.listeners.is_empty()
    }

    /// Takes one line, without its line end.
    pub fn receive(&mut self, line: &[u8], actions: &mut Vec<Action>) {
        self.take(Body::read(line), actions);
    }

    /// Takes what was read already.
    pub fn take(&mut self, body: Body<'_>, actions: &mut Vec<Action>) {
        match body.0 {
            Received::One(message) => self.message(message, None, actions),
            Received::Batch(members) => {
                let may_batch = self.revision.is_some_and(|revision| revision.traits().batches);
                if !may_batch {
                    self.refuse_line("batches are part of revision 2025-03-26 only", actions);
                } else if members.len() > BATCH_MAX {
                    let details = format!("a batch may have {BATCH_MAX} messages");
                    self.refuse_line(&details, actions);
                } else {
                    self.batch(members, actions);
                }
            }
        }
    }

    /// Refuses a line that was not read to its end.
    pub fn refuse_line(&mut self, details: &str, actions: &mut Vec<Action>) {
        actions.push(self.refusal(None, &Error::invalid_request(details)));
    }

    /// Tells the client that nothing can go on, because of us.
    pub fn fail(&mut self, actions: &mut Vec<Action>) {
        actions.push(self.refusal(None, &Error::internal()));
    }

    /// Takes the outcome of a call. One that was cancelled meanwhile is nobody's business any more.
    pub fn finish(&mut self, ticket: Ticket, result: Outcome, actions: &mut Vec<Action>) {
        self.end_call(ticket, result, actions);
        if self.pending.is_empty() && self.shutdown.is_some() {
            self.close(actions);
        }
    }

    fn end_call(&mut self, ticket: Ticket, result: Outcome, actions: &mut Vec<Action>) {
        let Some(mut pending) = self.pending.remove(&ticket) else {
            return;
        };
        let Pending { revision, shape, abilities, .. } = pending;
        let traits = revision.traits();
        let result = match result {
            Outcome::Ask(ask)
                if !traits.is_modern
                    && !ask.questions.is_empty()
                    && ask.check(abilities).is_ok() =>
            {
                let salt = self.salt;
                let new_id = |state: Option<&str>, name: &str| {
                    self.counter += 1;
                    ask_id(salt, self.counter, state, name)
                };
                let patience = ask.patience;
                let (asking, requests) = Asking::begin(*ask, &traits, new_id);
                let requests = requests.into_iter();
                actions.extend(requests.map(|(id, message)| Action::Ask {
                    ticket,
                    id,
                    message,
                    patience,
                }));
                pending.asking = Some(asking);
                self.pending.insert(ticket, pending);
                self.subscriptions += 1;
                return;
            }
            result => result,
        };
        let Pending { id, batch, .. } = pending;
        let mut reply = std::mem::take(&mut self.spare);
        reply.clear();
        reply.reserve(result.length());
        jsonrpc::begin_result(&id, &mut reply);
        match outcome(&self.server, revision, shape, abilities, result, &mut reply) {
            Ok(()) => {
                reply.push('}');
                self.reply(Some(&id), reply, OK, batch, actions);
            }
            Err(error) => {
                let status = if traits.is_modern { error.status } else { OK };
                self.reply(Some(&id), jsonrpc::error(Some(&id), &error), status, batch, actions);
            }
        }
    }

    /// Takes back a text that has been sent: the next one is as long, mostly, and needs no room of its own.
    pub fn recycle(&mut self, sent: String) {
        if sent.capacity() <= SPARE_BYTES_MAX {
            self.spare = sent;
        }
    }

    /// The end: streams get their answer, calls in flight are cancelled, and what waited for them is sent.
    pub fn close(&mut self, actions: &mut Vec<Action>) {
        self.end_calls(actions);
        let shutdown = self.shutdown.take();
        let is_shutdown = shutdown.is_some();
        if let Some(Shutdown { id, result, batch }) = shutdown {
            self.reply(Some(&id), jsonrpc::result(&id, &result), OK, batch, actions);
        }
        actions.extend(self.batches.end_all().map(answered));
        if is_shutdown {
            actions.push(Action::Close);
        }
    }

    fn end_calls(&mut self, actions: &mut Vec<Action>) {
        let pending = std::mem::take(&mut self.pending);
        actions.extend(pending.into_keys().map(Action::Cancel));
        for listener in self.listeners.drain(..) {
            let mut result = self.server.complete(modern::REVISION, json!({}), Caching::None);
            result["_meta"][modern::SUBSCRIPTION] = listener.meta()[modern::SUBSCRIPTION].clone();
            actions.push(answered(jsonrpc::result(&listener.id, &result.to_string())));
        }
    }

    fn batch(&mut self, members: Vec<Result<Message<'_>, Rejected>>, actions: &mut Vec<Action>) {
        self.counter += 1;
        let key = self.counter;
        self.batches.begin(key);
        for member in members {
            self.message(member, Some(key), actions);
            if self.is_closed {
                return;
            }
        }
        self.leave_batch(key, actions);
    }

    fn message(
        &mut self,
        message: Result<Message<'_>, Rejected>,
        batch: Option<u64>,
        actions: &mut Vec<Action>,
    ) {
        match message {
            Ok(Message::Request(request)) => self.request(&request, batch, actions),
            Ok(Message::Notification { method, params }) => self.notified(&method, params, actions),
            Ok(Message::Response { id, result }) => {
                if let Some(id) = id {
                    self.answered(&id, result, actions);
                }
            }
            Err(Rejected { id, error }) => {
                self.join_batch(batch);
                self.refuse(id.as_ref(), &error, error.status, batch, actions);
            }
        }
    }

    fn request(&mut self, request: &Request<'_>, batch: Option<u64>, actions: &mut Vec<Action>) {
        self.join_batch(batch);
        let (meta, refused) = match modern::meta(request) {
            Ok(meta) => (meta, None),
            Err(error) => (None, Some(error)),
        };
        let step = if let Some(error) = refused {
            Err(error)
        } else if batch.is_some() && request.method == "initialize" {
            Err(Error::invalid_request("`initialize` must not be part of a batch"))
        } else if batch.is_some() && self.transport == Transport::Http && is_kept(request) {
            // A batch has a connection of its own there, which ends with it.
            Err(Error::invalid_request("over HTTP this must not be part of a batch"))
        } else if let Some(meta) = meta {
            modern::request(self, request, meta)
        } else {
            legacy::request(self, request)
        };
        let id = &request.id;
        // With a handshake, the status is about the message and not about what it asks for.
        let status = |error: &Error| if meta.is_some() { error.status } else { OK };
        match step {
            Ok(Step::Answer(result)) => {
                self.reply(Some(id), jsonrpc::result(id, &result), OK, batch, actions);
            }
            Ok(Step::AnswerAndClose(result)) => {
                self.is_closed = true;
                self.shutdown = Some(Shutdown { id: id.clone(), result, batch });
                if self.pending.is_empty() {
                    self.close(actions);
                } else {
                    actions.push(Action::Drain);
                }
            }
            Ok(Step::Call(call, shape)) => {
                let origin = match (meta, self.revision) {
                    (None, Some(revision)) => Ok(legacy::origin(self, request, revision)),
                    (meta, _) => modern::origin(request, meta.unwrap_or(&Value::Null)),
                };
                match origin {
                    Ok(origin) => self.call(request, call, shape, origin, batch, actions),
                    Err(error) => {
                        self.refuse(Some(id), &error, status(&error), batch, actions);
                    }
                }
            }
            Ok(Step::Listen(filter)) if !self.has_room_for(&filter) => {
                let error = too_many_subscriptions();
                self.refuse(Some(id), &error, status(&error), batch, actions);
            }
            Ok(Step::Listen(filter)) => {
                self.warn_if_in_flight(id, actions);
                let listener = Listener { id: id.clone(), filter };
                let params = json!({"_meta": listener.meta(), "notifications": listener.filter});
                let method = "notifications/subscriptions/acknowledged";
                actions.push(Action::Notify(jsonrpc::notification(method, &params)));
                self.listeners.push(listener);
                self.subscriptions += 1;
                // Answered at its end, on its own.
                self.leave_batch_if_any(batch, actions);
            }
            Err(error) => self.refuse(Some(id), &error, status(&error), batch, actions),
        }
    }

    /// A notification has no answer, whatever it says.
    fn notified(&mut self, method: &str, params: Option<&RawValue>, actions: &mut Vec<Action>) {
        if method != "notifications/cancelled" {
            return;
        }
        let fields: Result<Value, Error> = jsonrpc::params_within(PARAMS_BYTES_MAX, params);
        let Some(wanted) = fields.ok().and_then(|fields| fields.get("requestId").cloned()) else {
            return;
        };
        let is_wanted =
            |id: &Id| serde_json::from_str::<Value>(id.as_json()).is_ok_and(|id| id == wanted);
        self.subscriptions += self.listeners.extract_if(.., |it| is_wanted(&it.id)).count() as u64;
        // What is answered already, but held back for the rest of its batch, is not sent either.
        self.batches.forget(is_wanted);
        let cancelled = self.pending.extract_if(.., |_, pending| is_wanted(&pending.id));
        let cancelled: Vec<(Ticket, Pending)> = cancelled.collect();
        for (ticket, pending) in cancelled {
            match &pending.asking {
                // Nobody carries the call out now; the question is taken back instead.
                Some(asking) => {
                    actions.extend(taken_back(asking));
                    let state = asking.state().map(str::to_owned);
                    actions.extend(state.map(|state| self.forget(state)));
                }
                None => actions.push(Action::Cancel(ticket)),
            }
            self.leave_batch_if_any(pending.batch, actions);
        }
    }

    /// Sends a reply, or keeps it for the batch that it belongs to.
    fn reply(
        &mut self,
        id: Option<&Id>,
        reply: String,
        status: u16,
        batch: Option<u64>,
        actions: &mut Vec<Action>,
    ) {
        let Some(key) = batch else {
            actions.push(Action::Reply(Reply { text: reply, status }));
            return;
        };
        self.batches.add(key, id, reply);
        self.leave_batch(key, actions);
    }

    fn refuse(
        &mut self,
        id: Option<&Id>,
        error: &Error,
        status: u16,
        batch: Option<u64>,
        actions: &mut Vec<Action>,
    ) {
        let text = self.error_text(id, error);
        self.reply(id, text, status, batch, actions);
    }

    fn refusal(&self, id: Option<&Id>, error: &Error) -> Action {
        Action::Reply(Reply { text: self.error_text(id, error), status: error.status })
    }

    fn error_text(&self, id: Option<&Id>, error: &Error) -> String {
        match self.transport {
            Transport::Stdio => jsonrpc::error(id, error),
            Transport::Http => jsonrpc::error_over_http(id, error),
        }
    }

    fn join_batch(&mut self, batch: Option<u64>) {
        if let Some(key) = batch {
            self.batches.join(key);
        }
    }

    fn leave_batch_if_any(&mut self, batch: Option<u64>, actions: &mut Vec<Action>) {
        if let Some(key) = batch {
            self.leave_batch(key, actions);
        }
    }

    /// The last one out sends the answers.
    fn leave_batch(&mut self, key: u64, actions: &mut Vec<Action>) {
        actions.extend(self.batches.leave(key).map(answered));
    }
}

/// Whether a request changes what its connection keeps.
fn is_kept(request: &Request<'_>) -> bool {
    ["resources/subscribe", "resources/unsubscribe", "logging/setLevel"].contains(&&*request.method)
}

fn answered(text: String) -> Action {
    Action::Reply(Reply { text, status: OK })
}

/// A URI that is to be remembered.
pub(crate) fn check_uri(uri: &str) -> Result<(), Error> {
    if uri.len() <= URI_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid_params(format!("a URI may have {URI_BYTES_MAX} bytes")))
}

pub(crate) fn too_many_subscriptions() -> Error {
    Error::invalid_params(format!("there may be {SUBSCRIPTIONS_MAX} subscriptions at a time"))
}
