//! Many at once: connections that never ask, requests that never end, streams that nobody reads.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Attack, Lane, Target, plain, post};
use crate::Place;
use crate::agent::{Era, advance};
use crate::http_agent::{answer_of, handshake, is_well, legacy, list, modern};
use crate::http_client::{Connection, Request};

/// The server's constant for the requests of one principal; whoever does not say who they are is one together.
const REQUESTS: usize = 512;
/// What any of this may cost: much less than it would if it were kept.
const MEMORY_MIB: u64 = 96;

pub(super) fn attacks() -> Vec<Attack> {
    vec![
        Attack::new("1,000 half-open connections", "half a request line each", half_open),
        Attack::new(
            "more requests than may be under way",
            "513 whose bodies are yet to come",
            too_many,
        ),
        Attack::new(
            "512 streams that only listen",
            "`subscriptions/listen`, and then a call",
            listening,
        ),
        Attack::new("500 streams that nobody reads", "while 200 changes are told", unread_streams),
        Attack::new(
            "a reader that does not read",
            "requests without end on one connection",
            no_reader,
        ),
        Attack::new("10,000 handshakes", "each forgotten by its client", handshakes),
    ]
}

/// Where a process may have few files open at first, as on many systems.
pub(super) fn few_files() -> Lane {
    let attack = Attack::new(
        "1,000 half-open connections, where 256 files may be open",
        "half a request line each",
        half_open,
    );
    let command = |place: &Place| {
        let program = place.command(super::SERVE);
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -S -n 256; exec \"$0\" \"$@\""]).arg(program.get_program());
        command.args(program.get_args()).current_dir(place.project());
        command.env_clear().env("HOME", place.home()).env("PATH", "/usr/bin:/bin");
        command
    };
    Lane { command, attacks: vec![attack] }
}

fn half_open(target: &Target) -> String {
    let open: Vec<TcpStream> = (0..1_000)
        .map(|_| {
            let mut stream = plain(target);
            stream.write_all(b"POST /mc").unwrap();
            stream
        })
        .collect();
    let start = Instant::now();
    is_well(target.address(), None).unwrap();
    // Before they are thrown out.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    drop(open);
    "others are served".to_owned()
}

fn too_many(target: &Target) -> String {
    let head = target.filled_in(&post("Content-Length: 2\r\n", ""));
    let mut open: Vec<Connection> = (0..REQUESTS)
        .map(|_| {
            let mut connection = target.connect();
            connection.send_raw(head.as_bytes()).unwrap();
            connection
        })
        .collect();
    target.wait_for("requests_under_way", REQUESTS as u64);
    let response = list(Era::Modern, "").send(target.address()).unwrap();
    let wait = response.head.header("Retry-After").unwrap().to_owned();
    assert_eq!(target.status(&Request::new("GET", "/healthz")), "200");
    // Those that were let in are answered: a body that is no message is a 400.
    for connection in &mut open {
        connection.send_raw(b"{}").unwrap();
        assert_eq!(connection.head().unwrap().status, 400);
    }
    format!("{} with `Retry-After: {wait}`", response.head.status)
}

fn listen(target: &Target, uri: &str) -> Connection {
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let mut connection = target.connect();
    let head = connection.begin(&modern("subscriptions/listen", filter, &json!({}))).unwrap();
    assert_eq!(head.status, 200);
    connection
}

/// Streams have places of their own, and do not keep requests out.
fn listening(target: &Target) -> String {
    let open: Vec<Connection> = (0..REQUESTS).map(|_| listen(target, "session://none")).collect();
    target.wait_for("streams", REQUESTS as u64);
    let came = target.status(&list(Era::Modern, ""));
    drop(open);
    target.wait_for("streams", 0);
    came
}

fn unread_streams(target: &Target) -> String {
    let session = handshake(target.address());
    let mut connection = target.connect();
    let mut call = |name: &str, arguments: &serde_json::Value| {
        let params = json!({"name": name, "arguments": arguments});
        let response = connection.ask(&legacy(&session, 1, "tools/call", &params)).unwrap();
        answer_of(&response)["result"]["structuredContent"].clone()
    };
    let begun = call("workflow_start", &json!({"workflowId": "letter"}));
    let id = begun["sessionId"].as_str().unwrap();
    let uri = format!("session://{id}");
    let mut open: Vec<Connection> = (0..250).map(|_| listen(target, &uri)).collect();
    open.extend((0..250).map(|_| {
        let session = handshake(target.address());
        let subscribe = legacy(&session, 1, "resources/subscribe", &json!({"uri": uri}));
        assert_eq!(target.status(&subscribe), "200");
        let mut connection = target.connect();
        connection.begin(&Request::listen(&session)).unwrap();
        connection
    }));
    let before = target.memory();
    for revision in 0..200 {
        let answer = call("workflow_advance", &advance(id, revision, "write-it", "Hey"));
        assert_eq!(answer["revision"], revision + 1);
    }
    bounded(target, before);
    drop(open);
    target.wait_for("streams", 0);
    "memory stays".to_owned()
}

/// Asks and asks, until the server does not listen any more because we do not.
fn no_reader(target: &Target) -> String {
    let before = target.memory();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let session = handshake(target.address());
    let headers = format!("Content-Length: {}\r\nMcp-Session-Id: {session}\r\n", body.len());
    let request = target.filled_in(&post(&headers, body));
    let mut stream = plain(target);
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let sent = (0..1_000_000).take_while(|_| stream.write_all(request.as_bytes()).is_ok()).count();
    assert!(sent < 1_000_000, "it takes requests for ever");
    bounded(target, before);
    "not heard any more; memory stays".to_owned()
}

fn handshakes(target: &Target) -> String {
    let (before, kept) = (target.memory(), target.counted("peers"));
    let mut connection = target.connect();
    let hello = crate::http_agent::hello(&json!({}));
    for _ in 0..10_000 {
        assert_eq!(connection.ask(&hello).unwrap().head.status, 200);
    }
    bounded(target, before);
    assert_eq!(target.counted("peers"), kept, "nothing is kept for them");
    "200 each; memory stays".to_owned()
}

fn bounded(target: &Target, before: Option<u64>) {
    if let Some((before, after)) = before.zip(target.memory()) {
        assert!(after < before + MEMORY_MIB, "{before} MiB before, {after} MiB after");
    }
}
