//! Two servers that share a key and a store are one server to their clients: a request may reach either, and one of them
//! may die while hundreds of clients are at work.

pub(super) mod nginx;
mod proxied;
pub(super) mod walk;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Place;
use super::agent::{LETTER, advance};
use super::http_agent::{answer_of, carrying, handshake, hello, legacy, session_of};
use super::http_client::{Connection, Request};
use super::http_server::Listening;

/// What one replica has done the other tells within a second; a slow machine gets more.
pub(super) const TOLD_WITHIN: Duration = Duration::from_secs(15);
/// How often we look whether something has happened.
const PAUSE: Duration = Duration::from_millis(5);

fn place() -> Place {
    furnished(Place::new())
}

/// Puts the workflows of these tests into a place.
pub(super) fn furnished(place: Place) -> Place {
    place.write("workflows/letter.json", LETTER);
    place.write("workflows/five-steps.json", walk::FIVE_STEPS);
    place
}

/// One that is ready to be asked.
pub(super) fn replica(place: &Place, address: &str) -> Listening {
    let replica = Listening::spawn(place.command(&["serve", "--http", address]));
    let start = Instant::now();
    while Request::new("GET", "/readyz").send(replica.address).unwrap().head.status != 200 {
        assert!(start.elapsed() < TOLD_WITHIN, "it does not get ready");
        std::thread::sleep(PAUSE);
    }
    replica
}

/// An address that is ours also while its server is away. No outgoing connection is given it, since those have higher
/// ports; and no other test takes it, since the same port of another protocol is held for as long as this is.
pub(super) struct Reserved {
    pub(super) address: SocketAddr,
    _held: UdpSocket,
}

impl Reserved {
    pub(super) fn new() -> Self {
        let ports = 10_000..32_000_u16;
        let first = ports.start + (std::process::id() % 20_000) as u16;
        let mut candidates = (first..ports.end).chain(ports);
        let found = candidates.find_map(|port| {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let held = UdpSocket::bind(address).ok()?;
            TcpListener::bind(address).ok()?;
            Some(Self { address, _held: held })
        });
        found.expect("some port is free")
    }
}

/// A call of a client with a handshake, to one replica.
pub(super) fn call(address: SocketAddr, session: &str, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let response = legacy(session, 1, "tools/call", &params).send(address).unwrap();
    let result = answer_of(&response)["result"].take();
    assert!(result.get("isError").is_none(), "{result}");
    result["structuredContent"].clone()
}

#[test]
fn a_client_walks_through_both() {
    walks_through_both(&place());
}

pub(super) fn walks_through_both(place: &Place) {
    let replicas = [replica(place, "127.0.0.1:0"), replica(place, "127.0.0.1:0")];
    let session = handshake(replicas[0].address);
    let arguments = json!({"workflowId": "five-steps", "key": "one"});
    let begun = call(replicas[1].address, &session, "workflow_start", &arguments);
    assert_eq!(begun, call(replicas[0].address, &session, "workflow_start", &arguments));
    let mut stands = begun;
    while stands["isComplete"] != true {
        let arguments = walk::next(&stands);
        // The second time is a client that has lost the answer.
        let answers = [0, 1].map(|at| {
            let at = (at + arguments["revision"].as_u64().unwrap() as usize) % 2;
            call(replicas[at].address, &session, "workflow_advance", &arguments)
        });
        assert_eq!(answers[0], answers[1]);
        [stands, _] = answers;
    }
    replicas.into_iter().for_each(|replica| assert_eq!(replica.end(), [""; 0]));
}

#[test]
fn an_answer_may_reach_another_replica_than_the_one_that_asked() {
    is_answered_elsewhere(&place());
}

