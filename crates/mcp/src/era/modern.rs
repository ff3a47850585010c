//! The era without a handshake, from 2026-07-28: every request says for itself which revision it speaks
//! and what its client can do.

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::Origin;
use crate::action::Level;
use crate::asking::{abilities, brought};
use crate::connection::{Connection, SUBSCRIPTIONS_MAX, URI_BYTES_MAX, check_uri};
use crate::dispatch::{Step, shared};
use crate::jsonrpc::{Error, Request, check_size, params_within};
use crate::revision::Revision;
use crate::server::{Caching, Server};

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const REVISION: Revision = Revision::V2026_07_28;

/// The most that a request may say about itself in `_meta`.
const META_BYTES_MAX: usize = 64 * 1024;
/// What a list of resources to follow may have, with all that goes with it.
const LISTEN_BYTES_MAX: usize = SUBSCRIPTIONS_MAX * (URI_BYTES_MAX + 16);

/// The `_meta` of a request that belongs to this era, by its method or by either key. None: it does not.
pub(crate) fn meta<'r>(request: &'r Request<'_>) -> Result<Option<&'r Value>, Error> {
    let meta = request.meta.get_or_init(|| read_meta(request));
    meta.as_ref().map(Option::as_ref).map_err(Clone::clone)
}

fn read_meta(request: &Request<'_>) -> Result<Option<Value>, Error> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: &'a RawValue,
    }
    let is_ours = matches!(&*request.method, "server/discover" | "subscriptions/listen");
    // Most legacy requests have no such text at all, and are told apart without parsing.
    let text = request.params.map_or("", RawValue::get);
    if !is_ours && !text.contains("_meta") {
        return Ok(None);
    }
    let fields: Option<Fields<'_>> = serde_json::from_str(text).ok();
    let raw = fields.map(|fields| fields.meta);
    check_size("_meta", META_BYTES_MAX, raw).map_err(Error::bad_request)?;
    let meta = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let meta: Value = meta.unwrap_or_default();
    let is_modern = is_ours || meta.get(VERSION).is_some() || meta.get(CAPABILITIES).is_some();
    Ok(is_modern.then_some(meta))
}

/// What a request says about its client, and what it brings back from its user.
pub(crate) fn origin(request: &Request<'_>, meta: &Value) -> Result<Origin, Error> {
    let may_bring = matches!(&*request.method, "tools/call" | "prompts/get" | "resources/read");
    let token = meta.get("progressToken").and_then(|token| to_raw_value(token).ok());
    Ok(Origin {
        revision: REVISION,
        abilities: abilities(&meta[CAPABILITIES], &REVISION.traits()),
        log_level: meta.get(LOG_LEVEL).and_then(Value::as_str).and_then(Level::parse),
        progress_token: token.and_then(|token| super::progress_token(&token)),
        answers: if may_bring { brought(request.params)? } else { None },
    })
}

pub(crate) fn request(
    connection: &mut Connection,
    request: &Request<'_>,
    meta: &Value,
) -> Result<Step, Error> {
    let version = is_complete(meta)?;
    if Revision::parse(version) != Some(REVISION) {
        return Err(unsupported(version));
    }
    match &*request.method {
        "server/discover" => Ok(Step::Answer(discover(&connection.server))),
        "subscriptions/listen" => listen(&connection.server, request),
        method => shared(&connection.server, REVISION, method, request.params),
    }
}

/// Whether everything is there that a request has to say about itself: its version, if so.
pub(crate) fn is_complete(meta: &Value) -> Result<&str, Error> {
    let Some(version) = meta.get(VERSION).and_then(Value::as_str) else {
        return Err(missing(VERSION));
    };
    if !meta.get(CAPABILITIES).is_some_and(Value::is_object) {
        return Err(missing(CAPABILITIES));
    }
    Ok(version)
}

pub(crate) fn unsupported(version: &str) -> Error {
    let data = json!({"supported": [REVISION.name()], "requested": version});
    Error::new(-32022, "Unsupported protocol version", data).bad_request()
}

fn missing(key: &str) -> Error {
    Error::invalid_params(format!("_meta[\"{key}\"] is required")).bad_request()
}

fn discover(server: &Server) -> String {
    let result = json!({
        "supportedVersions": [REVISION.name()],
        "capabilities": server.capabilities(REVISION),
        "instructions": server.instructions(),
    });
    server.complete(REVISION, result, Caching::List).to_string()
}

/// Which notifications the client wants, less those that we never send.
fn listen(server: &Server, request: &Request<'_>) -> Result<Step, Error> {
    let fields: Value = params_within(LISTEN_BYTES_MAX, request.params)?;
    let Some(Value::Object(wanted)) = fields.get("notifications") else {
        return Err(Error::invalid_params("notifications is required"));
    };
    let mut filter = json!({});
    let tools = server.tools_change.then_some("toolsListChanged");
    for name in ["promptsListChanged", "resourcesListChanged"].into_iter().chain(tools) {
        match wanted.get(name) {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => filter[name] = json!(true),
            Some(_) => return Err(Error::invalid_params(format!("{name} must be true or false"))),
        }
    }
    match wanted.get("resourceSubscriptions") {
        None => {}
        Some(Value::Array(uris)) if uris.iter().all(Value::is_string) => {
            let mut uris: Vec<&str> = uris.iter().filter_map(Value::as_str).collect();
            uris.iter().try_for_each(|uri| check_uri(uri))?;
            // What is acknowledged is what will be told.
            uris.retain(|uri| server.why_not_follow(uri).is_none());
            filter["resourceSubscriptions"] = json!(uris);
        }
        Some(_) => {
            return Err(Error::invalid_params("resourceSubscriptions must be a list of texts"));
        }
    }
    Ok(Step::Listen(filter))
}
