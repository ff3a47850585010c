//! The era of the handshake, 2024-11-05 to 2025-11-25, and the product's first protocol, which is spoken
//! over stdio besides: tools as methods of their own, and `shutdown`.

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::Origin;
use crate::action::Level;
use crate::asking::abilities;
use crate::connection::{
    Connection, SUBSCRIPTIONS_MAX, Transport, check_uri, too_many_subscriptions,
};
use crate::dispatch::{PARAMS_BYTES_MAX, Shape, Step, Uri, object, shared};
use crate::jsonrpc::{Error, Request, params, params_within};
use crate::revision::Revision;

pub(crate) fn request(connection: &mut Connection, request: &Request<'_>) -> Result<Step, Error> {
    let is_stdio = connection.transport == Transport::Stdio;
    match &*request.method {
        "initialize" => return initialize(connection, request),
        "ping" => return Ok(Step::Answer("{}".to_owned())),
        "shutdown" if is_stdio => return Ok(Step::AnswerAndClose("null".to_owned())),
        _ => {}
    }
    let Some(revision) = connection.revision else {
        let details = "send `initialize` first, or the `_meta` of a revision without handshake";
        return Err(Error::new(-32000, "Server not initialized", json!({"details": details})));
    };
    match &*request.method {
        "resources/subscribe" => {
            let uri = params::<Uri>(request.params)?.uri;
            check_uri(&uri)?;
            let is_full = connection.subscribed.len() >= SUBSCRIPTIONS_MAX;
            if is_full && !connection.subscribed.contains(&uri) {
                return Err(too_many_subscriptions());
            }
            if let Some(why) = connection.server.why_not_follow(&uri) {
                return Err(Error::invalid_params(why));
            }
            connection.subscribed.insert(uri);
            connection.subscriptions += 1;
            return Ok(Step::Answer("{}".to_owned()));
        }
        "logging/setLevel" if connection.server.logs => {
            let SetLevel { level } = params(request.params)?;
            let known = Level::parse(&level);
            let unknown = || Error::invalid_params(format!("there is no level `{level}`"));
            connection.log_level = Some(known.ok_or_else(unknown)?);
            return Ok(Step::Answer("{}".to_owned()));
        }
        "resources/unsubscribe" => {
            let was_there = connection.subscribed.remove(&params::<Uri>(request.params)?.uri);
            connection.subscriptions += u64::from(was_there);
            return Ok(Step::Answer("{}".to_owned()));
        }
        _ => {}
    }
    let tool = connection.server.tool(&request.method).filter(|tool| tool.is_method && is_stdio);
    if let Some(tool) = tool {
        let arguments = match request.params {
            Some(params) if params.get().starts_with('[') => {
                return Err(Error::invalid_params("params must be an object"));
            }
            params => without_meta(object(params)?)?,
        };
        let call = crate::Call::Tool { name: tool.name, arguments, is_method: true };
        return Ok(Step::Call(call, Shape::Method));
    }
    shared(&connection.server, revision, &request.method, request.params)
}

#[derive(Deserialize)]
struct SetLevel {
    level: String,
}

/// As a method of its own, a tool's arguments are the parameters, and those may have more to say.
fn without_meta(params: Box<RawValue>) -> Result<Box<RawValue>, Error> {
    if !params.get().contains("_meta") {
        return Ok(params);
    }
    let mut fields: Map<String, Value> = crate::jsonrpc::params(Some(&params))?;
    fields.remove("_meta");
    to_raw_value(&fields).map_err(|_| Error::internal())
}

/// What the handshake and the request say about the client.
pub(crate) fn origin(connection: &Connection, request: &Request<'_>, revision: Revision) -> Origin {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Meta<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta<'a> {
        #[serde(borrow)]
        progress_token: &'a RawValue,
    }
    // Most requests have no such text at all.
    let params = request.params.filter(|params| params.get().contains("_meta"));
    let fields: Option<Fields<'_>> =
        params.and_then(|params| serde_json::from_str(params.get()).ok());
    Origin {
        revision,
        abilities: connection.abilities,
        progress_token: fields.and_then(|fields| super::progress_token(fields.meta.progress_token)),
        log_level: connection.server.logs.then(|| connection.log_level.unwrap_or(Level::Debug)),
        answers: None,
    }
}

/// The handshake. Any of the four revisions is echoed; a client of the modern era that tries is offered
/// the newest of them; everything else is refused, and may try again.
fn initialize(connection: &mut Connection, request: &Request<'_>) -> Result<Step, Error> {
    let fields: Value = params_within(PARAMS_BYTES_MAX, request.params)?;
    let wanted = match fields.get("protocolVersion") {
        Some(Value::String(wanted)) => wanted,
        Some(_) => return Err(Error::invalid_params("protocolVersion must be a string")),
        None => return Err(Error::invalid_params("protocolVersion is required")),
    };
    let revision = match Revision::parse(wanted) {
        Some(revision) if revision.traits().is_modern => Revision::V2025_11_25,
        Some(revision) => revision,
        None => return Err(unsupported(wanted)),
    };
    let capabilities = match fields.get("capabilities") {
        Some(capabilities @ Value::Object(_)) => capabilities,
        Some(_) => return Err(Error::invalid_params("capabilities must be an object")),
        None => return Err(Error::invalid_params("capabilities is required")),
    };
    connection.abilities = abilities(capabilities, &revision.traits());
    connection.revision = Some(revision);
    connection.subscribed.clear();
    let server = &connection.server;
    let result = json!({
        "protocolVersion": revision.name(),
        "capabilities": server.capabilities(revision),
        "serverInfo": server.info(revision),
        "instructions": server.instructions(),
    });
    Ok(Step::Answer(result.to_string()))
}

/// Both spellings: the one of the product's first protocol, and the one that MCP took up later.
fn unsupported(wanted: &str) -> Error {
    let supported: Vec<&str> = Revision::LEGACY.iter().map(|revision| revision.name()).collect();
    Error::new(
        -32000,
        "Unsupported protocol version",
        json!({
            "supportedVersions": supported,
            "requestedVersion": wanted,
            "supported": supported,
            "requested": wanted,
        }),
    )
}
