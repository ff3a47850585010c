//! A server that wants tokens, and people who have some.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::Place;
use crate::agent::{Era, LETTER, advance, structured};
use crate::http_agent::{answer_of, hello, legacy, modern, session_of};
use crate::http_client::{Connection, Request, Response};
use crate::http_server::Listening;
use crate::loop_gates::WIPE;
use crate::transcripts::PATIENCE;

/// Who there is, and what their tokens are good for. Sessions are the owner's, and shared with two of the others.
pub(super) const PEOPLE: [(&str, &str); 6] = [
    ("owner", "use"),
    ("other", "use"),
    ("colleague", "use"),
    ("approver", "approve"),
    ("stranger", "approve"),
    ("boss", "admin"),
];
/// Whom sessions are shared with.
pub(super) const SHARED: [&str; 2] = ["colleague", "approver"];

pub(super) struct House {
    pub(super) place: Place,
    pub(super) server: Listening,
    tokens: BTreeMap<&'static str, String>,
}

impl House {
    pub(super) fn open(gates: &str) -> Self {
        let place = Place::new();
        place.write("workflows/letter.json", LETTER);
        place.write("workflows/wipe.json", WIPE);
        place.write_trusted("mcp.registry.json", registry(&place));
        let tokens = PEOPLE.map(|(name, right)| {
            let made = place.run(&["token", "new", name, "--right", right, "--audit-log", LOG]);
            assert_eq!(made.status, 0, "{}", made.stderr);
            (name, made.stdout.trim().to_owned())
        });
        let server = Listening::spawn(place.command(&Self::serving(gates)));
        Self { place, server, tokens: tokens.into() }
    }

    pub(super) fn serving(gates: &str) -> [&str; 7] {
        ["serve", "--http", "127.0.0.1:0", "--gates", gates, "--audit-log", LOG]
    }

    /// A client that cannot ask its user.
    pub(super) fn client(&self, who: Option<&str>, era: Era) -> Client {
        self.client_of(self.server.address, who, era, json!({}))
    }

    /// Revokes somebody's token, and makes another one under the same name.
    pub(super) fn make_anew(&mut self, who: &'static str, right: &str) {
        let log = ["--audit-log", LOG];
        let run = |words: &[&str]| self.place.run(&[words, &log].concat());
        assert_eq!(run(&["token", "revoke", who]).status, 0);
        let made = run(&["token", "new", who, "--right", right]);
        assert_eq!(made.status, 0, "{}", made.stderr);
        let token = made.stdout.trim().to_owned();
        self.tokens.insert(who, token.clone());
        // A running server notices within a second.
        let start = std::time::Instant::now();
        let call = || with(self.server.address, token.clone()).call("workflow_list", &json!({}));
        while call().head.status != 200 {
            assert!(start.elapsed() < PATIENCE, "the token is never good");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    pub(super) fn client_of(
        &self,
        address: SocketAddr,
        who: Option<&str>,
        era: Era,
        capabilities: Value,
    ) -> Client {
        let token = who.map(|who| self.tokens[who].clone());
        let mut client = Client { address, token, era, capabilities, handshake: String::new() };
        if era == Era::Legacy {
            let response = client.send(hello(&client.capabilities));
            client.handshake = match client.token {
                Some(_) => session_of(&response),
                None => "none".to_owned(),
            };
        }
        client
    }

    /// Takes back what was shared: one owner shares at most 20 open sessions with another principal.
    pub(super) fn end_shares(&self) {
        let path = self.place.home().join(".local/state/workflowlookup/sessions.db");
        let store = rusqlite::Connection::open(path).unwrap();
        store.busy_timeout(PATIENCE).unwrap();
        // Nobody has begun a session yet where there is no table.
        let _ = store.execute("DELETE FROM shares", []);
    }

    /// The audit log, line by line.
    pub(super) fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.place.project().join(LOG)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every token that somebody has.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.tokens.values().map(String::as_str)
    }
}

const LOG: &str = "audit.jsonl";

/// Our own program as another server, which is started when somebody calls it.
fn registry(place: &Place) -> String {
    let folder = place.root.path().join("other");
    fs::create_dir_all(&folder).unwrap();
    let mcp = json!({
        "transport": "stdio", "command": env!("CARGO_BIN_EXE_workflowlookup"), "args": ["serve"],
        "cwd": folder, "env": {"HOME": folder},
    });
    let entry = json!({
        "id": "other", "mcp": mcp, "sensitivity": "low", "autoDiscoverTools": false,
        "timeoutMs": 30_000,
    });
    json!({"servers": [entry]}).to_string()
}

pub(super) struct Client {
    pub(super) address: SocketAddr,
    token: Option<String>,
    pub(super) era: Era,
    capabilities: Value,
    handshake: String,
}

impl Client {
    pub(super) fn with_token(&self, request: Request) -> Request {
        match &self.token {
            Some(token) => request.header("Authorization", &format!("Bearer {token}")),
            None => request,
        }
    }

