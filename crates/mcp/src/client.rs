//! The client side of a connection, without I/O: it numbers requests and classifies each message of the server. Results stay
//! raw JSON. Malformed and excessive messages are reported and dropped.
//!
//! A host keeps one [`Client`] per connection. `T` is what the host needs to deliver a response, `R` what it needs to stop
//! answering a request of the server.

mod events;
mod handshake;
mod input_required;
mod message;
mod pages;
mod request;
mod subscription;

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::jsonrpc::Id;
pub use events::{Resumption, SseEvent, SseEventTooLarge, SseParser};
pub use handshake::{Handshake, HandshakeError, HandshakeStep, ServerInfo};
pub use input_required::{InputRequest, InputRequired};
pub use message::{ErrorObject, Message, MessageError, ResponseId, guess_id, read};
pub use pages::{ListKind, PageStep, Pages};
pub use request::{ClientInfo, Request, cancelled, initialized, version_header};
pub use subscription::Filter;

use crate::jsonrpc;

/// The longest message: a file of 50 MiB in Base64, plus its envelope.
pub const MESSAGE_BYTES_MAX: usize = 72 * 1024 * 1024;
/// The most requests of a server that are answered at a time. Others get no response.
pub const SERVER_REQUESTS_MAX: usize = 64;
/// The largest parameters of a request or notification of the server.
const PARAMS_BYTES_MAX: usize = 1024 * 1024;
/// The longest URI in an update. Slow subscribers may have many of them queued.
const URI_BYTES_MAX: usize = 8 * 1024;
/// How much of a progress message is forwarded.
const PROGRESS_BYTES_MAX: usize = 4 * 1024;
/// How much of a text is shown in a log.
const SHOWN_BYTES_MAX: usize = 500;

/// The id of a request of ours. Ids increase.
pub type RequestId = u64;

/// The requests in flight over one connection, in both directions.
#[derive(Debug)]
pub struct Client<T, R> {
    next_id: RequestId,
    pending: HashMap<RequestId, T>,
    server_requests: HashMap<Id, R>,
}

/// What a message of a server means.
#[derive(Debug)]
pub enum Incoming<'m, T, R> {
    /// The response to a pending request.
    Response {
        id: RequestId,
        pending: T,
        outcome: Result<&'m RawValue, ResponseError>,
    },
    /// A response to a request that is not pending: late, repeated, or never sent.
    Unmatched(ResponseId),
    /// A request of the server. A host that answers it calls [`Client::accept_request`] first.
    Request(ServerRequest),
    /// The server cancelled a request that is being answered.
    RequestCancelled(R),
    /// Progress of the request with this id.
    Progress {
        id: RequestId,
        progress: Progress,
    },
    ListChanged(ListKind),
    ResourceUpdated {
        uri: String,
    },
    /// The notifications that the server agreed to send for a subscription.
    SubscriptionAcknowledged {
        id: RequestId,
        filter: Filter,
    },
    /// The server ended the request with this id, if it is a subscription.
    SubscriptionEnded {
        id: RequestId,
    },
    /// A log message of the server, truncated.
    Log(String),
    UnknownNotification(String),
    /// A message that violates the protocol, described.
    Anomaly(String),
}

/// Why a response has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseError {
    Rpc(ErrorObject),
    /// It has neither a result nor an error.
    NoOutcome,
}

/// A request of the server.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    pub id: Id,
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

impl ServerRequest {
    pub fn result(&self, result: &Value) -> String {
        jsonrpc::result(&self.id, &result.to_string())
    }

    /// The response to a method that this client does not offer.
    pub fn not_offered(&self) -> String {
        let message = format!("`{}` is not offered", self.method);
        let error = jsonrpc::Error::said(METHOD_NOT_FOUND, message, None);
        jsonrpc::error(Some(&self.id), &error)
    }
}

/// JSON-RPC's code for an unknown method.
pub const METHOD_NOT_FOUND: i32 = -32601;

/// How far a request is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

impl<T, R> Default for Client<T, R> {
    fn default() -> Self {
        Self { next_id: 0, pending: HashMap::new(), server_requests: HashMap::new() }
    }
}

