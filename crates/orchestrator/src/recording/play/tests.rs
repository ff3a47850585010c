use std::io::Write as _;

use super::*;

/// A player of lines as `wire` writes them, each with its way in front.
fn player(lines: &[&str]) -> Player {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for line in lines {
        let (way, message) = line.split_once(' ').unwrap();
        let (way, connection) = way.split_once('#').unwrap_or((way, "1"));
        writeln!(
            file,
            r#"{{"time":"2026-01-01T00:00:00Z","server":"s","connection":{connection},"way":"{way}","message":{message}}}"#
        )
        .unwrap();
    }
    Player::new(Recording::read(file.path(), None).unwrap())
}

fn heard(player: &mut Player, line: &str) -> String {
    let said: Vec<String> = player.hear(line).iter().map(Value::to_string).collect();
    said.join("\n")
}

const CALL: &str = r#"out {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},"_meta":{"progressToken":7}}}"#;

#[test]
fn a_request_gets_its_answer_under_its_own_id() {
    let mut player = player(&[
        r#"out {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"a"}}}"#,
        r#"in {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}"#,
        r#"out {"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        CALL,
        r#"in {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"working"}}"#,
        r#"in {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
        r#"in {"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#,
        r#"in {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    ]);
    let hello = r#"{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#;
    insta::assert_snapshot!(heard(&mut player, hello), @r#"{"id":"x","jsonrpc":"2.0","result":{"protocolVersion":"2025-11-25"}}"#);
    assert_eq!(heard(&mut player, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), "");
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"arguments":{"a":1},"name":"echo"}}"#;
    insta::assert_snapshot!(heard(&mut player, call), @r#"
    {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"working"}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"t"}}
    {"id":9,"jsonrpc":"2.0","result":{"content":[]}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
    // Who has not asked for progress gets none.
    let call = r#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"arguments":{"a":1},"name":"echo"}}"#;
    assert!(!heard(&mut player, call).contains("notifications/progress"));
}

#[test]
fn what_was_not_recorded_is_refused_with_what_was() {
    let mut player = player(&[CALL, r#"in {"jsonrpc":"2.0","id":3,"result":{}}"#]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":2}}}"#;
    insta::assert_snapshot!(heard(&mut player, call), @r#"{"error":{"code":-32602,"data":{"asked":{"method":"tools/call","params":{"arguments":{"a":2},"name":"echo"}},"recorded":["tools/call {\"arguments\":{\"a\":1},\"name\":\"echo\"}"]},"message":"the recording has no `tools/call` with these parameters"},"id":1,"jsonrpc":"2.0"}"#);
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    insta::assert_snapshot!(heard(&mut player, list), @r#"{"error":{"code":-32601,"data":{"asked":{"method":"tools/list","params":{}},"recorded":["tools/call {\"arguments\":{\"a\":1},\"name\":\"echo\"}"]},"message":"the recording has no `tools/list`"},"id":2,"jsonrpc":"2.0"}"#);
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    assert_eq!(heard(&mut player, ping), r#"{"id":3,"jsonrpc":"2.0","result":{}}"#);
    insta::assert_snapshot!(heard(&mut player, "{"), @r#"{"error":{"code":-32700,"message":"this is not JSON: EOF while parsing an object at line 1 column 1"},"id":null,"jsonrpc":"2.0"}"#);
    insta::assert_snapshot!(heard(&mut player, "[5]"), @r#"{"error":{"code":-32600,"message":"this is no message of JSON-RPC"},"id":null,"jsonrpc":"2.0"}"#);
}

#[test]
fn the_same_request_goes_through_its_answers_and_stays_at_the_last() {
    let mut player = player(&[
        r#"out {"id":1,"method":"tools/call","params":{"name":"t"}}"#,
        r#"out#2 {"id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}"#,
        r#"in#2 {"id":1,"error":{"code":-1,"message":"second"}}"#,
        r#"in {"id":1,"result":"first"}"#,
        // One that was never answered.
        r#"out {"id":2,"method":"tools/call","params":{"name":"t"}}"#,
        r#"out {"id":3,"method":"hang"}"#,
    ]);
    let call = r#"{"id":5,"method":"tools/call","params":{"name":"t","arguments":null}}"#;
    assert_eq!(heard(&mut player, call), r#"{"id":5,"jsonrpc":"2.0","result":"first"}"#);
    let second = r#"{"error":{"code":-1,"message":"second"},"id":5,"jsonrpc":"2.0"}"#;
    assert_eq!(heard(&mut player, call), second);
    assert_eq!(heard(&mut player, call), second);
    assert_eq!(heard(&mut player, r#"{"id":6,"method":"hang"}"#), "");
}

#[test]
fn a_question_to_the_client_holds_the_answer_back() {
    let mut player = player(&[
        CALL,
        r#"in {"id":0,"method":"elicitation/create","params":{"message":"who?"}}"#,
        r#"out {"id":0,"result":{"action":"accept"}}"#,
        r#"in {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"thanks"}}"#,
        r#"in {"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#,
    ]);
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"arguments":{"a":1},"name":"echo"}}"#;
    let question = r#"{"id":"replay-1","method":"elicitation/create","params":{"message":"who?"}}"#;
    assert_eq!(heard(&mut player, call), question);
    assert_eq!(heard(&mut player, r#"{"id":"other","result":{}}"#), "");
    insta::assert_snapshot!(heard(&mut player, r#"{"id":"replay-1","result":{"action":"decline"}}"#), @r#"
    {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"thanks"}}
    {"id":9,"jsonrpc":"2.0","result":{"content":[]}}
    "#);
    // Given up before it was answered, it is not answered any more.
    assert!(heard(&mut player, call).contains("replay-2"));
    let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":9}}"#;
    assert_eq!(heard(&mut player, cancelled), "");
    assert_eq!(heard(&mut player, r#"{"id":"replay-2","result":{}}"#), "");
}

#[test]
fn what_belongs_to_a_subscription_goes_with_it() {
    let mut player = player(&[
        r#"out {"id":4,"method":"subscriptions/listen","params":{"notifications":{}}}"#,
        r#"in {"method":"notifications/resources/updated","params":{"uri":"a:b","_meta":{"io.modelcontextprotocol/subscriptionId":4}}}"#,
        r#"out {"id":5,"method":"tools/list"}"#,
        r#"in {"id":5,"result":{"tools":[]}}"#,
    ]);
    let list = r#"{"id":1,"method":"tools/list","params":{"_meta":{"a":1}}}"#;
    assert_eq!(heard(&mut player, list), r#"{"id":1,"jsonrpc":"2.0","result":{"tools":[]}}"#);
    let listen = r#"{"id":8,"method":"subscriptions/listen","params":{"notifications":{}}}"#;
    insta::assert_snapshot!(heard(&mut player, listen), @r#"{"method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":8},"uri":"a:b"}}"#);
}

#[test]
fn a_client_that_only_knows_handshakes_meets_a_server_without() {
    let mut player = player(&[
        r#"out {"id":0,"method":"server/discover","params":{"_meta":{}}}"#,
        r#"in {"id":0,"result":{"capabilities":{"tools":{}},"instructions":"be kind","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}}"#,
    ]);
    let hello = r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    insta::assert_snapshot!(heard(&mut player, hello), @r#"{"id":1,"jsonrpc":"2.0","result":{"capabilities":{"tools":{}},"instructions":"be kind","protocolVersion":"2025-06-18","serverInfo":{"name":"n","version":"1"}}}"#);
}

#[test]
fn files_that_cannot_be_played() {
    let read = |text: &str, server: Option<&str>| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Recording::read(file.path(), server).err().map(|error| error.to_string())
    };
    let line = |server: &str| {
        format!(r#"{{"server":"{server}","way":"out","message":{{"id":1,"method":"a"}}}}"#)
    };
    let both = format!("{}\n\n{}\n", line("b"), line("a"));
    assert_eq!(read(&both, None).unwrap(), "there are several servers in it, `a`, `b`; choose one");
    assert_eq!(read(&both, Some("a")), None);
    assert_eq!(read(&both, Some("c")).unwrap(), "there is no server `c` in it");
    assert_eq!(read("", None).unwrap(), "there are no requests in it");
    assert_eq!(read(&line("a"), None), None);
    let not = "is none of a recording, which has `server`, `way` and `message`";
    assert_eq!(read("{}\n", None).unwrap(), format!("line 1 {not}"));
    assert_eq!(read(&format!("{both}2026 > hello\n"), None).unwrap(), format!("line 4 {not}"));
}
