//! Lines that no client should send, and ends that no client should make: each gets exactly one right
//! answer, over the real process, and the next request is served.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Place;
use super::transcripts::{PATIENCE, Process};

const PING: &str = r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#;

fn hello(process: &mut Process, version: &str) {
    let params = json!({"protocolVersion": version, "capabilities": {}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    process.send(message.to_string());
    assert_eq!(process.receive().unwrap()["result"]["protocolVersion"], version);
}

/// The answer to one line, by its code and id. A `ping` after it shows that there was only one, and
/// that the server goes on.
fn verdict(process: &mut Process, line: &[u8]) -> (i64, Value) {
    process.send(line);
    process.send(PING);
    let answer = process.receive().unwrap();
    assert_eq!(process.receive().unwrap(), pong());
    let error = &answer["error"];
    assert!(error["data"].is_object() && error["message"].is_string(), "{answer}");
    (error["code"].as_i64().unwrap(), answer["id"].clone())
}

fn pong() -> Value {
    json!({"jsonrpc": "2.0", "id": "ping", "result": {}})
}

#[test]
fn every_bad_line_has_one_answer() {
    let deep = |head: &str, tail: &str| {
        format!("{head}{}{}{tail}", "[".repeat(500), "]".repeat(500)).into_bytes()
    };
    let deep_context = deep(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"workflow_next","arguments":{"workflowId":"auth-implementation","completedSteps":[],"context":{"a":"#,
        "}}}}",
    );
    let deep_unknown = deep(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"workflow_list","arguments":{"a":"#,
        "}}}",
    );
    let deep_method = deep(
        r#"{"jsonrpc":"2.0","id":"d","method":"workflow_next","params":{"workflowId":"auth-implementation","completedSteps":[],"context":{"a":"#,
        "}}}",
    );
    let objects = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{}1{}}}"#,
        r#"{"a":"#.repeat(500),
        "}".repeat(500)
    );
    let text = |text: &str| text.as_bytes().to_vec();
    let cases: Vec<(Vec<u8>, i64, Value)> = vec![
        // Not JSON, or not all of it.
        (text("hello"), -32700, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":1,"method":"#), -32700, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#), -32700, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":1,"method":"ping""#), -32700, Value::Null),
        (text("[1,"), -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xffng\"}".to_vec(), -32700, Value::Null),
        (vec![0xc3], -32700, Value::Null),
        (vec![0], -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\0\"method\":\"ping\"}".to_vec(), -32700, Value::Null),
        // JSON, but no message.
        (text("5"), -32600, Value::Null),
        (text("-0.5e3"), -32600, Value::Null),
        (text(r#""ping""#), -32600, Value::Null),
        (text("true"), -32600, Value::Null),
        (text("null"), -32600, Value::Null),
        (text("[]"), -32600, Value::Null),
        (text("{}"), -32600, Value::Null),
        // The id is kept where there is one.
        (text(r#"{"id":1,"method":"ping"}"#), -32600, json!(1)),
        (text(r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#), -32600, json!("a")),
        (text(r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#), -32600, json!(1)),
        (text(r#"{"jsonrpc":"2.0","id":1,"method":5}"#), -32600, json!(1)),
        (text(r#"{"jsonrpc":"2.0","id":1,"method":null}"#), -32600, json!(1)),
        (text(r#"{"jsonrpc":"2.0","id":1}"#), -32600, json!(1)),
        (text(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#), -32600, json!(1)),
        (text(r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#), -32600, json!(1)),
        // Ids that are none.
        (text(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), -32600, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#), -32600, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#), -32600, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#), -32600, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#), -32600, Value::Null),
        // Nested beyond all measure, and half a surrogate pair, wherever they stand.
        (deep_context, -32600, json!(7)),
        (deep_unknown, -32600, json!(7)),
        (deep_method, -32600, json!("d")),
        (objects.into_bytes(), -32600, json!(7)),
        ("[".repeat(100_000).into_bytes(), -32700, Value::Null),
        (text(r#"{"jsonrpc":"2.0","id":8,"method":"\ud800"}"#), -32600, json!(8)),
        (
            text(
                r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"workflow_get","arguments":{"id":"\udc00x"}}}"#,
            ),
            -32600,
            json!(8),
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":8,"method":"workflow_get","params":{"id":"\ud83d"}}"#),
            -32600,
            json!(8),
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":8,"method":"ping","params":{"\udfff":1}}"#),
            -32600,
            json!(8),
        ),
        // Good messages with bad contents.
        (
            text(
                r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"no_such_tool"}}"#,
            ),
            -32602,
            json!(9),
        ),
        (text(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}"#), -32602, json!(9)),
        (
            text(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"cursor":"garbage"}}"#),
            -32602,
            json!(9),
        ),
        (
            text(
                r#"{"jsonrpc":"2.0","id":9,"method":"prompts/list","params":{"cursor":"garbage"}}"#,
            ),
            -32602,
            json!(9),
        ),
        (
            text(r#"{"jsonrpc":"2.0","id":9,"method":"resources/list","params":{"cursor":7}}"#),
            -32602,
            json!(9),
        ),
        (text(r#"{"jsonrpc":"2.0","id":9,"method":"logging/setLevel"}"#), -32601, json!(9)),
        (text(r#"[{"jsonrpc":"2.0","id":9,"method":"ping"}]"#), -32600, Value::Null),
    ];
    let mut process = Process::start();
    hello(&mut process, "2025-11-25");
    for (line, code, id) in cases {
        let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
        assert_eq!(verdict(&mut process, &line), (code, id), "{shown}");
    }
    process.end();
}

#[test]
fn notifications_and_stray_answers_get_no_answer() {
    let quiet = [
        r#"{"jsonrpc":"2.0","method":"notifications/nonsense"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":null}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","method":"initialize","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"shutdown"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
    ];
    let mut process = Process::start();
    for _ in 0..2 {
        for line in quiet {
            process.send(line);
            process.send(PING);
            assert_eq!(process.receive().unwrap(), pong(), "{line}");
        }
        hello(&mut process, "2025-06-18");
    }
    process.end();
}

#[test]
fn blank_lines_line_ends_and_a_byte_order_mark_are_tolerated() {
    let mut process = Process::start();
    process.send_raw(format!("\u{feff}{PING}\n"));
    assert_eq!(process.receive().unwrap(), pong());
    process.send_raw(format!("\n\r\n   \t\n{PING}\r\n  {PING}  \n\n"));
    assert_eq!(process.receive().unwrap(), pong());
    assert_eq!(process.receive().unwrap(), pong());
    process.end();
}

#[test]
fn a_line_in_pieces_is_one_line() {
    let mut process = Process::start();
    for piece in PING.as_bytes().chunks(7) {
        process.send_raw(piece);
        std::thread::sleep(Duration::from_millis(2));
    }
    process.send_raw(format!("\n{PING}\n{PING}\n"));
    for _ in 0..3 {
        assert_eq!(process.receive().unwrap(), pong());
    }
    process.end();
}

#[test]
fn a_line_over_the_limit_is_refused_once_and_skipped() {
    const MIB: usize = 1024 * 1024;
    let line = |mib: usize| {
        let head = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":""#;
        let tail = r#""}}"#;
        format!("{head}{}{tail}", "x".repeat(mib * MIB - head.len() - tail.len()))
    };
    let mut process = Process::start();
    for _ in 0..2 {
        process.send(line(17));
        process.send(PING);
        let answer = process.receive().unwrap();
        assert_eq!(answer["error"]["code"], -32600);
        assert_eq!(answer["id"], Value::Null);
        let details = answer["error"]["data"]["details"].as_str().unwrap();
        assert!(details.contains("16777216"), "{details}");
        assert_eq!(process.receive().unwrap(), pong());
    }
    // The longest that is allowed, to the byte.
    process.send(line(16));
    assert_eq!(process.receive().unwrap(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    // The last line is too long and has no end.
    process.send_raw(line(17));
    assert_eq!(process.receive().unwrap()["error"]["code"], -32600);
    process.end();
}

#[test]
fn the_last_line_needs_no_end() {
    let mut process = Process::start();
    process.send_raw(PING);
    process.input = None;
    assert_eq!(process.receive().unwrap(), pong());
    assert_eq!(process.receive(), None);
    assert_eq!(process.wait().code(), Some(0));
    // Not even if it is no message.
    let mut process = Process::start();
    process.send_raw(r#"{"jsonrpc":"#);
    process.input = None;
    assert_eq!(process.receive().unwrap()["error"]["code"], -32700);
    assert_eq!(process.receive(), None);
    assert_eq!(process.wait().code(), Some(0));
}

#[test]
fn two_requests_with_one_id_are_both_answered() {
    let mut process = Process::start();
    hello(&mut process, "2025-03-26");
    let call = |id: &str| {
        let params = json!({"name": "workflow_get", "arguments": {"id": id}});
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
    };
    let (good, bad) = (call("auth-implementation"), call("non-existent-workflow"));
    process.send_raw(format!("{good}\n{bad}\n"));
    let answers = [process.receive().unwrap(), process.receive().unwrap()];
    assert!(answers.iter().all(|answer| answer["id"] == 5));
    assert_eq!(answers.map(|answer| answer["result"]["isError"] == true), [false, true]);
    // At once in the literal sense: members of one batch.
    process.send(json!([good, bad]).to_string());
    let answer = process.receive().unwrap();
    assert_eq!(answer.as_array().map(Vec::len), Some(2), "{answer}");
    // And streams, which stay open till the end; `mcp` tests that the log has a word about it.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"_meta": meta, "notifications": {"promptsListChanged": true}});
    let listen =
        json!({"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params});
    process.send_raw(format!("{listen}\n{listen}\n"));
    for _ in 0..2 {
        let acknowledged = process.receive().unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    }
    process.input = None;
    for _ in 0..2 {
        let answer = process.receive().unwrap();
        assert_eq!(
            (&answer["id"], &answer["result"]["resultType"]),
            (&json!(5), &json!("complete"))
        );
    }
    assert_eq!(process.receive(), None);
    assert_eq!(process.wait().code(), Some(0));
}

#[test]
fn requests_after_shutdown_are_not_read() {
    let mut process = Process::start();
    process.send_raw(format!(
        "{PING}\n{}\n{PING}\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#
    ));
    assert_eq!(process.receive().unwrap(), pong());
    assert_eq!(process.receive().unwrap(), json!({"jsonrpc": "2.0", "id": 2, "result": null}));
    assert_eq!(process.receive(), None);
    assert_eq!(process.wait().code(), Some(0));
}

#[test]
fn shutdown_answers_first_what_came_before_it() {
    for _ in 0..3 {
        let mut process = Process::start();
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;
        let start = r#"{"name":"workflow_start","arguments":{"workflowId":"investigate-bug"}}"#;
        process.send_raw(format!(
            "{}\n{}\n{}\n",
            format_args!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#),
            format_args!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{start}}}"#),
            r#"{"jsonrpc":"2.0","id":3,"method":"shutdown"}"#
        ));
        assert_eq!(process.receive().unwrap()["id"], 1);
        let started = process.receive().unwrap();
        assert_eq!(
            (&started["id"], &started["result"]["structuredContent"]["status"]),
            (&json!(2), &json!("running")),
            "{started}"
        );
        assert_eq!(process.receive().unwrap(), json!({"jsonrpc": "2.0", "id": 3, "result": null}));
        assert_eq!(process.receive(), None);
        assert_eq!(process.wait().code(), Some(0));
    }
}

#[test]
fn the_end_of_the_input_is_a_good_end() {
    Process::start().end();
}

#[test]
fn a_signal_is_a_good_end() {
    for signal in ["TERM", "INT"] {
        let mut process = Process::start();
        // Answered, so the signal does not meet a process that has not begun.
        process.send(PING);
        assert_eq!(process.receive().unwrap(), pong());
        tell(&process.child, signal);
        assert_eq!(process.receive(), None);
        assert_eq!(process.wait().code(), Some(0), "{signal}");
    }
}

pub(super) fn tell(child: &std::process::Child, signal: &str) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
    assert!(status.success());
}

/// How long the process takes to end.
fn time_to_end(child: &mut std::process::Child) -> (Duration, Option<i32>) {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (start.elapsed(), status.code());
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the process does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A second is promised; a busy machine gets some more.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_client_that_closes_its_end_is_not_waited_for() {
    let place = Place::new();
    let mut command = place.command(&["serve"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    writeln!(input, "{PING}").unwrap();
    output.read_exact(&mut [0; 8]).unwrap();
    drop(output);
    // The input stays open, and nothing more is said.
    let (time, code) = time_to_end(&mut child);
    assert!(time < SOON && code == Some(0), "{time:?} {code:?}");
}

/// Some clients give their servers sockets for pipes.
#[test]
fn a_client_behind_a_socket_that_closes_its_end_is_not_waited_for() {
    let place = Place::new();
    let mut command = place.command(&["serve"]);
    let (ours, theirs) = UnixStream::pair().unwrap();
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    command.stdout(std::os::fd::OwnedFd::from(theirs));
    let mut child = command.spawn().unwrap();
    // The command holds a copy of their end.
    drop(command);
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{PING}").unwrap();
    // To its end: an answer that is not read makes for another kind of end.
    BufReader::new(&ours).read_line(&mut String::new()).unwrap();
    drop(ours);
    let (time, code) = time_to_end(&mut child);
    assert!(time < SOON && code == Some(0), "{time:?} {code:?}");
}

/// Answers that nobody reads fill the pipe; a signal ends us all the same.
#[test]
fn a_client_that_does_not_read_cannot_keep_us() {
    let place = Place::new();
    let mut command = place.command(&["serve"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"_meta": meta, "notifications": {}});
    let listen =
        json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    writeln!(input, "{listen}").unwrap();
    output.read_exact(&mut [0; 8]).unwrap();
    let list =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}});
    // More than a pipe holds, in fewer requests than the other pipe holds.
    for _ in 0..100 {
        writeln!(input, "{list}").unwrap();
    }
    input.flush().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it waits to be read");
    tell(&child, "TERM");
    let (time, code) = time_to_end(&mut child);
    assert!(time < SOON && code == Some(0), "{time:?} {code:?}");
    drop((input, output));
}

/// Who ends the input and takes nothing is not waited for either.
#[test]
fn a_client_that_has_ended_its_input_and_does_not_read_cannot_keep_us() {
    let place = Place::new();
    let mut command = place.command(&["serve"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    )
    .unwrap();
    for id in 1..100 {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).unwrap();
    }
    drop(input);
    let (_, code) = time_to_end(&mut child);
    assert_eq!(code, Some(0));
    drop(child.stdout.take());
}

/// An input that cannot be read at all: we say that it is our end, and that it is not a good one.
#[test]
fn a_fatal_error_is_told() {
    let place = Place::new();
    let mut command = place.command(&["serve"]);
    let folder = std::fs::File::open(place.project()).unwrap();
    let output = command.stdin(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32603)));
}
