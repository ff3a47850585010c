//! The client side of a connection, without I/O: requests go out under ids that grow, and each message of the server is
//! taken for what it is. What is large stays text; what is wrong or too much is said and dropped.
//!
//! A host has one [`Client`] for each connection, which remembers who waits for what. `T` is whoever waits for a response,
//! `R` is whatever prepares one for the server.

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
pub use events::{Event, EventParser, EventTooLarge, Resumption};
pub use handshake::{Handshake, HandshakeError, ServerInfo, Step};
pub use input_required::{InputRequest, InputRequired};
pub use message::{ErrorObject, Message, ResponseId, Unreadable, guess_id, read};
pub use pages::{Listed, Pages, Turn};
pub use request::{Request, Us, cancelled, initialized, version_header};
pub use subscription::Filter;

use crate::jsonrpc;

/// The longest message: a file of 50 MiB in Base64, and what is around it.
pub const MESSAGE_BYTES_MAX: usize = 72 * 1024 * 1024;
/// A server that wants more than this from us at a time gets no response to the rest.
pub const SERVER_REQUESTS_MAX: usize = 64;
/// The largest parameters of what is not a response.
const PARAMS_BYTES_MAX: usize = 1024 * 1024;
/// The longest URI of a resource that is told on: many of them wait for who is slow.
const URI_BYTES_MAX: usize = 8 * 1024;
/// How much of a server's words about progress is told on.
const PROGRESS_BYTES_MAX: usize = 4 * 1024;
/// How much of a text is shown in a log.
const SHOWN_BYTES_MAX: usize = 500;

/// The id of a request of ours. They grow.
pub type RequestId = u64;

/// Everything that is under way over one connection.
#[derive(Debug)]
pub struct Client<T, R> {
    next_id: RequestId,
    waiting: HashMap<RequestId, T>,
    preparing: HashMap<Id, R>,
}

/// What a message of a server means.
#[derive(Debug)]
pub enum Incoming<'m, T, R> {
    /// The response to a request, and who waits for it.
    Response {
        id: RequestId,
        waiting: T,
        outcome: Result<&'m RawValue, ResponseError>,
    },
    /// The response to a request that nobody waits for any more, or to none of ours.
    Stray(ResponseId),
    /// To be responded to, once [`Client::prepare`] was told of it.
    Request(ServerRequest),
    /// The server does not want this response any more.
    Withdrawn(R),
    /// Of the request with this id.
    Progress {
        id: RequestId,
        progress: Progress,
    },
    ListChanged(Listed),
    ResourceUpdated {
        uri: String,
    },
    /// What the server will tell of the subscription with this id.
    Acknowledged {
        id: RequestId,
        filter: Filter,
    },
    /// The server will tell no more of the request with this id, if that is a subscription.
    SubscriptionEnded {
        id: RequestId,
    },
    /// What the server writes to our log, cut.
    Log(String),
    Unknown(String),
    /// What a good server does not do.
    Odd(String),
}

/// Why a response has no result.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseError {
    Refused(ErrorObject),
    /// It has neither a result nor an error.
    Empty,
}

/// What a server wants from us.
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

    /// It asks for what we do not offer.
    pub fn not_offered(&self) -> String {
        let message = format!("`{}` is not offered", self.method);
        let error = jsonrpc::Error::said(METHOD_NOT_FOUND, message, None);
        jsonrpc::error(Some(&self.id), &error)
    }
}

/// JSON-RPC's code for a method that nobody knows.
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
        Self { next_id: 0, waiting: HashMap::new(), preparing: HashMap::new() }
    }
}

impl<T, R> Client<T, R> {
    /// The id for a request that somebody is about to wait for.
    pub fn begin(&mut self, waiting: T) -> RequestId {
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.insert(id, waiting);
        id
    }

    /// Forgets a request. Its response will be a stray one.
    pub fn forget(&mut self, id: RequestId) -> Option<T> {
        self.waiting.remove(&id)
    }

    /// Forgets all requests.
    pub fn forget_all(&mut self) -> impl Iterator<Item = (RequestId, T)> + use<T, R> {
        std::mem::take(&mut self.waiting).into_iter()
    }

