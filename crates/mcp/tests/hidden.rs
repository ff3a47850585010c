//! Hidden tools: `tools/list` omits them, `tools/call` refuses them, and their methods answer.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use mcp::content::{About, Tool};
use mcp::{Action, Connection, HiddenTool, Reply, Server, Transport};
use serde_json::{Value, json};

fn connection() -> Connection {
    let about = || About {
        title: "Title",
        description: "Description",
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    let tools = ["shown", "kept"].map(|name| Tool { name, is_method: true, about });
    let mut server = Server::new("test", "Test", "1.0.0", "For a test", "None", tools.into());
    server.hidden = vec![HiddenTool { name: "kept", advice: "call `shown`" }];
    Connection::new(Arc::new(server), Transport::Stdio)
}

/// The response; `null` for a call that the host gets.
fn ask(connection: &mut Connection, method: &str, params: &Value) -> Value {
    let id = format!("{method} {params}");
    let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let mut actions = Vec::new();
    connection.receive(line.to_string().as_bytes(), &mut actions);
    // The host answers none of them.
    actions.retain(|action| !matches!(action, Action::Warn(_)));
    match actions.remove(0) {
        Action::Reply(Reply { text, .. }) => serde_json::from_str(&text).unwrap(),
        Action::Call { .. } => Value::Null,
        action => panic!("{action:?}"),
    }
}

#[test]
fn hidden_tool_answers_only_as_method() {
    let mut connection = connection();
    ask(
        &mut connection,
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
    );
    let listed = ask(&mut connection, "tools/list", &json!({}));
    let names = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["shown"]);
    let refused = ask(&mut connection, "tools/call", &json!({"name": "kept"}));
    let details = "there is no tool `kept`: call `shown`";
    assert_eq!(
        refused["error"],
        json!({"code": -32602, "message": "Invalid params", "data": {"details": details}})
    );
    assert_eq!(ask(&mut connection, "tools/call", &json!({"name": "shown"})), Value::Null);
    assert_eq!(ask(&mut connection, "kept", &json!({})), Value::Null);
}
