//! Plays a transcript over HTTP, as a client does: each message is a POST, what answers it is its response, and what is
//! told without a question comes by a GET that is open from the handshake on.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use serde_json::{Value, json};

use super::{Heard, PATIENCE, furnished};
use crate::Place;
use crate::http_client::{Connection, Request};
use crate::http_server::Listening;

const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

pub(super) struct OverHttp {
    server: Listening,
    session: Option<Session>,
    /// Where responses go. None once nothing is sent any more.
    sender: Option<Sender<Heard>>,
    responses: Receiver<Heard>,
    /// What is told without a question, in the session.
    told: Receiver<Heard>,
    /// Streams that go on, by the ids of their requests.
    open: HashMap<String, TcpStream>,
    /// The last thing that was asked for.
    asked: Value,
    unknown: Vec<String>,
    is_told_to_end: bool,
    _place: Place,
}

/// What a handshake came to.
struct Session {
    id: String,
    revision: String,
}

impl OverHttp {
    pub(super) fn start(place: Place, options: &[&str]) -> Self {
        let place = furnished(place);
        let (sender, responses) = channel();
        Self {
            server: Listening::spawn(
                place.command(&[&["serve", "--http", "127.0.0.1:0"], options].concat()),
            ),
            session: None,
            sender: Some(sender),
            responses,
            told: channel().1,
            open: HashMap::new(),
            asked: Value::Null,
            unknown: Vec::new(),
            is_told_to_end: false,
            _place: place,
        }
    }

    /// These methods do not exist here.
    pub(super) fn set_unknown(&mut self, methods: &[&str]) {
        self.unknown = methods.iter().copied().map(str::to_owned).collect();
    }

    pub(super) fn send(&mut self, line: &str) {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let request = self.request(line, &message);
        let mut connection = Connection::open(self.server.address).unwrap();
        let head = connection.begin(&request).unwrap();
        let sender = self.sender.clone().unwrap();
        if head.is_stream() {
            self.open.insert(message["id"].to_string(), connection.stream().unwrap());
            std::thread::spawn(move || hear(connection, head.status, &sender));
        } else {
            let body = connection.body().unwrap();
            let back = match &*body {
                [] => Value::Null,
                body => serde_json::from_slice(body).unwrap(),
            };
            if let Some(id) = head.header("Mcp-Session-Id") {
                self.begin_session(id, &back);
            }
            // What needs no answer is taken with this status, and no line tells of it.
            if head.status != 202 || !back.is_null() || is_request(&message) {
                sender.send(Heard { status: Some(head.status), message: back }).unwrap();
            }
        }
        if is_request(&message) {
            self.asked = message;
        }
    }

    /// A message as a client sends it: with the headers of its era.
    fn request(&self, line: &str, message: &Value) -> Request {
        let request = Request::post(line);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if is_modern(message) {
            let params = &message["params"];
            let version = text(&params["_meta"][VERSION]).unwrap_or_else(|| MODERN.to_owned());
            let method = text(&message["method"]).unwrap();
            let name = match &*method {
                "tools/call" | "prompts/get" => text(&params["name"]),
                "resources/read" => text(&params["uri"]),
                _ => None,
            };
            let request =
                request.header("MCP-Protocol-Version", &version).header("Mcp-Method", &method);
            return match name {
                Some(name) => request.header("Mcp-Name", &name),
                None => request,
            };
        }
        match &self.session {
            Some(session) if message["method"] != "initialize" => {
                let request = request.header("Mcp-Session-Id", &session.id);
                // Clients of earlier revisions know no such header.
                match &*session.revision {
                    "2024-11-05" | "2025-03-26" => request,
                    revision => request.header("MCP-Protocol-Version", revision),
                }
            }
            // A client without a handshake says with everything which revision it speaks.
            None if is_modern(&self.asked) && !is_request(message) => {
                request.header("MCP-Protocol-Version", MODERN)
            }
            _ => request,
        }
    }

