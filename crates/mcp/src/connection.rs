//! One peer: what it has negotiated, what it waits for, and what it wants to hear about. Every request
//! gets exactly one answer, a cancelled one none.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::action::{Action, Changed, Outcome, Ticket};
use crate::dispatch::{Shape, Step, outcome};
use crate::era::{legacy, modern};
use crate::jsonrpc::{self, Error, Id, Message, Received, Rejected, Request};
use crate::revision::Revision;
use crate::server::{Caching, Server};

/// How many resources a legacy client may subscribe to, and how many streams a modern one may open.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 1000;

/// How a peer is reached. Some of the product's first protocol is for stdio alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
}

#[derive(Debug)]
pub struct Connection {
    pub(crate) server: Arc<Server>,
    pub(crate) transport: Transport,
    /// What the handshake came to.
    pub(crate) revision: Option<Revision>,
    /// The resources that a legacy client has subscribed to.
    pub(crate) subscribed: BTreeSet<String>,
    /// The streams that a modern client has opened.
    listeners: Vec<Listener>,
    pending: HashMap<Ticket, Pending>,
    batches: HashMap<u64, Batch>,
    counter: u64,
}

#[derive(Debug)]
struct Listener {
    id: Id,
    filter: Value,
}

/// A request whose call is under way.
#[derive(Debug)]
struct Pending {
    id: Id,
    revision: Revision,
    shape: Shape,
    batch: Option<u64>,
}

/// Answers that go out together, once the last is there.
#[derive(Debug, Default)]
struct Batch {
    open: usize,
    /// Each with the id that it answers, where one could be read.
    replies: Vec<(Option<Id>, String)>,
}

impl Connection {
    pub fn new(server: Arc<Server>, transport: Transport) -> Self {
        Self {
            server,
            transport,
            revision: None,
            subscribed: BTreeSet::new(),
            listeners: Vec::new(),
            pending: HashMap::new(),
            batches: HashMap::new(),
            counter: 0,
        }
    }

    /// Takes one line, without its line end.
    pub fn receive(&mut self, line: &[u8], actions: &mut Vec<Action>) {
        match jsonrpc::receive(line) {
            Received::One(message) => self.message(message, None, actions),
            Received::Batch(members) => {
                let may_batch = self.revision.is_some_and(|revision| revision.traits().batches);
                if may_batch {
                    self.batch(members, actions);
                } else {
                    let error =
                        Error::invalid_request("batches are part of revision 2025-03-26 only");
                    actions.push(Action::Reply(jsonrpc::error(None, &error)));
                }
            }
        }
    }

    /// Refuses a line that was not read to its end.
    pub fn refuse_line(&mut self, details: &str, actions: &mut Vec<Action>) {
        let error = Error::invalid_request(details);
        actions.push(Action::Reply(jsonrpc::error(None, &error)));
    }

    /// Tells the client that nothing can go on, because of us.
    pub fn fail(&mut self, actions: &mut Vec<Action>) {
        actions.push(Action::Reply(jsonrpc::error(None, &Error::internal())));
    }

    /// Takes the outcome of a call. One that was cancelled meanwhile is nobody's business any more.
    pub fn finish(&mut self, ticket: Ticket, result: Outcome, actions: &mut Vec<Action>) {
        let Some(Pending { id, revision, shape, batch }) = self.pending.remove(&ticket) else {
            return;
        };
        let reply = match outcome(&self.server, revision, shape, result) {
            Ok(result) => jsonrpc::result(&id, &result),
            Err(error) => jsonrpc::error(Some(&id), &error),
        };
        self.reply(Some(&id), reply, batch, actions);
    }

