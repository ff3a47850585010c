//! One tenant, or a client without a token, does its worst: the others do not feel it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Place;
use super::agent::LETTER;
use super::http_agent::{answer_of, is_well, modern};
use super::http_client::Request;
use super::http_server::Listening;
use super::transcripts::PATIENCE;

/// Descriptors of the server. 192 of them are for connections.
const DESCRIPTORS: &str = "320";
const ATTACKERS: usize = 2;
const CONNECTIONS_EACH: usize = 150;
/// An attack ends after this many requests on each connection, whether it was successful or not.
const ROUNDS_MAX: usize = 20;
/// Longer than an answer takes on a connection that the server has accepted.
const ANSWER_TIME: Duration = Duration::from_millis(20);

#[test]
fn unauthenticated_connections_do_not_lock_out_a_token() {
    let place = Place::new();
    let token = new_token(&place, "ann");
    let server = Listening::spawn(with_few_descriptors(&place));
    let attack = Attack::start(server.address);
    for _ in 0..5 {
        is_well(server.address, Some(&token)).unwrap();
    }
    assert!(!attack.is_over.load(Ordering::SeqCst), "the token waited for the attack to end");
    attack.stop();
    server.end();
}

fn with_few_descriptors(place: &Place) -> Command {
    let program = place.command(&["serve", "--http", "127.0.0.1:0"]);
    let script = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program.get_program()).args(program.get_args());
    command.current_dir(place.project()).env_clear();
    command.env("HOME", place.home()).env("PATH", "/usr/bin:/bin");
    command
}

/// More connections than the server may have, each with one `GET /healthz` after the other.
struct Attack {
    is_over: Arc<AtomicBool>,
    attackers: Vec<JoinHandle<()>>,
}

impl Attack {
    /// Returns when each connection has sent its first request.
    fn start(address: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ready = Arc::new(Barrier::new(ATTACKERS + 1));
        let attackers = (0..ATTACKERS).map(|_| {
            let (is_over, ready) = (Arc::clone(&is_over), Arc::clone(&ready));
            std::thread::spawn(move || {
                let mut connections: Vec<Option<TcpStream>> =
                    (0..CONNECTIONS_EACH).map(|_| None).collect();
                for round in 0..ROUNDS_MAX {
                    for connection in &mut connections {
                        *connection = ask(address, connection.take());
                    }
                    if round == 0 {
                        ready.wait();
                    }
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                }
                is_over.store(true, Ordering::SeqCst);
            })
        });
        let attackers = attackers.collect();
        ready.wait();
        Self { is_over, attackers }
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.attackers.into_iter().for_each(|attacker| attacker.join().unwrap());
    }
}

/// Sends a request, on a new connection if the server has closed the old one.
fn ask(address: SocketAddr, connection: Option<TcpStream>) -> Option<TcpStream> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => {
            let new = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
            new.set_read_timeout(Some(ANSWER_TIME)).ok()?;
            new
        }
    };
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    match connection.read(&mut [0; 4096]) {
        Ok(0) => None,
        Ok(_) => Some(connection),
        // One that the server has not accepted yet has no answer.
        Err(error) => (error.kind() == std::io::ErrorKind::WouldBlock).then_some(connection),
    }
}

/// More programs than there are slots for.
const PROGRAMS: usize = 40;

