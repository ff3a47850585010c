//! Somebody who speaks with our server, a request at a time.

use serde_json::{Value, json};

use crate::contestants::Contestant;
use crate::server::Server;

pub struct Agent {
    pub server: Server,
    id: usize,
}

impl Agent {
    pub fn start(contestant: &Contestant) -> Self {
        let mut server = Server::start(contestant);
        server.shake_hands();
        Self { server, id: 0 }
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answers = self.server.ask_many(format!("{request}\n").as_bytes(), 1);
        let mut answer: Value = serde_json::from_slice(&answers[0]).expect("an answer");
        answer["result"].take()
    }

    /// The texts that a call comes back with.
    pub fn call(&mut self, call: &Value) -> String {
        let result = self.ask("tools/call", call);
        assert_ne!(result["isError"], true, "{result}");
        assert!(result["structuredContent"].is_null(), "all there is to read is text: {result}");
        let blocks = result["content"].as_array().expect("content");
        blocks.iter().map(|block| block["text"].as_str().expect("a text")).collect()
    }
}