impl<T, R> Client<T, R> {
    /// Registers a request and returns its id.
    pub fn register(&mut self, pending: T) -> RequestId {
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, pending);
        id
    }

    /// Removes a request. A later response to it is unmatched.
    pub fn remove(&mut self, id: RequestId) -> Option<T> {
        self.pending.remove(&id)
    }

    /// Removes all requests.
    pub fn drain(&mut self) -> impl Iterator<Item = (RequestId, T)> + use<T, R> {
        std::mem::take(&mut self.pending).into_iter()
    }

    pub fn get(&self, id: RequestId) -> Option<&T> {
        self.pending.get(&id)
    }

    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.pending.get_mut(&id)
    }

    pub fn pending(&self) -> impl Iterator<Item = (RequestId, &T)> {
        self.pending.iter().map(|(id, pending)| (*id, pending))
    }

    /// Records that a request of the server is being answered.
    pub fn accept_request(&mut self, id: Id, handle: R) {
        self.server_requests.insert(id, handle);
    }

    /// Records that a response was sent or given up. Returns whether the server still waits for it.
    pub fn finish_response(&mut self, id: &Id) -> bool {
        self.server_requests.remove(id).is_some()
    }

    /// Classifies one message.
    pub fn receive<'m>(
        &mut self,
        message: Result<Message<'m>, MessageError>,
    ) -> Incoming<'m, T, R> {
        match message {
            Ok(Message::Result { id, result }) => self.response(id, Ok(result)),
            Ok(Message::Error { id: Some(id), error }) => {
                self.response(id, Err(ResponseError::Rpc(error)))
            }
            Ok(Message::Error { id: None, error: ErrorObject { code, message, .. } }) => {
                Incoming::Anomaly(format!("an error about nothing: {code} {message}"))
            }
            Ok(
                Message::Request { method, params, .. } | Message::Notification { method, params },
            ) if params.is_some_and(|params| params.get().len() > PARAMS_BYTES_MAX) => {
                let method = cut(&method);
                Incoming::Anomaly(format!(
                    "`{method}` of more than {PARAMS_BYTES_MAX} bytes was dropped"
                ))
            }
            Ok(Message::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Message::Notification { method, params }) => self.notification(&method, params),
            Err(MessageError::NoOutcome { id }) => self.response(id, Err(ResponseError::NoOutcome)),
            Err(unreadable) => Incoming::Anomaly(unreadable.to_string()),
        }
    }

    fn response<'m>(
        &mut self,
        id: ResponseId,
        outcome: Result<&'m RawValue, ResponseError>,
    ) -> Incoming<'m, T, R> {
        let ResponseId::Ours(number) = id else { return Incoming::Unmatched(id) };
        match self.pending.remove(&number) {
            Some(pending) => Incoming::Response { id: number, pending, outcome },
            None => Incoming::Unmatched(id),
        }
    }

    fn request<'m>(
        &mut self,
        id: Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Incoming<'m, T, R> {
        if self.server_requests.len() >= SERVER_REQUESTS_MAX
            || self.server_requests.contains_key(&id)
        {
            let method = cut(method);
            return Incoming::Anomaly(format!(
                "`{method}` is not answered, for it asks too much at a time"
            ));
        }
        let (method, params) = (method.to_owned(), params.map(RawValue::to_owned));
        Incoming::Request(ServerRequest { id, method, params })
    }

    fn notification<'m>(&mut self, method: &str, params: Option<&RawValue>) -> Incoming<'m, T, R> {
        match method {
            "notifications/progress" => progress(params),
            "notifications/tools/list_changed" => Incoming::ListChanged(ListKind::Tools),
            "notifications/prompts/list_changed" => Incoming::ListChanged(ListKind::Prompts),
            "notifications/resources/list_changed" => Incoming::ListChanged(ListKind::Resources),
            "notifications/resources/updated" => updated(params),
            "notifications/message" => {
                Incoming::Log(params.map(|params| cut(params.get())).unwrap_or_default())
            }
            "notifications/cancelled" => self.cancelled(params),
            "notifications/subscriptions/acknowledged" => subscription::acknowledged(params),
            _ => Incoming::UnknownNotification(cut(method)),
        }
    }

    /// The server cancels a request of its own, or ends a subscription of ours.
    fn cancelled<'m>(&mut self, params: Option<&RawValue>) -> Incoming<'m, T, R> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'p> {
            #[serde(borrow)]
            request_id: &'p RawValue,
        }
        let params =
            params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
        let id = params.and_then(|params| Id::read(params.request_id));
        let Some(id) = id else {
            return Incoming::UnknownNotification("notifications/cancelled".to_owned());
        };
        if let Some(handle) = self.server_requests.remove(&id) {
            return Incoming::RequestCancelled(handle);
        }
        match ResponseId::new(id) {
            ResponseId::Ours(id) => Incoming::SubscriptionEnded { id },
            ResponseId::Foreign(_) => {
                Incoming::UnknownNotification("notifications/cancelled".to_owned())
            }
        }
    }
}

fn progress<'m, T, R>(params: Option<&RawValue>) -> Incoming<'m, T, R> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'p> {
        #[serde(borrow)]
        progress_token: &'p RawValue,
        #[serde(default)]
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let params = params.map(|params| serde_json::from_str::<Params<'_>>(params.get()));
    let Some(Ok(params)) = params else {
        return Incoming::Anomaly("progress that cannot be read".to_owned());
    };
    let Some(token) = Id::read(params.progress_token) else {
        return Incoming::Anomaly("progress that cannot be read".to_owned());
    };
    let message = params.message.map(|mut message| {
        message.truncate(message.floor_char_boundary(PROGRESS_BYTES_MAX));
        message
    });
    let progress = Progress { done: params.progress, total: params.total, message };
    match ResponseId::new(token) {
        ResponseId::Ours(id) => Incoming::Progress { id, progress },
        ResponseId::Foreign(_) => {
            Incoming::UnknownNotification("notifications/progress".to_owned())
        }
    }
}

fn updated<'m, T, R>(params: Option<&RawValue>) -> Incoming<'m, T, R> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    match params.map(|params| serde_json::from_str::<Params>(params.get())) {
        Some(Ok(Params { uri })) if uri.len() <= URI_BYTES_MAX => Incoming::ResourceUpdated { uri },
        Some(Ok(_)) => {
            Incoming::Anomaly("news of a resource whose `uri` is too long was dropped".to_owned())
        }
        _ => Incoming::Anomaly("news of a resource that has no `uri`".to_owned()),
    }
}

fn cut(text: &str) -> String {
    untrusted_text::cut(text, SHOWN_BYTES_MAX)
}
