//! Over HTTP: who may call upstreams, what is noted and counted, and what other processes make of an answer.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::house::{arguments, parsed, place, refused, text};
use super::upstream::{Seen, Upstream};
use crate::Place;
use crate::agent::Era;
use crate::http_agent::{answer_of, hello, legacy, modern, session_of};
use crate::http_client::{Connection, Request};
use crate::http_server::Listening;

pub(super) struct Client {
    address: SocketAddr,
    token: Option<String>,
    era: Era,
    capabilities: Value,
    handshake: String,
}

impl Client {
    pub(super) fn connect(
        server: &Listening,
        token: Option<&str>,
        era: Era,
        capabilities: Value,
    ) -> Self {
        let token = token.map(str::to_owned);
        let mut client =
            Self { address: server.address, token, era, capabilities, handshake: String::new() };
        if era == Era::Legacy {
            let hello = client.with_token(hello(&client.capabilities));
            client.handshake = session_of(&hello.send(server.address).unwrap());
        }
        client
    }

    fn with_token(&self, request: Request) -> Request {
        match &self.token {
            Some(token) => request.header("Authorization", &format!("Bearer {token}")),
            None => request,
        }
    }

    fn written(&self, method: &str, params: &Value) -> Request {
        self.with_token(match self.era {
            Era::Modern => modern(method, params.clone(), &self.capabilities),
            Era::Legacy => legacy(&self.handshake, 7, method, params),
        })
    }

    pub(super) fn ask(&self, method: &str, params: &Value) -> Value {
        answer_of(&self.written(method, params).send(self.address).unwrap())
    }

    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    fn listen(&self, uri: &str) -> Connection {
        let mut stream = Connection::open(self.address).unwrap();
        match self.era {
            Era::Modern => {
                let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
                let request = self.written("subscriptions/listen", &wanted);
                assert!(stream.begin(&request).unwrap().is_stream());
            }
            Era::Legacy => {
                let request = self.with_token(Request::listen(&self.handshake));
                assert!(stream.begin(&request).unwrap().is_stream());
                self.ask("resources/subscribe", &json!({"uri": uri}));
            }
        }
        // That it listens.
        stream.event().unwrap().unwrap();
        stream
    }
}

const LOG: &str = "audit.jsonl";

fn tokens(place: &Place) -> [String; 3] {
    ["use", "approve", "admin"].map(|right| token(place, right, right))
}

