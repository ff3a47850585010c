//! A client in a test: it makes requests in the words of any revision, and says what comes of each.

use std::sync::Arc;

use mcp::{Action, Call, Caller, Connection, Outcome, Peer, Reply, Server, Ticket};
use serde_json::{Value, json};

pub(crate) const REVISIONS: [&str; 5] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

pub(crate) struct Client {
    pub(crate) connection: Connection,
    revision: &'static str,
    capabilities: Value,
}

impl Client {
    pub(crate) fn new(server: Server, revision: &'static str, capabilities: Value) -> Self {
        let connection = Connection::over_http(Arc::new(server), Peer::default());
        let mut client = Self { connection, revision, capabilities };
        if !client.is_modern() {
            let info = json!({"name": "test", "version": "1"});
            let params = json!({
                "protocolVersion": revision,
                "capabilities": client.capabilities,
                "clientInfo": info,
            });
            client.send(
                &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
            );
        }
        client
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision == "2026-07-28"
    }

    pub(crate) fn send(&mut self, message: &Value) -> Vec<Action> {
        let mut actions = Vec::new();
        self.connection.receive(message.to_string().as_bytes(), &mut actions);
        actions
    }

    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> Vec<Action> {
        if self.is_modern() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        self.send(&json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}))
    }

    /// Makes a request that only the host can answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> (Ticket, Call, Caller) {
        call(self.request(method, params))
    }

    pub(crate) fn finish(&mut self, ticket: Ticket, outcome: Outcome) -> Vec<Value> {
        let mut actions = Vec::new();
        self.connection.finish(ticket, outcome, &mut actions);
        messages(actions)
    }

    /// What a request comes to, whose outcome is known.
    pub(crate) fn outcome(&mut self, method: &str, params: Value, outcome: Outcome) -> Value {
        let (ticket, _, _) = self.call(method, params);
        let mut messages = self.finish(ticket, outcome);
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }
}

/// The only action: a call.
pub(crate) fn call(mut actions: Vec<Action>) -> (Ticket, Call, Caller) {
    assert_eq!(actions.len(), 1, "{actions:?}");
    match actions.remove(0) {
        Action::Call { ticket, call, caller } => (ticket, call, caller),
        action => panic!("{action:?}"),
    }
}

/// Messages to the client, whatever they are.
pub(crate) fn messages(actions: Vec<Action>) -> Vec<Value> {
    let texts = actions.into_iter().map(|action| match action {
        Action::Reply(Reply { text, .. }) | Action::Notify(text) => text,
        Action::Ask { message, .. } => message,
        action => panic!("{action:?}"),
    });
    texts.map(|text| serde_json::from_str(&text).unwrap()).collect()
}
