//! An agent's side of sessions, over the real server: calls of which several may be under way, and what is said
//! besides their answers.

use std::process::Stdio;

use serde_json::{Value, json};

use super::Place;
use super::transcripts::Process;

/// The workflow of most tests: a step that is checked, one that waits for a person, and one more.
pub(super) const LETTER: &str = include_str!("../transcripts/workflows/letter.json");

/// How an agent's client speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// With a handshake.
    Legacy,
    /// Every request says everything itself.
    Modern,
}

pub(super) struct Agent {
    pub(super) process: Process,
    era: Era,
    capabilities: Value,
    requests: u64,
}

/// What a server says.
pub(super) enum Heard {
    Answer {
        id: u64,
        /// What came of the call; an error of the protocol is a failure of the test.
        result: Value,
    },
    /// It wants to know something from our user.
    Asked {
        id: Value,
        message: String,
    },
    Told {
        method: String,
        params: Value,
    },
}

impl Agent {
    /// A client that cannot ask its user.
    pub(super) fn start(place: &Place) -> Self {
        Self::start_in(Era::Legacy, place)
    }

    pub(super) fn start_in(era: Era, place: &Place) -> Self {
        let mut command = place.command(&["serve"]);
        command.stderr(Stdio::null());
        Self::connect(Process::spawn(command), era, json!({}))
    }

    pub(super) fn connect(process: Process, era: Era, capabilities: Value) -> Self {
        let mut agent = Self { process, era, capabilities: capabilities.clone(), requests: 0 };
        if era == Era::Legacy {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
            agent.request("initialize", hello);
        }
        agent
    }

    /// Sends a request, and waits for nothing.
    pub(super) fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.requests += 1;
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1.0.0"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        self.send(method, &params)
    }

    /// The same with everything in it that has to be said.
    pub(super) fn begin_as_it_is(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        self.send(method, &params)
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        let request =
            json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params});
        self.process.send(request.to_string());
        self.requests
    }

    pub(super) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Our user has said something.
    pub(super) fn reply(&mut self, id: &Value, result: &Value) {
        self.process.send(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    /// The next that the server says; none when it is gone.
    pub(super) fn hear(&mut self) -> Option<Heard> {
        self.process.receive().map(Heard::of)
    }

    /// The next answer, whatever else is said meanwhile.
    pub(super) fn answer(&mut self) -> (u64, Value) {
        loop {
            match self.hear().unwrap() {
                Heard::Answer { id, result } => return (id, result),
                Heard::Told { .. } => {}
                Heard::Asked { message, .. } => panic!("nobody can answer: {message}"),
            }
        }
    }

    /// Ends the input: the server has no more answers, and ends well.
    pub(super) fn end(mut self) {
        self.process.input = None;
        while let Some(heard) = self.hear() {
            assert!(matches!(heard, Heard::Told { .. }), "an answer that nobody waits for");
        }
        assert_eq!(self.process.wait().code(), Some(0));
    }

    /// A request, and its result.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let sent = self.begin(method, params);
        let (id, result) = self.answer();
        assert_eq!(id, sent, "{result}");
        result
    }

    /// A call that nothing else is under way with.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Begins a session; its id.
    pub(super) fn start_session(&mut self, workflow: &str) -> String {
        let started = self.call("workflow_start", &json!({"workflowId": workflow}));
        structured(&started)["sessionId"].as_str().unwrap().to_owned()
    }

    /// Where a session stands.
    pub(super) fn status(&mut self, session: &str) -> Value {
        structured(&self.call("workflow_status", &json!({"sessionId": session}))).clone()
    }
}

impl Heard {
    pub(super) fn of(mut message: Value) -> Self {
        let method = message["method"].as_str().map(str::to_owned);
        match (method, message.get("id")) {
            (None, Some(id)) => {
                let id = id.as_u64().unwrap_or_else(|| panic!("{message}"));
                assert!(message["result"].is_object(), "{message}");
                Self::Answer { id, result: message["result"].take() }
            }
            (Some(_), Some(id)) => {
                let text = message["params"]["message"].as_str().unwrap().to_owned();
                Self::Asked { id: id.clone(), message: text }
            }
            (Some(method), None) => Self::Told { method, params: message["params"].take() },
            (None, None) => panic!("{message}"),
        }
    }
}

/// The arguments of an advance.
pub(super) fn advance(session: &str, revision: u64, step: &str, output: &str) -> Value {
    json!({"sessionId": session, "revision": revision, "stepId": step, "output": output})
}

/// What a call that must succeed came to, for a machine.
pub(super) fn structured(result: &Value) -> &Value {
    assert!(result.get("isError").is_none(), "{result}");
    &result["structuredContent"]
}

/// What a call that must be refused says, and its code.
pub(super) fn refused(result: &Value) -> (&str, i64) {
    assert_eq!(result["isError"], true, "{result}");
    let text = |at: usize| result["content"][at]["text"].as_str().unwrap();
    let object: Value = serde_json::from_str(text(1)).unwrap();
    (text(0), object["code"].as_i64().unwrap())
}
