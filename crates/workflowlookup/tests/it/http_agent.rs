//! What an agent's client sends over HTTP, in either era.

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::agent::Era;
use super::http_client::{Request, Response};

/// A test that is many clients at once has many connections, and many systems allow a thousand at first.
pub(super) fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(maximum.map_or(10_000, |maximum| maximum.min(10_000)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

/// A request that says everything itself.
pub(super) fn modern(method: &str, mut params: Value, capabilities: &Value) -> Request {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).map(str::to_owned);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Request::post(message.to_string())
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method);
    match name {
        Some(name) => request.header("Mcp-Name", &name),
        None => request,
    }
}

/// A request of a client that has had a handshake.
pub(super) fn legacy(session: &str, id: u64, method: &str, params: &Value) -> Request {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    carrying(session, message.to_string())
}

/// Whatever a client with a handshake has to say.
pub(super) fn carrying(session: &str, message: impl Into<Vec<u8>>) -> Request {
    Request::post(message)
        .header("Mcp-Session-Id", session)
        .header("MCP-Protocol-Version", "2025-11-25")
}

pub(super) fn hello(capabilities: &Value) -> Request {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "agent", "version": "1.0.0"},
    });
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    Request::post(message.to_string())
}

/// A handshake: what the client carries from then on.
pub(super) fn handshake(address: SocketAddr) -> String {
    session_of(&hello(&json!({})).send(address).unwrap())
}

pub(super) fn session_of(response: &Response) -> String {
    assert_eq!(response.head.status, 200, "{response:?}");
    response.head.header("Mcp-Session-Id").unwrap().to_owned()
}

/// The answer: a call that takes long is answered at the end of a stream.
pub(super) fn answer_of(response: &Response) -> Value {
    assert_eq!(response.head.status, 200, "{response:?}");
    if !response.head.is_stream() {
        return response.json();
    }
    let text = str::from_utf8(&response.body).unwrap();
    let last = text.lines().rev().find_map(|line| line.strip_prefix("data: {")).unwrap();
    serde_json::from_str(&format!("{{{last}")).unwrap()
}

/// A call that nothing changes by, in either era.
pub(super) fn list(era: Era, session: &str) -> Request {
    let params = json!({"name": "workflow_list", "arguments": {}});
    match era {
        Era::Modern => modern("tools/call", params, &json!({})),
        Era::Legacy => legacy(session, 1, "tools/call", &params),
    }
}

/// What a server that is well answers, to who has a token where it wants one.
pub(super) fn is_well(address: SocketAddr, token: Option<&str>) -> io::Result<()> {
    let mut call = list(Era::Modern, "");
    if let Some(token) = token {
        call = call.header("Authorization", &format!("Bearer {token}"));
    }
    let response = call.send(address)?;
    let is_good = response.head.status == 200 && response.json()["result"].is_object();
    if is_good { Ok(()) } else { Err(io::Error::other(format!("{response:?}"))) }
}