#[test]
fn programs_of_one_tenant_do_not_delay_those_of_another() {
    let place = Place::new();
    let [ann, bob] = ["ann", "bob"].map(|name| new_token(&place, name));
    let registry = place.home().join("registry.json");
    let entry =
        json!({"id": "notes", "mcp": {"transport": "http", "url": "http://127.0.0.1:1/mcp"}});
    fs::write(&registry, json!({"servers": [entry]}).to_string()).unwrap();
    let arguments = ["serve", "--http", "127.0.0.1:0", "--code-time", "60s", "--registry"];
    let server =
        Listening::spawn(place.command(&[&arguments[..], &[registry.to_str().unwrap()]].concat()));
    let (address, over) = (server.address, Arc::new(AtomicUsize::new(0)));
    for _ in 0..PROGRAMS {
        let (ann, over) = (ann.clone(), Arc::clone(&over));
        std::thread::spawn(move || {
            let wait =
                "export async function main() { await new Promise(r => setTimeout(r, 50000)); }";
            // The server is gone before they all are.
            let _ = program(&ann, wait).send(address);
            over.fetch_add(1, Ordering::SeqCst);
        });
    }
    // A call becomes a stream when it has taken a while.
    wait_for(address, &bob, "streams", PROGRAMS);
    let answer = answer_of(
        &program(&bob, "export function main() { return 6 * 7; }").send(address).unwrap(),
    );
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains(r#""result":42"#), "{answer}");
    assert_eq!(over.load(Ordering::SeqCst), 0, "bob waited for programs of ann");
}

fn new_token(place: &Place, name: &str) -> String {
    let made = place.run(&["token", "new", name]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    made.stdout.trim().to_owned()
}

fn program(token: &str, code: &str) -> Request {
    let arguments = json!({"code": code, "allowedMcpIds": []});
    let params = json!({"name": "execute_mcp_code", "arguments": arguments});
    modern("tools/call", params, &json!({})).header("Authorization", &format!("Bearer {token}"))
}

/// Waits until a metric has this value.
fn wait_for(address: SocketAddr, token: &str, name: &str, wanted: usize) {
    let metrics =
        Request::new("GET", "/metrics").header("Authorization", &format!("Bearer {token}"));
    let wanted = format!("workflowlookup_{name} {wanted}");
    let start = Instant::now();
    loop {
        let response = metrics.send(address).unwrap();
        let text = String::from_utf8(response.body).unwrap();
        if text.lines().any(|line| line == wanted) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "never `{wanted}`");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn principal_over_its_quota_is_told_and_others_go_on() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let [ann, bob] = ["ann", "bob"].map(|name| new_token(&place, name));
    for (limit, found) in [("open-sessions=3", "open sessions"), ("stored-bytes=1KiB", "bytes")] {
        let arguments = ["serve", "--http", "127.0.0.1:0", "--limit", limit];
        let server = Listening::spawn(place.command(&arguments));
        let start = |token: &str| answer_of(&start_session(token).send(server.address).unwrap());
        let began = Instant::now();
        // What she has is measured beside her first calls.
        let refused = loop {
            let answer = start(&ann);
            if answer["result"]["isError"] == true {
                break answer["result"]["content"][1]["text"].as_str().unwrap().to_owned();
            }
            assert!(began.elapsed() < PATIENCE, "she may begin as many as she likes");
        };
        assert!(refused.contains(found) && refused.contains(r#""code":-32000"#), "{refused}");
        assert!(refused.contains(r#""retryAfterMs":5000"#), "{refused}");
        let answer = start(&bob);
        assert!(answer["result"]["structuredContent"]["sessionId"].is_string(), "{answer}");
        server.end();
    }
}

#[test]
fn guest_cannot_write_for_owner_over_its_quota() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let [ann, bob] = ["ann", "bob"].map(|name| new_token(&place, name));
    let arguments = ["serve", "--http", "127.0.0.1:0", "--limit", "stored-bytes=1KiB"];
    let server = Listening::spawn(place.command(&arguments));
    let call = |token: &str, name: &str, arguments: serde_json::Value| {
        let params = json!({"name": name, "arguments": arguments});
        let call = modern("tools/call", params, &json!({}));
        let call = call.header("Authorization", &format!("Bearer {token}"));
        answer_of(&call.send(server.address).unwrap())
    };
    let shared = json!({"workflowId": "letter", "sharedWith": ["bob"]});
    let shared = call(&ann, "workflow_start", shared);
    let session = &shared["result"]["structuredContent"]["sessionId"];
    let began = Instant::now();
    while call(&ann, "workflow_start", json!({"workflowId": "letter"}))["result"]["isError"] != true
    {
        assert!(began.elapsed() < PATIENCE, "she may begin as many as she likes");
    }
    let output =
        json!({"sessionId": session, "revision": 0, "stepId": "write-it", "output": "Hey"});
    let answer = call(&bob, "workflow_advance", output);
    let refused = answer["result"]["content"][1]["text"].as_str().unwrap_or_default();
    assert!(refused.contains(r#""code":-32000"#), "{answer}");
    assert!(refused.contains("the owner of the session"), "{refused}");
    server.end();
}

/// A body of this size is large: it needs a share of the room that large bodies have together.
const LARGE_BODY: usize = 100 * 1024;
/// The most that a body may have, less a little that never arrives.
const STALLED_BODY: usize = 16 * 1024 * 1024 - 1024;

#[test]
fn stalled_bodies_of_one_tenant_leave_room_for_another() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let [ann, bob] = ["ann", "bob"].map(|name| new_token(&place, name));
    let server = Listening::spawn(place.command(&["serve", "--http", "127.0.0.1:0"]));
    let status = |token: &str| large_call(token).send(server.address).unwrap().head.status;
    let (start, mut stalled) = (Instant::now(), Vec::new());
    while status(&ann) != 429 {
        assert!(start.elapsed() < PATIENCE, "her bodies have as much room as they like");
        stalled.push(stall(server.address, &ann));
    }
    assert_eq!(status(&bob), 200, "bob waits for the bodies of ann");
    drop(stalled);
    server.end();
}

/// Sends most of a large body. The server may refuse it before that.
fn stall(address: SocketAddr, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {STALLED_BODY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(&vec![b' '; STALLED_BODY - 100]);
    stream
}

fn large_call(token: &str) -> Request {
    let arguments = json!({
        "workflowId": "letter", "completedSteps": [], "context": {"notes": "x".repeat(LARGE_BODY)},
    });
    let params = json!({"name": "workflow_next", "arguments": arguments});
    modern("tools/call", params, &json!({})).header("Authorization", &format!("Bearer {token}"))
}

fn start_session(token: &str) -> Request {
    let params = json!({"name": "workflow_start", "arguments": {"workflowId": "letter"}});
    modern("tools/call", params, &json!({})).header("Authorization", &format!("Bearer {token}"))
}
