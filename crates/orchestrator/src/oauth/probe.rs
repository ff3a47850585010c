//! Asks an upstream for something without showing a token, to hear what it wants to be shown.

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use registry::entry::Connect;
use serde_json::json;

use super::error::Error;
use super::http::{ANSWER_LIMIT, Http};
use crate::upstream::http::{challenge, format_error_chain};

/// What it says to a stranger.
pub(super) enum Heard {
    /// It wants a login, and may say where.
    Asked(Option<String>),
    /// Nothing about that.
    Nothing,
}

/// Begins a handshake, as every client does, and goes no further.
pub(super) async fn probe(http: &Http, server: &str, connect: &Connect) -> Result<Heard, Error> {
    let Connect::Http { url, headers, .. } = connect else { return Ok(Heard::Nothing) };
    let failed = |why: String| Error::Discovery { server: server.to_owned(), why };
    let client = http.following(url.reveal()).map_err(|error| failed(error.to_string()))?;
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "workflowlookup", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let mut request = client.post(url.reveal()).timeout(ANSWER_LIMIT);
    for (name, value) in headers {
        request = request.header(name, value.reveal());
    }
    let request = request
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    let response =
        request.send().await.map_err(|error| failed(format_error_chain(&error.without_url())))?;
    match response.status() {
        StatusCode::UNAUTHORIZED => Ok(Heard::Asked(challenge(&response))),
        _ => Ok(Heard::Nothing),
    }
}