    pub(super) fn send(&self, request: Request) -> Response {
        self.with_token(request).send(self.address).unwrap()
    }

    /// Goes on with another client's handshake.
    pub(super) fn carry(&mut self, other: &Self) {
        self.handshake.clone_from(&other.handshake);
    }

    /// A request of MCP, as this client writes it.
    pub(super) fn written(&self, method: &str, params: &Value) -> Request {
        let request = match self.era {
            Era::Modern => modern(method, params.clone(), &self.capabilities),
            Era::Legacy => legacy(&self.handshake, 1, method, params),
        };
        self.with_token(request)
    }

    pub(super) fn ask(&self, method: &str, params: &Value) -> Response {
        self.written(method, params).send(self.address).unwrap()
    }

    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Response {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// What a call that must succeed came to.
    pub(super) fn told(&self, tool: &str, arguments: &Value) -> Value {
        structured(&answer_of(&self.call(tool, arguments))["result"]).clone()
    }

    /// An endpoint beside MCP.
    pub(super) fn endpoint(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = Request::new(method, path);
        let request = match body {
            Value::Null => request,
            body => request.header("Content-Type", "application/json").body(body.to_string()),
        };
        self.send(request)
    }

    /// Begins a session that is shared as most are; its id.
    pub(super) fn start(&self) -> String {
        let start =
            json!({"workflowId": "letter", "goal": "a polite farewell", "sharedWith": SHARED});
        self.told("workflow_start", &start)["sessionId"].as_str().unwrap().to_owned()
    }

    /// One whose first step is done.
    pub(super) fn begun(&self) -> String {
        let session = self.start();
        self.told("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
        session
    }

    /// One that waits for a person, and the version that they decide about.
    pub(super) fn waiting(&self) -> (String, u64) {
        let session = self.begun();
        let stands = self.told("workflow_advance", &advance(&session, 1, "send-it", "by post"));
        let version = stands["waiting"]["version"].as_u64().unwrap();
        (session, version)
    }

    /// The stream of what a client with a handshake is told, opened with whatever it follows.
    pub(super) fn resume(&self) -> Connection {
        let mut stream = Connection::open(self.address).unwrap();
        let request = self.with_token(Request::listen(&self.handshake));
        assert!(stream.begin(&request).unwrap().is_stream());
        stream.event().unwrap().unwrap();
        stream
    }

    /// The stream of what it is told, with these resources subscribed to.
    pub(super) fn listen(&self, uris: &[String]) -> Connection {
        let mut stream;
        match self.era {
            Era::Modern => {
                stream = Connection::open(self.address).unwrap();
                let wanted = json!({"resourceSubscriptions": uris, "resourcesListChanged": true});
                let request =
                    self.written("subscriptions/listen", &json!({"notifications": wanted}));
                assert!(stream.begin(&request).unwrap().is_stream());
                // That it listens.
                stream.event().unwrap().unwrap();
            }
            Era::Legacy => {
                stream = self.resume();
                for uri in uris {
                    let subscribed = self.ask("resources/subscribe", &json!({"uri": uri}));
                    assert_eq!(answer_of(&subscribed)["result"], json!({}));
                }
            }
        }
        stream
    }

    /// Says yes to a question of the server's.
    pub(super) fn approve(&self, id: &Value) -> Response {
        let result = json!({"action": "accept", "content": {"decision": "approve"}});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        self.send(crate::http_agent::carrying(&self.handshake, answer))
    }
}

/// Somebody who shows this token.
pub(super) fn with(address: SocketAddr, token: String) -> Client {
    Client { token: Some(token), ..nobody(address) }
}

/// Somebody who has no token, where none is wanted.
pub(super) fn nobody(address: SocketAddr) -> Client {
    let (era, capabilities, handshake) = (Era::Modern, json!({}), String::new());
    Client { address, token: None, era, capabilities, handshake }
}

/// The next message of a stream.
pub(super) fn next(stream: &mut Connection) -> Value {
    loop {
        let event = stream.event().unwrap().unwrap();
        if !event.data.is_empty() {
            return serde_json::from_str(&event.data).unwrap();
        }
    }
}
