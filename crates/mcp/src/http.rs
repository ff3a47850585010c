//! What a POST over HTTP is, by its headers and its body together, before anything is done about it: of which era,
//! and whether the two agree. Nothing here reads a socket.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::action::Reply;
use crate::dispatch::{Shown, check_params};
use crate::era::modern;
use crate::jsonrpc::{Body, Error, Id, Message, Received, Request, error_over_http};
use crate::revision::Revision;
use crate::server::Server;

pub const VERSION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
/// What a parameter that is mirrored begins with.
pub const PARAM: &str = "mcp-param-";

/// The headers that the protocol has something to say about, by their names in small letters.
pub trait Headers {
    fn get(&self, name: &str) -> Option<&[u8]>;
}

/// What a POST is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Stands for itself.
    Modern,
    /// A notification of a client without handshake: nobody does anything about it.
    Ignored,
    /// Begins a connection with a handshake.
    Initialize,
    /// Needs the connection that a handshake began.
    Legacy(Legacy),
}

/// What a message means for the one who keeps the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Legacy {
    /// Something that is asked for.
    Request(Id),
    /// Has the connection keep more than before.
    Subscribes(Id),
    /// Changes what the connection keeps.
    Keeps(Id),
    /// Several at once.
    Batch,
    Notification,
    /// Takes back the request with this id.
    Cancelled(Id),
    /// Answers a request of ours: its id.
    Answer(Id),
}

/// Says what a POST is, or why it is refused.
pub fn classify(body: &Body<'_>, headers: &impl Headers, server: &Server) -> Result<Kind, Reply> {
    let version = headers.get(VERSION).map(|version| str::from_utf8(version).unwrap_or("?"));
    // A version that nobody knows is from a time to come.
    let is_modern = version.is_some_and(|version| {
        Revision::parse(version).is_none_or(|revision| revision.traits().is_modern)
    });
    let is_known = version.is_none_or(|version| Revision::parse(version).is_some());
    let message = match &body.0 {
        Received::Batch(_) if is_modern => {
            return Err(refused(None, &Error::invalid_request("a body is one message")));
        }
        Received::Batch(_) => return Ok(Kind::Legacy(Legacy::Batch)),
        Received::One(Err(rejected)) => {
            return Err(refused(rejected.id.as_ref(), &rejected.error));
        }
        Received::One(Ok(message)) => message,
    };
    match message {
        Message::Request(request) => match modern::meta(request) {
            Err(error) => Err(refused(Some(&request.id), &error)),
            Ok(None) if !is_modern => Ok(legacy(request)),
            Ok(meta) => {
                let meta = meta.unwrap_or(&Value::Null);
                check(request, headers, server, version, meta.get(modern::VERSION))
                    .and_then(|()| modern::is_complete(meta).map(drop))
                    .map(|()| Kind::Modern)
                    .map_err(|error| refused(Some(&request.id), &error))
            }
        },
        Message::Response { .. } if is_modern => {
            let details = "a client of this revision sends no answers";
            Err(refused(None, &Error::invalid_request(details)))
        }
        Message::Notification { .. } if is_modern && !is_known => {
            let error = modern::unsupported(version.unwrap_or_default());
            Err(refused(None, &error))
        }
        Message::Notification { .. } if is_modern => Ok(Kind::Ignored),
        Message::Notification { method, params } if method == "notifications/cancelled" => {
            let cancelled = params.and_then(|params| serde_json::from_str(params.get()).ok());
            let id = cancelled.and_then(|Cancelled { id }: Cancelled<'_>| Id::read(id));
            Ok(Kind::Legacy(id.map_or(Legacy::Notification, Legacy::Cancelled)))
        }
        Message::Notification { .. } | Message::Response { id: None, .. } => {
            Ok(Kind::Legacy(Legacy::Notification))
        }
        Message::Response { id: Some(id), .. } => Ok(Kind::Legacy(Legacy::Answer(id.clone()))),
    }
}

/// The answer to a message that is not looked at any further.
pub fn refused(id: Option<&Id>, error: &Error) -> Reply {
    Reply { text: error_over_http(id, error), status: error.status }
}

/// The answer to a call whose process is gone, or has forgotten it.
pub fn lost(id: &Id) -> String {
    let details =
        "the server that carried it out is gone, or has forgotten it; make the call again";
    error_over_http(Some(id), &Error::new(-32000, "Answer lost", json!({"details": details})))
}

#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    id: &'a RawValue,
}