    /// Tells who wants to know.
    pub fn changed(&mut self, changed: &Changed, actions: &mut Vec<Action>) {
        let mut notify = |method: &str, params: Value| {
            actions.push(Action::Notify(jsonrpc::notification(method, &params)));
        };
        if self.revision.is_some_and(|revision| revision.traits().list_changed) && changed.lists {
            notify("notifications/resources/list_changed", json!({}));
            notify("notifications/prompts/list_changed", json!({}));
        }
        for uri in changed.uris.iter().filter(|uri| self.subscribed.contains(*uri)) {
            notify("notifications/resources/updated", json!({"uri": uri}));
        }
        for listener in &self.listeners {
            let meta = listener.meta();
            let wants = |name: &str| changed.lists && listener.filter[name] == true;
            if wants("resourcesListChanged") {
                notify("notifications/resources/list_changed", json!({"_meta": meta}));
            }
            if wants("promptsListChanged") {
                notify("notifications/prompts/list_changed", json!({"_meta": meta}));
            }
            let wanted = listener.filter["resourceSubscriptions"].as_array();
            for uri in changed.uris.iter().filter(|uri| {
                wanted.is_some_and(|wanted| wanted.iter().any(|wanted| wanted == uri.as_str()))
            }) {
                notify("notifications/resources/updated", json!({"_meta": meta, "uri": uri}));
            }
        }
    }

    /// The end: streams get their answer, and calls under way are cancelled.
    pub fn close(&mut self, actions: &mut Vec<Action>) {
        actions.extend(self.pending.drain().map(|(ticket, _)| Action::Cancel(ticket)));
        for listener in self.listeners.drain(..) {
            let mut result = self.server.complete(modern::REVISION, json!({}), Caching::None);
            result["_meta"][modern::SUBSCRIPTION] = listener.meta()[modern::SUBSCRIPTION].clone();
            let reply = jsonrpc::result(&listener.id, &result.to_string());
            actions.push(Action::Reply(reply));
        }
    }

    fn batch(&mut self, members: Vec<Result<Message<'_>, Rejected>>, actions: &mut Vec<Action>) {
        self.counter += 1;
        let key = self.counter;
        // Open once for the batch itself, so that it does not end before all members are looked at.
        self.batches.insert(key, Batch { open: 1, replies: Vec::new() });
        for member in members {
            self.message(member, Some(key), actions);
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
            // Nothing was asked, so nothing is answered.
            Ok(Message::Response) => {}
            Err(Rejected { id, error }) => {
                self.join_batch(batch);
                let reply = jsonrpc::error(id.as_ref(), &error);
                self.reply(id.as_ref(), reply, batch, actions);
            }
        }
    }

    fn request(&mut self, request: &Request<'_>, batch: Option<u64>, actions: &mut Vec<Action>) {
        self.join_batch(batch);
        let is_modern = modern::is_modern(request);
        let step = if batch.is_some() && request.method == "initialize" {
            Err(Error::invalid_request("`initialize` must not be part of a batch"))
        } else if is_modern {
            modern::request(self, request)
        } else {
            legacy::request(self, request)
        };
        let id = &request.id;
        match step {
            Ok(Step::Answer(result)) => {
                self.reply(Some(id), jsonrpc::result(id, &result), batch, actions);
            }
            Ok(Step::AnswerAndClose(result)) => {
                self.close(actions);
                self.reply(Some(id), jsonrpc::result(id, &result), batch, actions);
                actions.push(Action::Close);
            }
            Ok(Step::Call(call, shape)) => {
                self.warn_if_in_flight(id, actions);
                self.counter += 1;
                let ticket = Ticket(self.counter);
                let handshake = self.revision.unwrap_or(modern::REVISION);
                let revision = if is_modern { modern::REVISION } else { handshake };
                let pending = Pending { id: id.clone(), revision, shape, batch };
                self.pending.insert(ticket, pending);
                actions.push(Action::Call { ticket, call });
            }
            Ok(Step::Listen(_)) if self.listeners.len() >= SUBSCRIPTIONS_MAX => {
                let error = too_many_subscriptions();
                self.reply(Some(id), jsonrpc::error(Some(id), &error), batch, actions);
            }
            Ok(Step::Listen(filter)) => {
                self.warn_if_in_flight(id, actions);
                let listener = Listener { id: id.clone(), filter };
                let params = json!({"_meta": listener.meta(), "notifications": listener.filter});
                let method = "notifications/subscriptions/acknowledged";
                actions.push(Action::Notify(jsonrpc::notification(method, &params)));
                self.listeners.push(listener);
                // Answered at its end, on its own.
                self.leave_batch_if_any(batch, actions);
            }
            Err(error) => {
                self.reply(Some(id), jsonrpc::error(Some(id), &error), batch, actions);
            }
        }
    }

