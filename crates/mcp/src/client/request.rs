//! Requests and notifications of ours, as they are written in each era.

use serde_json::{Map, Value, json};

use super::RequestId;
use crate::era::modern;
use crate::http::{self, encoded};
use crate::mirrored::Mirrored;
use crate::revision::{Era, Revision};

/// Who we are, and what we can do for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Us {
    pub name: &'static str,
    pub version: &'static str,
}

impl Us {
    fn info(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }

    /// Whether a user can be asked is known only during a call, but must be declared now. If nobody can be asked then, the
    /// elicitation is cancelled.
    fn capabilities() -> Value {
        json!({"elicitation": {"form": {}, "url": {}}})
    }

    /// What every request of the modern era says about its client.
    fn add_meta(&self, revision: Revision, meta: &mut Map<String, Value>) {
        meta.insert(modern::VERSION.to_owned(), revision.name().into());
        meta.insert(modern::CLIENT_INFO.to_owned(), self.info());
        meta.insert(modern::CAPABILITIES.to_owned(), Self::capabilities());
    }
}

/// A request that is not bound to a connection yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    method: &'static str,
    params: Map<String, Value>,
    /// Arguments that are repeated as headers, by the headers' names.
    mirrored: Vec<(String, String)>,
}

impl Request {
    pub fn new(method: &'static str) -> Self {
        Self { method, params: Map::new(), mirrored: Vec::new() }
    }

    /// The parameter replaces one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// A `tools/call`. The schema is the tool's, if it says which arguments go as headers too.
    pub fn call_tool(name: &str, arguments: &Map<String, Value>, schema: Option<&Value>) -> Self {
        let mirrored = schema.map(Mirrored::all).unwrap_or_default();
        let mirrored = mirrored.iter().filter_map(|mirrored| mirrored.header(arguments)).collect();
        let request = Self::new("tools/call").with("name", name);
        Self { mirrored, ..request.with("arguments", arguments.clone()) }
    }

    pub(super) fn initialize(us: &Us, revision: Revision) -> Self {
        Self::new("initialize")
            .with("protocolVersion", revision.name())
            .with("capabilities", Us::capabilities())
            .with("clientInfo", us.info())
    }

    pub(super) fn discover(us: &Us, revision: Revision) -> Self {
        let mut meta = Map::new();
        us.add_meta(revision, &mut meta);
        Self::new("server/discover").with("_meta", meta)
    }

    /// What shows that a server is alive, whatever it answers.
    pub fn sign_of_life(era: Era) -> Self {
        match era {
            Era::Legacy => Self::new("ping"),
            // There is no ping any more.
            Era::Modern => Self::new("server/discover"),
        }
    }

    pub fn method(&self) -> &'static str {
        self.method
    }

    /// Whether it is part of a handshake. Such a request is never cancelled.
    pub fn is_handshake(&self) -> bool {
        matches!(self.method, "initialize" | "server/discover")
    }

    /// The message. Before the handshake is over there is no revision. Its id is its progress token too.
    pub fn encode(&self, id: RequestId, us: &Us, revision: Option<Revision>) -> String {
        let mut params = self.params.clone();
        if let Some(revision) = revision {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            if let Value::Object(meta) = meta {
                if revision.traits().is_modern {
                    us.add_meta(revision, meta);
                }
                meta.insert("progressToken".to_owned(), id.into());
            }
        }
        let (method, params) = (self.method, Value::Object(params));
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    }

    /// The headers of a POST with this request, beside the session's.
    pub fn headers(&self, revision: Option<Revision>) -> Vec<(String, String)> {
        let is_probe = revision.is_none() && self.method == "server/discover";
        let revision = if is_probe { Some(modern::REVISION) } else { revision };
        let Some(revision) = revision else { return Vec::new() };
        let mut headers = version_header(Some(revision));
        if !revision.traits().is_modern {
            return headers;
        }
        headers.push((http::METHOD.to_owned(), self.method.to_owned()));
        let named = match self.method {
            "tools/call" | "prompts/get" => self.params.get("name"),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                self.params.get("uri")
            }
            _ => None,
        };
        if let Some(named) = named.and_then(Value::as_str) {
            headers.push((http::NAME.to_owned(), encoded(named).into_owned()));
        }
        headers.extend(self.mirrored.iter().cloned());
        headers
    }
}

/// The header of everything that goes over HTTP once the handshake is over.
pub fn version_header(revision: Option<Revision>) -> Vec<(String, String)> {
    let header = revision.map(|revision| (http::VERSION.to_owned(), revision.name().to_owned()));
    header.into_iter().collect()
}

/// The notification that ends a handshake.
pub fn initialized() -> String {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()
}

/// The notification that a request is not waited for any more.
pub fn cancelled(id: RequestId) -> String {
    let params = json!({"requestId": id, "reason": "nobody waits for it any more"});
    crate::jsonrpc::notification("notifications/cancelled", &params)
}
