//! What a client over HTTP hears besides its answers, and by which of its streams.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::{Value, json};

use super::Place;
use super::agent::{Era, LETTER, advance, structured};
use super::http_agent::{handshake, list, session_of};
use super::http_client::{Connection, Request};
use super::http_server::Listening;
use super::transcripts::PATIENCE;

/// A client with a handshake.
struct Client<'a> {
    server: &'a Listening,
    session: String,
}

impl<'a> Client<'a> {
    fn connect(server: &'a Listening, capabilities: &Value) -> Self {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = Request::post(hello.to_string()).send(server.address).unwrap();
        assert_eq!(response.head.status, 200);
        let session = response.head.header("Mcp-Session-Id").unwrap().to_owned();
        Self { server, session }
    }

    fn listen(&self) -> Connection {
        let mut stream = Connection::open(self.server.address).unwrap();
        assert_eq!(stream.begin(&Request::listen(&self.session)).unwrap().status, 200);
        // Only how to come back to it.
        assert_eq!(stream.event().unwrap().unwrap().data, "");
        stream
    }

    fn post(&self, message: &Value) -> Request {
        Request::post(message.to_string())
            .header("Mcp-Session-Id", &self.session)
            .header("MCP-Protocol-Version", "2025-11-25")
    }

    fn call(&self, tool: &str, arguments: &Value) -> Request {
        let params = json!({"name": tool, "arguments": arguments});
        self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    }

    /// A call that is answered at once.
    fn ask(&self, tool: &str, arguments: &Value) -> Value {
        let response = self.call(tool, arguments).send(self.server.address).unwrap();
        assert_eq!(response.head.status, 200);
        structured(&response.json()["result"]).clone()
    }
}

/// The next message of a stream.
fn next(stream: &mut Connection) -> Value {
    let event = stream.event().unwrap().unwrap();
    if event.data.is_empty() { next(stream) } else { serde_json::from_str(&event.data).unwrap() }
}

/// A stream that answers a call has nothing on it but what belongs to that call.
#[test]
fn what_nobody_asked_for_is_told_on_one_stream() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let server = Listening::start(&place);
    let client = Client::connect(&server, &json!({"elicitation": {}}));
    let mut told = client.listen();
    let start = json!({"workflowId": "letter"});
    let session = client.ask("workflow_start", &start)["sessionId"].as_str().unwrap().to_owned();
    client.ask("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    assert_eq!(next(&mut told)["method"], "notifications/resources/list_changed");

    // While its user is asked, somebody else begins a session.
    let mut answer = Connection::open(server.address).unwrap();
    let sending = client.call("workflow_advance", &advance(&session, 1, "send-it", "by post"));
    assert!(answer.begin(&sending).unwrap().is_stream());
    let asked = next(&mut answer);
    assert_eq!(asked["method"], "elicitation/create");
    Client::connect(&server, &json!({})).ask("workflow_start", &start);
    assert_eq!(next(&mut told)["method"], "notifications/resources/list_changed");

    let content = json!({"decision": "approve"});
    let result = json!({"action": "accept", "content": content});
    let says = client.post(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    assert_eq!(says.send(server.address).unwrap().head.status, 202);
    let answered = next(&mut answer);
    assert_eq!(structured(&answered["result"])["accepted"], true, "{answered}");
    assert_eq!(answer.event().unwrap(), None, "it ends with the answer");
    // Who was not asked who they are is not the one who runs the server.
    let shown = place.run(&["session", "show", &session]).stdout;
    assert!(shown.contains("approved by somebody over HTTP"), "{shown}");
    told.set_patience(Duration::from_millis(200));
    let more = told.event().map_err(|error| error.kind());
    assert_eq!(more, Err(ErrorKind::TimedOut), "nothing else has changed for it");
    assert_eq!(server.end(), [""; 0]);
}

/// A client without a handshake opens a stream for what it wants to hear of, and hears of nothing else there.
#[test]
fn a_modern_client_is_told_on_the_stream_that_it_opened() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let server = Listening::start(&place);
    let somebody = Client::connect(&server, &json!({}));
    let start = json!({"workflowId": "letter"});
    let session = somebody.ask("workflow_start", &start)["sessionId"].as_str().unwrap().to_owned();

    let uri = format!("session://{session}");
    let mut told = listen(&server, &json!({"resourceSubscriptions": [uri]}));
    let mut lists = listen(&server, &json!({"resourcesListChanged": true}));
    somebody.ask("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    let updated = next(&mut told);
    assert_eq!(updated["method"], "notifications/resources/updated", "{updated}");
    assert_eq!(updated["params"]["uri"], uri);
    assert_eq!(updated["params"]["_meta"][SUBSCRIPTION], "listen");
    somebody.ask("workflow_start", &start);
    let changed = next(&mut lists);
    assert_eq!(changed["method"], "notifications/resources/list_changed", "{changed}");
    assert_eq!(changed["params"]["_meta"][SUBSCRIPTION], "listen");

    // The end of the server is the end of both, with an answer.
    server.terminate();
    for stream in [&mut told, &mut lists] {
        assert_eq!(next(stream)["id"], "listen");
        assert_eq!(stream.event().unwrap(), None);
    }
    assert_eq!(server.complaints.iter().collect::<Vec<_>>(), [""; 0]);
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(server: &Listening, wanted: &Value) -> Connection {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let method = "subscriptions/listen";
    let params = json!({"notifications": wanted, "_meta": meta});
    let request = json!({"jsonrpc": "2.0", "id": "listen", "method": method, "params": params});
    let request = Request::post(request.to_string())
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method);
    let mut stream = Connection::open(server.address).unwrap();
    assert!(stream.begin(&request).unwrap().is_stream());
    assert_eq!(next(&mut stream)["method"], "notifications/subscriptions/acknowledged");
    stream
}

/// Of two streams of a client only the newer is told anything, until it ends: then the older one is told what comes.
#[test]
fn the_older_stream_goes_on_where_the_newer_ended() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let server = Listening::start(&place);
    let session = handshake(server.address);
    let open = || {
        let mut stream = Connection::open(server.address).unwrap();
        assert!(stream.begin(&Request::listen(&session)).unwrap().is_stream());
        // What only tells the id.
        stream.event().unwrap();
        stream
    };
    let mut older = open();
    let mut newer = open();
    place.write("workflows/second.json", LETTER.replace("letter", "second"));
    assert!(next(&mut newer)["method"].as_str().unwrap().ends_with("list_changed"));
    assert!(next(&mut newer)["method"].as_str().unwrap().ends_with("list_changed"));
    drop(newer);
    // That it is gone is seen when something is written to it.
    std::thread::sleep(Duration::from_millis(100));
    place.write("workflows/third.json", LETTER.replace("letter", "third"));
    assert!(next(&mut older)["method"].as_str().unwrap().ends_with("list_changed"));
    assert_eq!(server.end(), [""; 0]);
}