pub(super) fn token(place: &Place, name: &str, right: &str) -> String {
    let made = place.run(&["token", "new", name, "--right", right, "--audit-log", LOG]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    made.stdout.trim().to_owned()
}

#[test]
fn only_who_may_use_may_call() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({"tools": {"deny": ["large"]}}))]);
    let [user, approver, admin] = tokens(&place);
    let server =
        Listening::spawn(place.command(&["serve", "--http", "127.0.0.1:0", "--audit-log", LOG]));
    for era in [Era::Legacy, Era::Modern] {
        let client = |token: &str| Client::connect(&server, Some(token), era, json!({}));
        let echo = arguments("notes", "echo", json!({"text": "a-secret"}));
        let called = client(&user).call("call_mcp_tool", &echo);
        assert_eq!(text(&called), "a-secret");
        assert!(matches!(upstream.seen(), Seen::Called("echo", _)));
        let list = |token: &str| {
            let listed = client(token).ask("resources/list", &json!({}));
            listed["result"].to_string().contains("mcp+notes:")
        };
        assert!(list(&user));
        let read = json!({"uri": "mcp+notes:note:a"});
        assert!(client(&user).ask("resources/read", &read).get("result").is_some());
        assert_eq!(upstream.seen(), Seen::Read("note:a".to_owned()));
        let denied = client(&user).call("call_mcp_tool", &arguments("notes", "large", json!({})));
        assert_eq!(refused(&denied).1["code"], -32007);
        for token in [&approver, &admin] {
            for (tool, arguments) in [
                ("call_mcp_tool", echo.clone()),
                ("describe_mcp", json!({"id": "notes"})),
                ("list_mcp_capabilities", json!({"query": "echo"})),
            ] {
                let result = client(token).call(tool, &arguments);
                assert_eq!(refused(&result).1["code"], -32007, "{tool}");
            }
            assert!(!list(token));
            let read = client(token).ask("resources/read", &read);
            assert_eq!(read["error"]["code"], -32007, "{read}");
        }
        assert!(upstream.has_seen_nothing());
    }
    let metrics = Client::connect(&server, Some(&admin), Era::Modern, json!({}))
        .with_token(Request::new("GET", "/metrics"))
        .send(server.address)
        .unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    for line in [
        r#"workflowlookup_upstream_calls_total{server="notes",outcome="ok"} 2"#,
        r#"workflowlookup_upstream_calls_total{server="notes",outcome="refused"} 2"#,
        r#"workflowlookup_upstream_call_duration_seconds_count{server="notes"} 4"#,
        "workflowlookup_upstream_calls_waiting 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    server.end();
    let noted = std::fs::read_to_string(place.project().join(LOG)).unwrap();
    assert!(!noted.contains("a-secret"), "{noted}");
    let denials = noted.lines().filter(|line| line.contains(r#""server":"notes","tool":"large""#));
    assert_eq!(denials.count(), 2, "{noted}");
    let rights = noted.lines().filter(|line| line.contains(r#""wanted":"call_mcp_tool""#));
    assert_eq!(rights.count(), 2 + 4, "{noted}");
}

/// The limit of an upstream is everybody's together.
#[test]
fn a_limit_is_shared_by_all_callers() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({"maxCallsPerMinute": 3}))]);
    let server = Listening::start(&place);
    let echo = arguments("notes", "echo", json!({"text": "a"}));
    let clients = [Era::Legacy, Era::Modern, Era::Legacy, Era::Modern]
        .map(|era| Client::connect(&server, None, era, json!({})));
    let results = clients.map(|client| client.call("call_mcp_tool", &echo));
    let (last, first) = results.split_last().unwrap();
    assert!(first.iter().all(|result| text(result) == "a"));
    let (advice, error) = refused(last);
    assert_eq!((&error["code"], &error["data"]["retryable"]), (&json!(-32008), &json!(true)));
    assert!(advice.contains("`notes`"), "{advice}");
}

/// A confirmation is taken by any process with the same key, and counts; a question waits in the one that asked.
#[test]
fn what_other_processes_make_of_an_answer() {
    let upstream = Upstream::start();
    let place = place(&[
        upstream.entry("notes", json!({})),
        upstream.entry("vault", json!({"sensitivity": "high"})),
    ]);
    let (first, second) = (Listening::start(&place), Listening::start(&place));
    let at = |server| Client::connect(server, None, Era::Modern, json!({"elicitation": {}}));
    let confirmed = |asked: &Value, called: &Value| {
        json!({
            "name": "call_mcp_tool", "arguments": called, "requestState": asked["requestState"],
            "inputResponses": {"answer": {"action": "accept", "content": {"name": "Ada"}}},
        })
    };
    let echo = arguments("vault", "echo", json!({"text": "a"}));
    let asked = at(&first).call("call_mcp_tool", &echo);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answered = at(&second).ask("tools/call", &confirmed(&asked, &echo));
    assert_eq!(text(&answered["result"]), "a");

    let asks = arguments("notes", "asks", json!({}));
    let asked = at(&first).call("call_mcp_tool", &asks);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let elsewhere = at(&second).ask("tools/call", &confirmed(&asked, &asks));
    let (advice, error) = refused(&elsewhere["result"]);
    assert_eq!(error["code"], -32005, "{advice}");
    assert!(advice.contains("another process"), "{advice}");
    let waiting = Request::new("GET", "/metrics").send(first.address).unwrap();
    assert!(
        String::from_utf8(waiting.body)
            .unwrap()
            .contains("workflowlookup_upstream_calls_waiting 1")
    );
    let answered = at(&first).ask("tools/call", &confirmed(&asked, &asks));
    assert_eq!(text(&answered["result"]), "Hello, Ada");
}

