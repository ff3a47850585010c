//! A client, what it asks for, and what it is told.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::Era;
use crate::http_agent::{answer_of, handshake, legacy, modern};
use crate::http_client::Request;
use crate::transcripts::PATIENCE;

/// Nobody waits for longer. The store gives up after ten seconds; the rest is for a slow machine, and less than another
/// ten.
pub(super) const LATEST: Duration = Duration::from_secs(18);
/// What needs no store is not held up by it. For a slow machine, too.
pub(super) const AT_ONCE: Duration = Duration::from_secs(8);
/// How often something is looked at that is about to change.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    /// What it carries where it speaks as those do who had a handshake.
    handshake: String,
}

/// What a client was told.
#[derive(Debug)]
pub(super) enum Answer {
    Good(Value),
    /// The same call may be made again, and why.
    Later(String),
}

impl Answer {
    pub(super) fn good(self) -> Value {
        match self {
            Self::Good(result) => result,
            Self::Later(why) => panic!("{why}"),
        }
    }

    pub(super) fn is_good(&self) -> bool {
        matches!(self, Self::Good(_))
    }
}

impl Client {
    pub(super) fn of(address: SocketAddr) -> Self {
        Self { address, handshake: handshake(address) }
    }

    /// A tool's answer.
    pub(super) fn call(&self, era: Era, tool: &str, arguments: &Value) -> Answer {
        self.ask(era, "tools/call", &json!({"name": tool, "arguments": arguments}), LATEST)
    }

    /// A request and what its client is told, which is within that time, and is good or may be tried again.
    pub(super) fn ask(&self, era: Era, method: &str, params: &Value, within: Duration) -> Answer {
        let start = Instant::now();
        let request = match era {
            Era::Legacy => legacy(&self.handshake, 1, method, params),
            Era::Modern => modern(method, params.clone(), &json!({})),
        };
        let response = request.send(self.address);
        let response = response.unwrap_or_else(|error| panic!("{method} {params}: {error}"));
        let took = start.elapsed();
        let text = String::from_utf8_lossy(&response.body);
        assert!(took < within, "{method} {params} was answered after {took:?}: {text}");
        if response.head.status == 503 {
            assert!(response.head.header("Retry-After").is_some(), "{response:?}");
            return Answer::Later(format!("{method}: 503"));
        }
        let mut answer = answer_of(&response);
        let result = answer["result"].take();
        let said = match result.get("isError") {
            None if result.is_object() => return Answer::Good(result),
            None => answer["error"].take(),
            Some(_) => {
                serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap()
            }
        };
        // Too many wait already.
        if said["code"] == -32000 && said["message"] == "Server busy" {
            return Answer::Later(said.to_string());
        }
        assert_eq!(said["code"], -32006, "{method} {params}: {said} {result}");
        let text = format!("{said} {}", result["content"][0]["text"]);
        assert!(text.contains("the store cannot be used now"), "{method} {params}: {text}");
        assert!(text.contains("the same call may be made again"), "{method} {params}: {text}");
        Answer::Later(text)
    }

    /// What needs no store is answered, and at once.
    pub(super) fn ask_without_a_store(&self) {
        let start = Instant::now();
        assert_eq!(self.status("/healthz"), 200);
        assert!(start.elapsed() < AT_ONCE, "it lives, but says so after {:?}", start.elapsed());
        for era in [Era::Legacy, Era::Modern] {
            for (tool, arguments) in [
                ("workflow_list", json!({})),
                ("workflow_next", json!({"workflowId": "long-one", "completedSteps": []})),
            ] {
                let params = json!({"name": tool, "arguments": arguments});
                let result = self.ask(era, "tools/call", &params, AT_ONCE).good();
                assert!(result["structuredContent"].is_object(), "{result}");
            }
        }
    }

    /// It says goodbye, and is not known any more.
    pub(super) fn part(self) {
        let end = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &self.handshake);
        let ended = end.send(self.address).unwrap();
        assert_eq!(ended.head.status, 204, "{ended:?}");
        let list = json!({"name": "workflow_list", "arguments": {}});
        let gone = legacy(&self.handshake, 1, "tools/call", &list).send(self.address);
        assert_eq!(gone.unwrap().head.status, 404);
    }

    pub(super) fn status(&self, path: &str) -> u16 {
        Request::new("GET", path).send(self.address).unwrap().head.status
    }

    pub(super) fn wait_until_ready(&self) {
        self.wait_for(200);
    }

    pub(super) fn wait_until_away(&self) {
        self.wait_for(503);
    }

    fn wait_for(&self, status: u16) {
        let start = Instant::now();
        while self.status("/readyz") != status {
            assert!(start.elapsed() < PATIENCE, "/readyz does not turn to {status}");
            std::thread::sleep(PAUSE);
        }
    }
}