fn legacy(request: &Request<'_>) -> Kind {
    let id = request.id.clone();
    match &*request.method {
        "initialize" => Kind::Initialize,
        "resources/subscribe" => Kind::Legacy(Legacy::Subscribes(id)),
        "resources/unsubscribe" | "logging/setLevel" => Kind::Legacy(Legacy::Keeps(id)),
        _ => Kind::Legacy(Legacy::Request(id)),
    }
}

/// Whether headers and body agree, so that nobody on the way is told something else than we are.
fn check(
    request: &Request<'_>,
    headers: &impl Headers,
    server: &Server,
    version: Option<&str>,
    stated: Option<&serde_json::Value>,
) -> Result<(), Error> {
    let Some(version) = version else {
        return Err(mismatch("the header MCP-Protocol-Version is missing".to_owned()));
    };
    if stated.is_some_and(|stated| stated != version) {
        let details = format!("MCP-Protocol-Version says `{version}`, and _meta another version");
        return Err(mismatch(details));
    }
    agrees("Mcp-Method", headers.get(METHOD), Some(&request.method))?;
    check_params(&request.method, request.params)?;
    let field = match &*request.method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let named = request.params.and_then(|params| text_field(params, field));
    agrees("Mcp-Name", headers.get(NAME), named.as_deref())?;
    match named {
        Some(tool) if request.method == "tools/call" => {
            check_arguments(request, headers, server, &tool)
        }
        _ => Ok(()),
    }
}

/// Most tools want nothing in headers, and their arguments are not looked at here.
fn check_arguments(
    request: &Request<'_>,
    headers: &impl Headers,
    server: &Server,
    tool: &str,
) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Fields {
        // Arguments of another kind are another error, and nobody's header says them.
        #[serde(default)]
        arguments: serde_json::Value,
    }
    let mirrored = server.mirrored(tool);
    if mirrored.is_empty() {
        return Ok(());
    }
    let fields = request.params.and_then(|params| serde_json::from_str(params.get()).ok());
    let arguments = fields.map(|Fields { arguments }| arguments);
    let arguments = match arguments {
        Some(serde_json::Value::Object(arguments)) => arguments,
        _ => serde_json::Map::new(),
    };
    mirrored.iter().try_for_each(|mirrored| mirrored.check(&arguments, headers))
}

/// A field of the parameters, where it is a text.
fn text_field<'a>(params: &'a RawValue, field: &str) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow, default)]
        name: Option<&'a RawValue>,
        #[serde(borrow, default)]
        uri: Option<&'a RawValue>,
    }
    let fields: Fields<'a> = serde_json::from_str(params.get()).ok()?;
    let raw = if field == "name" { fields.name } else { fields.uri }?;
    serde_json::from_str(raw.get()).ok()
}

/// A header has to be there, and to say what the body says; what is missing there is another error.
fn agrees(name: &str, header: Option<&[u8]>, body: Option<&str>) -> Result<(), Error> {
    let Some(header) = header else {
        return Err(mismatch(format!("the header {name} is missing")));
    };
    let Some(decoded) = decoded(header) else {
        return Err(mismatch(format!("the header {name} cannot be read")));
    };
    match body {
        Some(body) if *body != *decoded => {
            let (header, body) = (Shown(&decoded), Shown(body));
            Err(mismatch(format!("the header {name} says `{header}`, and the body `{body}`")))
        }
        _ => Ok(()),
    }
}

/// A text as a header says it: as it stands, or as Base64 between marks.
pub(crate) fn encoded(text: &str) -> Cow<'_, str> {
    let is_padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_padded || !is_plain || text.starts_with("=?base64?") {
        return Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(text)));
    }
    Cow::Borrowed(text)
}

/// What a header says: as it stands, or between marks as Base64.
pub(crate) fn decoded(header: &[u8]) -> Option<Cow<'_, str>> {
    let text = str::from_utf8(header).ok()?;
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
        None if text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) => {
            Some(Cow::Borrowed(text))
        }
        None => None,
    }
}

pub(crate) fn mismatch(details: String) -> Error {
    Error::new(-32020, "Header mismatch", json!({"details": details})).bad_request()
}