/// The question's id says what it is about, so that whoever gets the answer can act on it.
pub(super) fn is_answered_elsewhere(place: &Place) {
    for (decision, revision) in [("approve", 2), ("reject", 2)] {
        let [asking, other] = [(); 2].map(|()| replica(place, "127.0.0.1:0"));
        let session = session_of(&hello(&json!({"elicitation": {}})).send(asking.address).unwrap());
        let begun =
            call(asking.address, &session, "workflow_start", &json!({"workflowId": "letter"}));
        let id = begun["sessionId"].as_str().unwrap();
        call(other.address, &session, "workflow_advance", &advance(id, 0, "write-it", "Dear Ada"));
        let params =
            json!({"name": "workflow_advance", "arguments": advance(id, 1, "send-it", "by post")});
        let mut waiting = Connection::open(asking.address).unwrap();
        let head = waiting.begin(&legacy(&session, 7, "tools/call", &params)).unwrap();
        assert!(head.is_stream());
        let asked = next_message(&mut waiting);
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let content = json!({"decision": decision});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}});
        let start = Instant::now();
        let taken = carrying(&session, answer.to_string()).send(other.address).unwrap();
        assert_eq!(taken.head.status, 202);
        // The one that asked takes its question back, and says what became of it.
        let cancelled = next_message(&mut waiting);
        assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
        assert_eq!(cancelled["params"]["requestId"], asked["id"]);
        let answered = next_message(&mut waiting);
        assert!(start.elapsed() < TOLD_WITHIN, "told after {:?}", start.elapsed());
        let result = &answered["result"]["structuredContent"];
        assert_eq!((&answered["id"], &result["revision"]), (&json!(7), &json!(revision)));
        assert_eq!(result["accepted"], decision == "approve");
        assert_eq!(waiting.event().unwrap(), None, "and that is all");
        // The same answer again changes nothing.
        let again = carrying(&session, answer.to_string()).send(asking.address).unwrap();
        assert_eq!(again.head.status, 202);
        let status = call(other.address, &session, "workflow_status", &json!({"sessionId": id}));
        assert_eq!(status["revision"], revision);
    }
}

/// Nobody decides in the name of another client, however they came to know the question.
#[test]
fn an_answer_of_another_client_counts_as_its_own() {
    let place = place();
    let server = replica(&place, "127.0.0.1:0");
    let session = session_of(&hello(&json!({"elicitation": {}})).send(server.address).unwrap());
    let begun = call(server.address, &session, "workflow_start", &json!({"workflowId": "letter"}));
    let id = begun["sessionId"].as_str().unwrap();
    call(server.address, &session, "workflow_advance", &advance(id, 0, "write-it", "Dear Ada"));
    let params =
        json!({"name": "workflow_advance", "arguments": advance(id, 1, "send-it", "by post")});
    let mut waiting = Connection::open(server.address).unwrap();
    waiting.begin(&legacy(&session, 7, "tools/call", &params)).unwrap();
    let asked = next_message(&mut waiting);
    // Cancelled by somebody who was never asked: the question stays open.
    let other = handshake(server.address);
    let cancel = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}});
    assert_eq!(carrying(&other, cancel.to_string()).send(server.address).unwrap().head.status, 202);
    waiting.set_patience(Duration::from_millis(500));
    assert_eq!(waiting.event().unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    waiting.set_patience(TOLD_WITHIN);
    let content = json!({"decision": "approve"});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}});
    assert_eq!(
        carrying(&session, answer.to_string()).send(server.address).unwrap().head.status,
        202
    );
    let answered = next_message(&mut waiting);
    assert_eq!(answered["result"]["structuredContent"]["accepted"], true, "{answered}");
}

#[test]
fn a_stream_tells_what_another_replica_does() {
    tells_of_another_replica(&place());
}

/// A stream tells what every replica does, although each knows only its own clients.
pub(super) fn tells_of_another_replica(place: &Place) {
    let [own, other] = [(); 2].map(|()| replica(place, "127.0.0.1:0"));
    let session = handshake(other.address);
    let mut stream = Connection::open(own.address).unwrap();
    assert!(stream.begin(&Request::listen(&session)).unwrap().is_stream());
    assert_eq!(stream.event().unwrap().unwrap().data, "", "the first only says where it is");
    stream.set_patience(TOLD_WITHIN);
    // Nobody has begun a session yet, and so there is no store.
    let begun = call(other.address, &session, "workflow_start", &json!({"workflowId": "letter"}));
    let uri = format!("session://{}", begun["sessionId"].as_str().unwrap());
    let subscribed = legacy(&session, 1, "resources/subscribe", &json!({"uri": uri}));
    assert_eq!(subscribed.send(own.address).unwrap().head.status, 200);
    let id = begun["sessionId"].as_str().unwrap();
    call(other.address, &session, "workflow_advance", &advance(id, 0, "write-it", "Hey"));
    loop {
        let told = next_message(&mut stream);
        match told["method"].as_str().unwrap() {
            "notifications/resources/updated" => {
                assert_eq!(told["params"]["uri"], *uri);
                break;
            }
            method => assert_eq!(method, "notifications/resources/list_changed"),
        }
    }
}

/// The next message of a stream.
pub(super) fn next_message(connection: &mut Connection) -> Value {
    loop {
        let event = connection.event().unwrap().expect("the stream goes on");
        if !event.data.is_empty() {
            return serde_json::from_str(&event.data).unwrap();
        }
    }
}