/// A batch has no connection to keep a subscription for, and says so.
#[test]
fn a_subscription_is_no_part_of_a_batch() {
    let place = Place::new();
    let server = Listening::start(&place);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {},
    }});
    let session = session_of(&Request::post(hello.to_string()).send(server.address).unwrap());
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "session://x"}},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]);
    let request = Request::post(batch.to_string()).header("Mcp-Session-Id", &session);
    let answers = request.send(server.address).unwrap().json();
    assert_eq!(answers[0]["error"]["code"], -32600, "{answers}");
    assert_eq!(answers[1]["result"], json!({}), "{answers}");
    assert_eq!(server.end(), [""; 0]);
}

/// What streams follow is counted, for each principal: nobody fills the memory with names.
#[test]
fn what_streams_follow_is_bounded() {
    let place = Place::new();
    let server = Listening::start(&place);
    let uris: Vec<String> = (0..1000).map(|at| format!("session://{at:0>2000}")).collect();
    let mut open = Vec::new();
    let refused = loop {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"notifications": {"resourceSubscriptions": uris}, "_meta": meta});
        let method = "subscriptions/listen";
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = Request::post(request.to_string())
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method);
        let mut stream = Connection::open(server.address).unwrap();
        let head = stream.begin(&request).unwrap();
        if head.status != 200 {
            break head;
        }
        open.push(stream);
        assert!(open.len() < 100, "there is no end to it");
    };
    assert_eq!(refused.status, 429);
    assert!(refused.header("Retry-After").is_some());
    // Each has about 2 MB of names.
    assert!((10..20).contains(&open.len()), "{}", open.len());
    drop(open);
    assert_eq!(server.end(), [""; 0]);
}

/// A server that lets anybody in asks for tokens from the moment on that there are any.
#[test]
fn tokens_count_from_when_they_are_made() {
    let place = Place::new();
    let server = Listening::start(&place);
    let status = |token: Option<&str>| {
        let mut request = list(Era::Modern, "");
        if let Some(token) = token {
            request = request.header("Authorization", &format!("Bearer {token}"));
        }
        request.send(server.address).unwrap().head.status
    };
    assert_eq!(status(None), 200);
    let made = place.run(&["token", "new", "ann"]);
    let start = std::time::Instant::now();
    while status(None) != 401 {
        assert!(start.elapsed() < PATIENCE, "anybody is still let in");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(status(Some(made.stdout.trim())), 200);
    let complaints = server.end();
    assert!(complaints[0].contains("every request needs one"), "{complaints:?}");
}

/// Who made a request is in the log, and why one was refused.
#[test]
fn the_log_says_who() {
    let place = Place::new();
    let made = place.run(&["token", "new", "ann"]);
    let command = ["serve", "--http", "127.0.0.1:0", "--log-level", "info"];
    let server = Listening::spawn(place.command(&command));
    let good = format!("Bearer {}", made.stdout.trim());
    for (token, status) in [(good.as_str(), 200), ("Bearer garbage", 401)] {
        let request = list(Era::Modern, "").header("Authorization", token);
        assert_eq!(request.send(server.address).unwrap().head.status, status);
    }
    let log = server.end().join("\n");
    let line = |status| {
        let status = format!("status={status}");
        log.lines().find(|line| line.contains(&status)).unwrap_or_else(|| panic!("{log}"))
    };
    assert!(line(200).contains(r#"principal="ann""#), "{log}");
    assert!(line(401).contains(r#"reason="the token is not known""#), "{log}");
    assert!(!log.contains(made.stdout.trim()), "a token is never logged");
}