    pub fn get(&self, id: RequestId) -> Option<&T> {
        self.waiting.get(&id)
    }

    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.waiting.get_mut(&id)
    }

    pub fn waiting(&self) -> impl Iterator<Item = (RequestId, &T)> {
        self.waiting.iter().map(|(id, waiting)| (*id, waiting))
    }

    /// A response to this request of the server's is being prepared.
    pub fn prepare(&mut self, id: Id, preparing: R) {
        self.preparing.insert(id, preparing);
    }

    /// The response has gone out, or never will. Says whether the server still wants it.
    pub fn responded(&mut self, id: &Id) -> bool {
        self.preparing.remove(id).is_some()
    }

    /// Takes in one message.
    pub fn hear<'m>(&mut self, message: Result<Message<'m>, Unreadable>) -> Incoming<'m, T, R> {
        match message {
            Ok(Message::Result { id, result }) => self.response(id, Ok(result)),
            Ok(Message::Error { id: Some(id), error }) => {
                self.response(id, Err(ResponseError::Refused(error)))
            }
            Ok(Message::Error { id: None, error: ErrorObject { code, message, .. } }) => {
                Incoming::Odd(format!("an error about nothing: {code} {message}"))
            }
            Ok(
                Message::Request { method, params, .. } | Message::Notification { method, params },
            ) if params.is_some_and(|params| params.get().len() > PARAMS_BYTES_MAX) => {
                let method = cut(&method);
                Incoming::Odd(format!(
                    "`{method}` of more than {PARAMS_BYTES_MAX} bytes was dropped"
                ))
            }
            Ok(Message::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Message::Notification { method, params }) => self.notification(&method, params),
            Err(Unreadable::NoAnswer { id }) => self.response(id, Err(ResponseError::Empty)),
            Err(unreadable) => Incoming::Odd(unreadable.to_string()),
        }
    }

    fn response<'m>(
        &mut self,
        id: ResponseId,
        outcome: Result<&'m RawValue, ResponseError>,
    ) -> Incoming<'m, T, R> {
        let ResponseId::Ours(number) = id else { return Incoming::Stray(id) };
        match self.waiting.remove(&number) {
            Some(waiting) => Incoming::Response { id: number, waiting, outcome },
            None => Incoming::Stray(id),
        }
    }

    fn request<'m>(
        &mut self,
        id: Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Incoming<'m, T, R> {
        if self.preparing.len() >= SERVER_REQUESTS_MAX || self.preparing.contains_key(&id) {
            let method = cut(method);
            return Incoming::Odd(format!(
                "`{method}` is not answered, for it asks too much at a time"
            ));
        }
        let (method, params) = (method.to_owned(), params.map(RawValue::to_owned));
        Incoming::Request(ServerRequest { id, method, params })
    }

    fn notification<'m>(&mut self, method: &str, params: Option<&RawValue>) -> Incoming<'m, T, R> {
        match method {
            "notifications/progress" => progress(params),
            "notifications/tools/list_changed" => Incoming::ListChanged(Listed::Tools),
            "notifications/prompts/list_changed" => Incoming::ListChanged(Listed::Prompts),
            "notifications/resources/list_changed" => Incoming::ListChanged(Listed::Resources),
            "notifications/resources/updated" => updated(params),
            "notifications/message" => {
                Incoming::Log(params.map(|params| cut(params.get())).unwrap_or_default())
            }
            "notifications/cancelled" => self.cancelled(params),
            "notifications/subscriptions/acknowledged" => subscription::acknowledged(params),
            _ => Incoming::Unknown(cut(method)),
        }
    }

    /// The server gives up a request of its own, or ends a subscription of ours.
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
        let Some(id) = id else { return Incoming::Unknown("notifications/cancelled".to_owned()) };
        if let Some(preparing) = self.preparing.remove(&id) {
            return Incoming::Withdrawn(preparing);
        }
        match ResponseId::new(id) {
            ResponseId::Ours(id) => Incoming::SubscriptionEnded { id },
            ResponseId::Foreign(_) => Incoming::Unknown("notifications/cancelled".to_owned()),
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
        return Incoming::Odd("progress that cannot be read".to_owned());
    };
    let Some(token) = Id::read(params.progress_token) else {
        return Incoming::Odd("progress that cannot be read".to_owned());
    };
    let message = params.message.map(|mut message| {
        message.truncate(message.floor_char_boundary(PROGRESS_BYTES_MAX));
        message
    });
    let progress = Progress { done: params.progress, total: params.total, message };
    match ResponseId::new(token) {
        ResponseId::Ours(id) => Incoming::Progress { id, progress },
        ResponseId::Foreign(_) => Incoming::Unknown("notifications/progress".to_owned()),
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
            Incoming::Odd("news of a resource whose `uri` is too long was dropped".to_owned())
        }
        _ => Incoming::Odd("news of a resource that has no `uri`".to_owned()),
    }
}

fn cut(text: &str) -> String {
    untrusted_text::cut(text, SHOWN_BYTES_MAX)
}
