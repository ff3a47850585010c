//! Requests and notifications of this client, encoded for each era.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};

use super::RequestId;
use crate::era::modern;
use crate::http::{self, encoded};
use crate::mirrored::Mirrored;
use crate::revision::{Era, Revision};

/// The identity of this client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    pub name: &'static str,
    pub version: &'static str,
}

impl ClientInfo {
    fn implementation(&self) -> Value {
        json!({"name": self.name, "version": self.version})
    }

    /// Elicitation is always declared, although whether a user can be prompted depends on the call. If not, the elicitation
    /// is cancelled.
    fn capabilities() -> Value {
        json!({"elicitation": {"form": {}, "url": {}}})
    }

    /// Adds the fields that every modern request has.
    fn add_meta(&self, revision: Revision, meta: &mut Map<String, Value>) {
        meta.insert(modern::VERSION.to_owned(), revision.name().into());
        meta.insert(modern::CLIENT_INFO.to_owned(), self.implementation());
        meta.insert(modern::CAPABILITIES.to_owned(), Self::capabilities());
    }
}

/// A request, independent of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    method: &'static str,
    params: Map<String, Value>,
    /// Headers that mirror arguments.
    mirrored: Vec<(String, String)>,
    is_handshake: bool,
}

impl Request {
    pub fn new(method: &'static str) -> Self {
        Self { method, params: Map::new(), mirrored: Vec::new(), is_handshake: false }
    }

    /// Sets a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// A `tools/call`. `schema` is the tool's input schema, if it mirrors arguments in headers.
    pub fn call_tool(name: &str, arguments: &Map<String, Value>, schema: Option<&Value>) -> Self {
        let mirrored = schema.map(Mirrored::all).unwrap_or_default();
        let mirrored = mirrored.iter().filter_map(|mirrored| mirrored.header(arguments)).collect();
        let request = Self::new("tools/call").with("name", name);
        Self { mirrored, ..request.with("arguments", arguments.clone()) }
    }

    pub(super) fn initialize(client: &ClientInfo, revision: Revision) -> Self {
        let request = Self { is_handshake: true, ..Self::new("initialize") };
        request
            .with("protocolVersion", revision.name())
            .with("capabilities", ClientInfo::capabilities())
            .with("clientInfo", client.implementation())
    }

    pub(super) fn discover(client: &ClientInfo, revision: Revision) -> Self {
        let mut meta = Map::new();
        client.add_meta(revision, &mut meta);
        Self { is_handshake: true, ..Self::new("server/discover") }.with("_meta", meta)
    }

    /// A request to which every live server responds.
    pub fn sign_of_life(era: Era) -> Self {
        match era {
            Era::Legacy => Self::new("ping"),
            // The modern era has no ping.
            Era::Modern => Self::new("server/discover"),
        }
    }

    pub fn method(&self) -> &'static str {
        self.method
    }

    /// Whether the request is part of a handshake. Such requests are never cancelled.
    pub fn is_handshake(&self) -> bool {
        self.is_handshake
    }

    /// Encodes the message. Its id is also its progress token. During a handshake there is no revision.
    pub fn encode(&self, id: RequestId, client: &ClientInfo, revision: Option<Revision>) -> String {
        let meta = revision.map(|revision| {
            let mut meta = Map::from_iter([("progressToken".to_owned(), id.into())]);
            if revision.traits().is_modern {
                client.add_meta(revision, &mut meta);
            }
            meta
        });
        let params = Params { meta, others: &self.params };
        // Maps with string keys and plain values always serialize.
        let params = serde_json::to_string(&params).unwrap_or_default();
        let method = self.method;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    }

    /// The headers of a POST with this request, except for the session id.
    pub fn headers(&self, revision: Option<Revision>) -> Vec<(String, String)> {
        let is_probe = self.is_handshake && self.method == "server/discover";
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

/// The parameters of a message. Arguments may be large and are not copied.
struct Params<'r> {
    meta: Option<Map<String, Value>>,
    others: &'r Map<String, Value>,
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        for (name, value) in self.others {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The header of every HTTP request after the handshake.
pub fn version_header(revision: Option<Revision>) -> Vec<(String, String)> {
    let header = revision.map(|revision| (http::VERSION.to_owned(), revision.name().to_owned()));
    header.into_iter().collect()
}

/// The notification that completes a legacy handshake.
pub fn initialized() -> String {
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()
}

/// The notification that cancels a request.
pub fn cancelled(id: RequestId) -> String {
    let params = json!({"requestId": id, "reason": "nobody waits for it any more"});
    crate::jsonrpc::notification("notifications/cancelled", &params)
}
