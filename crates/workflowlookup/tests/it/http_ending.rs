//! How the server ends when a service manager tells it to: it accepts nobody any more, what is under way is answered,
//! streams come to their end, and nobody keeps it longer than it may take.

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Place;
use super::agent::{LETTER, advance};
use super::http_agent::{answer_of, handshake, hello, legacy, modern, session_of};
use super::http_client::{Connection, Request};
use super::http_server::Listening;
use super::serving::slow_definition;
use super::transcripts::PATIENCE;

/// The server's constant, by which it has ended in any case.
const DRAIN_TIME: Duration = Duration::from_secs(20);

fn start() -> (Place, Listening) {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let server = Listening::start(&place);
    (place, server)
}

/// Waits until a counter of the server's says so.
fn wait_until_counted(server: &Listening, line: &str) {
    let begin = Instant::now();
    loop {
        let metrics = Request::new("GET", "/metrics").send(server.address).unwrap().body;
        if String::from_utf8(metrics).unwrap().lines().any(|own| own == line) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{line}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until nobody is let in.
fn wait_until_closed(server: &Listening) {
    let begin = Instant::now();
    while TcpStream::connect(server.address).is_ok() {
        assert!(begin.elapsed() < PATIENCE, "it still accepts connections");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_under_way_is_answered_and_nothing_new_begins() {
    let (_place, mut server) = start();
    let mut calling = Connection::open(server.address).unwrap();
    let lint = json!({"name": "workflow_lint", "arguments": {"definition": slow_definition()}});
    let address = server.address;
    let answered = std::thread::spawn(move || {
        calling.ask(&modern("tools/call", lint, &json!({}))).map(|response| response.head.status)
    });
    wait_until_counted(&server, "workflowlookup_requests_under_way 1");
    server.terminate();
    wait_until_closed(&server);
    assert_eq!(answered.join().unwrap().unwrap(), 200);
    assert_eq!(server.wait(), Some(0));
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn streams_come_to_their_end() {
    let (_place, mut server) = start();
    let session = handshake(server.address);
    let mut by_get = Connection::open(server.address).unwrap();
    assert!(by_get.begin(&Request::listen(&session)).unwrap().is_stream());
    assert!(by_get.event().unwrap().is_some());
    let mut listening = Connection::open(server.address).unwrap();
    let filter = json!({"notifications": {"resourcesListChanged": true}});
    listening.begin(&modern("subscriptions/listen", filter, &json!({}))).unwrap();
    let acknowledged = listening.event().unwrap().unwrap().data;
    assert!(acknowledged.contains("acknowledged"), "{acknowledged}");
    let begin = Instant::now();
    server.terminate();
    assert_eq!(by_get.event().unwrap(), None, "its client comes back to another replica");
    let result: Value = serde_json::from_str(&listening.event().unwrap().unwrap().data).unwrap();
    assert_eq!(result["result"]["resultType"], "complete", "{result}");
    assert_eq!(listening.event().unwrap(), None);
    assert_eq!(server.wait(), Some(0));
    assert!(begin.elapsed() < DRAIN_TIME / 2, "{:?}", begin.elapsed());
}

/// Nobody waits for a person: the question is taken back, and the call says that it waits.
#[test]
fn a_question_is_taken_back() {
    let (_place, mut server) = start();
    let session = session_of(&hello(&json!({"elicitation": {}})).send(server.address).unwrap());
    let call = |tool: &str, arguments: Value| {
        legacy(&session, 1, "tools/call", &json!({"name": tool, "arguments": arguments}))
    };
    let begun =
        call("workflow_start", json!({"workflowId": "letter"})).send(server.address).unwrap();
    let begun = answer_of(&begun)["result"]["structuredContent"].take();
    let id = begun["sessionId"].as_str().unwrap();
    let written = call("workflow_advance", advance(id, 0, "write-it", "Dear Ada"));
    assert_eq!(written.send(server.address).unwrap().head.status, 200);
    let mut waiting = Connection::open(server.address).unwrap();
    waiting.begin(&call("workflow_advance", advance(id, 1, "send-it", "by post"))).unwrap();
    let mut next = || -> Value {
        loop {
            let event = waiting.event().unwrap().unwrap();
            if !event.data.is_empty() {
                return serde_json::from_str(&event.data).unwrap();
            }
        }
    };
    let asked = next();
    assert_eq!(asked["method"], "elicitation/create");
    let begin = Instant::now();
    server.terminate();
    let cancelled = next();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    let answer = next();
    assert_eq!(answer["result"]["structuredContent"]["waiting"]["stepId"], "send-it", "{answer}");
    assert_eq!(server.wait(), Some(0));
    assert!(begin.elapsed() < DRAIN_TIME / 2, "{:?}", begin.elapsed());
}

/// A client that has sent half a body and nothing since, one that has sent half a line, and a second signal.
#[test]
fn nobody_keeps_it_longer_than_it_may_take() {
    let (_place, mut server) = start();
    let mut hung = Connection::open(server.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{",
        server.address
    );
    hung.send_raw(head.as_bytes()).unwrap();
    let mut half = Connection::open(server.address).unwrap();
    half.send_raw(b"GET /hea").unwrap();
    wait_until_counted(&server, "workflowlookup_requests_under_way 1");
    let begin = Instant::now();
    server.terminate();
    wait_until_closed(&server);
    server.terminate();
    assert_eq!(server.wait(), Some(0));
    assert!(begin.elapsed() < 2 * DRAIN_TIME, "{:?}", begin.elapsed());
    drop((hung, half));
}
