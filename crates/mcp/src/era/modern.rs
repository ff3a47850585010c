//! The era without a handshake, from 2026-07-28: every request says for itself which revision it speaks
//! and what its client can do.

use serde_json::{Value, json};

use crate::connection::Connection;
use crate::dispatch::{Step, shared};
use crate::jsonrpc::{Error, Request, params};
use crate::revision::Revision;
use crate::server::{Caching, Server};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const REVISION: Revision = Revision::V2026_07_28;

/// Whether a request belongs to this era: by its method, or by either key of its `_meta`.
pub(crate) fn is_modern(request: &Request<'_>) -> bool {
    if matches!(&*request.method, "server/discover" | "subscriptions/listen") {
        return true;
    }
    // Most legacy requests have no such text at all, and are told apart without parsing.
    let text = request.params.map_or("", |params| params.get());
    if !text.contains(VERSION) && !text.contains(CAPABILITIES) {
        return false;
    }
    let meta = meta(request);
    meta.get(VERSION).is_some() || meta.get(CAPABILITIES).is_some()
}

fn meta(request: &Request<'_>) -> Value {
    let fields: Result<Value, Error> = params(request.params);
    fields.ok().and_then(|mut fields| Some(fields.get_mut("_meta")?.take())).unwrap_or_default()
}

pub(crate) fn request(connection: &mut Connection, request: &Request<'_>) -> Result<Step, Error> {
    let meta = meta(request);
    let Some(version) = meta.get(VERSION).and_then(Value::as_str) else {
        return Err(Error::invalid_params(format!("_meta[\"{VERSION}\"] is required")));
    };
    if !meta.get(CAPABILITIES).is_some_and(Value::is_object) {
        return Err(Error::invalid_params(format!("_meta[\"{CAPABILITIES}\"] is required")));
    }
    if Revision::parse(version) != Some(REVISION) {
        return Err(Error::new(
            -32022,
            "Unsupported protocol version",
            json!({"supported": [REVISION.name()], "requested": version}),
        ));
    }
    match &*request.method {
        "server/discover" => Ok(Step::Answer(discover(&connection.server))),
        "subscriptions/listen" => listen(request),
        method => shared(&connection.server, REVISION, method, request.params),
    }
}

fn discover(server: &Server) -> String {
    let result = json!({
        "supportedVersions": [REVISION.name()],
        "capabilities": server.capabilities(REVISION),
        "instructions": server.instructions,
    });
    server.complete(REVISION, result, Caching::List).to_string()
}

/// Which notifications the client wants, less those that we never send.
fn listen(request: &Request<'_>) -> Result<Step, Error> {
    let fields: Value = params(request.params)?;
    let Some(Value::Object(wanted)) = fields.get("notifications") else {
        return Err(Error::invalid_params("notifications is required"));
    };
    let mut filter = json!({});
    for name in ["promptsListChanged", "resourcesListChanged"] {
        match wanted.get(name) {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => filter[name] = json!(true),
            Some(_) => return Err(Error::invalid_params(format!("{name} must be true or false"))),
        }
    }
    match wanted.get("resourceSubscriptions") {
        None => {}
        Some(Value::Array(uris)) if uris.iter().all(Value::is_string) => {
            filter["resourceSubscriptions"] = json!(uris);
        }
        Some(_) => {
            return Err(Error::invalid_params("resourceSubscriptions must be a list of texts"));
        }
    }
    Ok(Step::Listen(filter))
}