    /// Both will be answered, but the client cannot tell the answers apart.
    fn warn_if_in_flight(&self, id: &Id, actions: &mut Vec<Action>) {
        let mut waiting = self.pending.values().map(|pending| &pending.id);
        let mut open = self.listeners.iter().map(|listener| &listener.id);
        if waiting.any(|waiting| waiting == id) || open.any(|open| open == id) {
            let id = id.as_json();
            actions.push(Action::Warn(format!("two requests are in flight with the id {id}")));
        }
    }

    /// A notification has no answer, whatever it says.
    fn notified(&mut self, method: &str, params: Option<&RawValue>, actions: &mut Vec<Action>) {
        if method != "notifications/cancelled" {
            return;
        }
        let fields: Result<Value, Error> = jsonrpc::params(params);
        let Some(wanted) = fields.ok().and_then(|fields| fields.get("requestId").cloned()) else {
            return;
        };
        let is_wanted =
            |id: &Id| serde_json::from_str::<Value>(id.as_json()).is_ok_and(|id| id == wanted);
        self.listeners.retain(|listener| !is_wanted(&listener.id));
        // What is answered already, but held back for the rest of its batch, is not sent either.
        for batch in self.batches.values_mut() {
            batch.replies.retain(|(id, _)| !id.as_ref().is_some_and(is_wanted));
        }
        let cancelled = self.pending.extract_if(|_, pending| is_wanted(&pending.id));
        let cancelled: Vec<(Ticket, Pending)> = cancelled.collect();
        for (ticket, pending) in cancelled {
            actions.push(Action::Cancel(ticket));
            self.leave_batch_if_any(pending.batch, actions);
        }
    }

    /// Sends a reply, or keeps it for the batch that it belongs to.
    fn reply(
        &mut self,
        id: Option<&Id>,
        reply: String,
        batch: Option<u64>,
        actions: &mut Vec<Action>,
    ) {
        let Some(key) = batch else {
            actions.push(Action::Reply(reply));
            return;
        };
        if let Some(batch) = self.batches.get_mut(&key) {
            batch.replies.push((id.cloned(), reply));
        }
        self.leave_batch(key, actions);
    }

    fn join_batch(&mut self, batch: Option<u64>) {
        if let Some(batch) = batch.and_then(|key| self.batches.get_mut(&key)) {
            batch.open += 1;
        }
    }

    fn leave_batch_if_any(&mut self, batch: Option<u64>, actions: &mut Vec<Action>) {
        if let Some(key) = batch {
            self.leave_batch(key, actions);
        }
    }

    /// The last one out sends the answers; a batch of notifications has none.
    fn leave_batch(&mut self, key: u64, actions: &mut Vec<Action>) {
        let Some(batch) = self.batches.get_mut(&key) else {
            return;
        };
        batch.open -= 1;
        if batch.open > 0 {
            return;
        }
        if let Some(Batch { replies, .. }) = self.batches.remove(&key)
            && !replies.is_empty()
        {
            let replies: Vec<String> = replies.into_iter().map(|(_, reply)| reply).collect();
            actions.push(Action::Reply(format!("[{}]", replies.join(","))));
        }
    }
}

pub(crate) fn too_many_subscriptions() -> Error {
    Error::invalid_params(format!("there may be {SUBSCRIPTIONS_MAX} subscriptions at a time"))
}

impl Listener {
    fn meta(&self) -> Value {
        let id: Value = serde_json::from_str(self.id.as_json()).unwrap_or_default();
        json!({modern::SUBSCRIPTION: id})
    }
}