/// A client with a handshake is asked on the stream of its call, and answers by another request.
#[test]
fn a_client_with_a_handshake_is_asked_on_its_stream() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let server = Listening::start(&place);
    let client = Client::connect(&server, None, Era::Legacy, json!({"elicitation": {}}));
    let params =
        json!({"name": "call_mcp_tool", "arguments": arguments("notes", "asks_twice", json!({}))});
    let mut stream = Connection::open(server.address).unwrap();
    assert!(stream.begin(&client.written("tools/call", &params)).unwrap().is_stream());
    let mut next = || -> Value {
        loop {
            let event = stream.event().unwrap().unwrap();
            if !event.data.is_empty() {
                return serde_json::from_str(&event.data).unwrap();
            }
        }
    };
    for (message, content) in [
        ("`notes` asks: Your name?", json!({"name": "Ada"})),
        ("`notes` asks: Your age?", json!({"age": 36})),
    ] {
        let asked = next();
        assert_eq!(asked["params"]["message"], message);
        let result = json!({"action": "accept", "content": content});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string();
        let taken = crate::http_agent::carrying(&client.handshake, answer);
        assert_eq!(taken.send(server.address).unwrap().head.status, 202);
    }
    assert_eq!(text(&next()["result"]), "Ada is 36");
}

/// Who closes the stream of a modern call takes the upstream's back; so does who cancels one with a handshake.
#[test]
fn a_call_is_taken_back_over_http() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let server = Listening::start(&place);
    let params =
        json!({"name": "call_mcp_tool", "arguments": arguments("notes", "waits", json!({}))});
    for era in [Era::Legacy, Era::Modern] {
        let client = Client::connect(&server, None, era, json!({}));
        let mut stream = Connection::open(server.address).unwrap();
        assert!(stream.begin(&client.written("tools/call", &params)).unwrap().is_stream());
        assert_eq!(upstream.seen(), Seen::Called("waits", json!({})));
        match era {
            Era::Modern => drop(stream),
            Era::Legacy => {
                let params = json!({"requestId": 7});
                let cancelled = json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
                });
                let sent = crate::http_agent::carrying(&client.handshake, cancelled.to_string());
                assert_eq!(sent.send(server.address).unwrap().head.status, 202);
            }
        }
        assert_eq!(upstream.seen(), Seen::Withdrawn);
    }
}

#[test]
fn updates_are_told_over_http() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let [user, approver, _] = tokens(&place);
    let server = Listening::start(&place);
    let uri = "mcp+notes:note:a";
    for era in [Era::Legacy, Era::Modern] {
        let client = Client::connect(&server, Some(&user), era, json!({}));
        let mut stream = client.listen(uri);
        // Who may not use upstreams follows in vain.
        let stranger = Client::connect(&server, Some(&approver), era, json!({}));
        let mut other = stranger.listen(uri);
        let is_told = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_told.load(std::sync::atomic::Ordering::Relaxed) {
                    upstream.update("note:a");
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            });
            let told = loop {
                let event = stream.event().unwrap().unwrap();
                if !event.data.is_empty() {
                    break serde_json::from_str::<Value>(&event.data).unwrap();
                }
            };
            is_told.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(told["method"], "notifications/resources/updated", "{told}");
            assert_eq!(told["params"]["uri"], uri);
        });
        other.set_patience(std::time::Duration::from_millis(100));
        while let Ok(Some(event)) = other.event() {
            assert!(!event.data.contains("note:a"), "{}", event.data);
        }
    }
}

/// An answer of a tool can be found and described over HTTP as well.
#[test]
fn tools_are_found_over_http() {
    let upstream = Upstream::start();
    let place = place(&[upstream.entry("notes", json!({}))]);
    let server = Listening::start(&place);
    for era in [Era::Legacy, Era::Modern] {
        let client = Client::connect(&server, None, era, json!({}));
        let found = client.call("list_mcp_capabilities", &json!({"query": "say a text back"}));
        assert_eq!(parsed(&found)["tools"][0]["tool"], "echo");
        let described = client.call("describe_mcp", &json!({"id": "notes", "tool": "echo"}));
        assert_eq!(parsed(&described)["tools"][0]["name"], "echo");
    }
}