    /// A client that has shaken hands listens, and has no use for the session that it had before.
    fn begin_session(&mut self, id: &str, answer: &Value) {
        self.end_session();
        let mut connection = Connection::open(self.server.address).unwrap();
        let head = connection.begin(&Request::listen(id)).unwrap();
        assert!(head.status == 200 && head.is_stream(), "{head:?}");
        let (sender, told) = channel();
        std::thread::spawn(move || hear(connection, head.status, &sender));
        self.told = told;
        let revision = answer["result"]["protocolVersion"].as_str().unwrap().to_owned();
        self.session = Some(Session { id: id.to_owned(), revision });
    }

    fn end_session(&mut self) {
        let Some(Session { id, .. }) = self.session.take() else { return };
        let goodbye = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &id);
        assert_eq!(goodbye.send(self.server.address).unwrap().head.status, 204);
    }

    /// Closes the stream that answers a request.
    pub(super) fn close(&mut self, id: &str) {
        self.open.remove(id).unwrap().shutdown(Shutdown::Both).unwrap();
    }

    pub(super) fn terminate(&mut self) {
        self.server.terminate();
        self.is_told_to_end = true;
    }

    /// What is expected here, where a method does not exist.
    pub(super) fn instead_of(&self, expected: Value) -> Value {
        let method = self.asked["method"].as_str().unwrap_or_default();
        let is_answer = expected.get("method").is_none() && expected["id"] == self.asked["id"];
        // A message that is malformed is refused before anybody looks at its method.
        if !is_answer
            || expected["error"]["code"] == -32600
            || !self.unknown.iter().any(|unknown| unknown == method)
        {
            return expected;
        }
        let error =
            json!({"code": -32601, "message": "Method not found", "data": {"method": method}});
        json!({"jsonrpc": "2.0", "id": self.asked["id"], "error": error})
    }

    /// The next message from where the expected one has to come.
    pub(super) fn receive(&mut self, expected: &Value) -> Option<Heard> {
        let is_told = expected["method"].as_str().is_some_and(|method| {
            method.ends_with("/list_changed") || method == "notifications/resources/updated"
        }) && expected["params"].get("_meta").is_none();
        let source = if is_told { &self.told } else { &self.responses };
        match source.recv_timeout(PATIENCE) {
            Ok(heard) => Some(heard),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no answer within {PATIENCE:?}"),
        }
    }

    /// The status says whether a message is a good one; in the modern era, also whether there is such a method.
    pub(super) fn usual_status(&self, expected: &Value) -> u16 {
        match expected["error"]["code"].as_i64() {
            Some(-32700 | -32600 | -32022..=-32020) => 400,
            Some(-32601) if is_modern(&self.asked) => 404,
            _ => 200,
        }
    }

    /// Says goodbye and tells the server to end. Nothing more may come, and the end is a good one.
    pub(super) fn end(mut self) -> String {
        if !self.is_told_to_end {
            self.end_session();
            self.server.terminate();
        }
        self.sender = None;
        for source in [&self.responses, &self.told] {
            match source.recv_timeout(PATIENCE) {
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => return "a stream does not end\n".to_owned(),
                Ok(Heard { status, message }) => {
                    return format!("unexpected {message}, with status {status:?}\n");
                }
            }
        }
        match self.server.wait() {
            Some(0) => String::new(),
            status => format!("the exit status is {status:?}\n"),
        }
    }
}

/// Passes on what a stream brings. One that was cut brings nothing more.
fn hear(mut connection: Connection, status: u16, sender: &Sender<Heard>) {
    while let Ok(Some(event)) = connection.event() {
        // The first one of a stream may only say how to come back to it.
        if event.data.is_empty() {
            assert!(event.id.is_some(), "{event:?}");
            continue;
        }
        let message = serde_json::from_str(&event.data).unwrap();
        if sender.send(Heard { status: Some(status), message }).is_err() {
            break;
        }
    }
}

fn is_request(message: &Value) -> bool {
    message.get("id").is_some() && message.get("method").is_some()
}

fn is_modern(message: &Value) -> bool {
    let meta = &message["params"]["_meta"];
    let method = message["method"].as_str();
    meta.get(VERSION).is_some()
        || meta.get("io.modelcontextprotocol/clientCapabilities").is_some()
        || method
            .is_some_and(|method| ["server/discover", "subscriptions/listen"].contains(&method))
}
