//! What a request brings is bounded, whatever its method: too much of it is refused before anything is made of it, and
//! answers repeat little of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use mcp::content::{About, Tool};
use mcp::{Action, Connection, Reply, Server, Transport};
use serde_json::{Value, json};

/// More than any of the bounds, and not so much that a test is slow.
const MUCH: usize = 3 * 1024 * 1024;

fn connection() -> Connection {
    let about = || About {
        title: "Title",
        description: "Description",
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    let tools = vec![Tool { name: "works", is_method: false, about }];
    let server = Server::new("test", "Test", "1.0.0", "For a test", "None", tools);
    Connection::new(Arc::new(server), Transport::Stdio)
}

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The error that answers a message, which must be short.
fn refused(message: &Value) -> Value {
    let mut connection = connection();
    let mut actions = Vec::new();
    connection.receive(message.to_string().as_bytes(), &mut actions);
    let Action::Reply(Reply { text, .. }) = actions.remove(0) else { panic!("{actions:?}") };
    assert!(text.len() < 2_000, "{} bytes", text.len());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn too_much_is_refused() {
    let long = "x".repeat(MUCH);
    let call = |more: &str, value: Value| {
        let mut params = json!({"name": "works", "arguments": {}});
        params[more] = value;
        modern("tools/call", params)
    };
    let many: serde_json::Map<String, Value> =
        (0..101).map(|at| (format!("q{at}"), json!("z"))).collect();
    for (message, said) in [
        (modern("tools/list", json!({"_meta": {"junk": long}})), "_meta may have 65536 bytes"),
        (modern("prompts/get", json!({"name": "a", "arguments": {"q1": long}})), "262144 bytes"),
        (modern("prompts/get", json!({"name": "a", "arguments": many})), "100 arguments"),
        (modern("resources/read", json!({"uri": long})), "262144 bytes"),
        (modern("resources/list", json!({"cursor": long})), "262144 bytes"),
        (modern("subscriptions/listen", json!({"notifications": long})), "bytes"),
        (call("requestState", json!(long)), "requestState may have 65536 bytes"),
        (call("inputResponses", json!({"answer": long})), "inputResponses may have 1048576 bytes"),
        (modern("tools/call", json!({"name": long})), "there is no tool"),
    ] {
        let answer = refused(&message);
        let error = &answer["error"];
        assert_eq!((&answer["id"], &error["code"]), (&json!(1), &json!(-32602)), "{error}");
        let details = error["data"]["details"].as_str().unwrap();
        assert!(details.contains(said), "{details}");
    }
    let mut initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    initialize["clientInfo"] = json!({"name": long});
    let initialize =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize});
    assert_eq!(refused(&initialize)["error"]["code"], -32602);
}

#[test]
fn long_ids_and_methods_are_not_repeated() {
    let mut message = modern("tools/list", json!({}));
    message["id"] = json!("x".repeat(4 * 1024));
    let answer = refused(&message);
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    let answer = refused(&modern(&"x".repeat(MUCH), json!({})));
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32600)));
}
