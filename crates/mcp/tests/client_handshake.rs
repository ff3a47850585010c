//! How a handshake goes on after each answer.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use mcp::Era;
use mcp::client::{ErrorObject, Handshake, HandshakeError, Step, Us};
use serde_json::value::RawValue;
use serde_json::{Value, json};

const US: Us = Us { name: "us", version: "1" };

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn refusal(code: i64, data: Value) -> ErrorObject {
    ErrorObject { code, message: "no".to_owned(), data: Some(data) }
}

/// What comes of a handshake, in few words.
fn outcome(step: &Step) -> String {
    match step {
        Step::Ask(request) => format!("ask {}", request.method()),
        Step::Done(info) => format!("done {} {}", info.revision, info.name),
        Step::Failed(HandshakeError::Refused(error)) => format!("refused {}", error.code),
        Step::Failed(HandshakeError::NoCommonRevision(theirs)) => format!("only {theirs:?}"),
        Step::Failed(HandshakeError::Unusable(why)) => why.clone(),
    }
}

fn hear(handshake: &mut Handshake, answer: Result<Value, ErrorObject>) -> String {
    let step = match answer {
        Ok(result) => handshake.hear(Ok(&raw(&result))),
        Err(error) => handshake.hear(Err(error)),
    };
    outcome(&step)
}

fn modern() -> Value {
    let info = json!({"io.modelcontextprotocol/serverInfo": {"name": "m", "version": "1"}});
    json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "_meta": info})
}

fn legacy(revision: &str) -> Value {
    json!({"protocolVersion": revision, "serverInfo": {"name": "l"}, "capabilities": 5})
}

#[test]
fn unknown_server_is_probed_and_then_initialized() {
    let (mut handshake, first) = Handshake::begin(&US, None);
    assert_eq!(first.method(), "server/discover");
    assert!(handshake.may_give_up());
    assert_eq!(hear(&mut handshake, Err(refusal(-32601, json!({})))), "ask initialize");
    assert!(!handshake.may_give_up());
    assert_eq!(hear(&mut handshake, Ok(legacy("2025-06-18"))), "done 2025-06-18 l");
    let (mut handshake, _) = Handshake::begin(&US, None);
    assert_eq!(hear(&mut handshake, Ok(modern())), "done 2026-07-28 m");
    // Whatever it answers, it is not what was asked for.
    let (mut handshake, _) = Handshake::begin(&US, None);
    assert_eq!(hear(&mut handshake, Ok(json!({"tools": []}))), "ask initialize");
}

#[test]
fn known_server_is_not_probed() {
    let (mut handshake, first) = Handshake::begin(&US, Some(Era::Legacy));
    assert_eq!((first.method(), handshake.may_give_up()), ("initialize", false));
    assert_eq!(hear(&mut handshake, Err(refusal(-1, json!({})))), "refused -1");
    let (mut handshake, first) = Handshake::begin(&US, Some(Era::Modern));
    assert_eq!((first.method(), handshake.may_give_up()), ("server/discover", false));
    assert_eq!(hear(&mut handshake, Err(refusal(-32601, json!({})))), "refused -32601");
}

#[test]
fn revisions_are_negotiated_once() {
    let unsupported = |theirs: &[&str]| Err(refusal(-32022, json!({"supported": theirs})));
    let (mut handshake, _) = Handshake::begin(&US, None);
    assert_eq!(hear(&mut handshake, unsupported(&["2026-07-28"])), "ask server/discover");
    assert_eq!(hear(&mut handshake, unsupported(&["2026-07-28"])), r#"only ["2026-07-28"]"#);
    let (mut handshake, _) = Handshake::begin(&US, None);
    assert_eq!(hear(&mut handshake, unsupported(&["2099-01-01"])), r#"only ["2099-01-01"]"#);
    let (mut handshake, _) = Handshake::begin(&US, None);
    let future = json!({"supportedVersions": ["2099-01-01"]});
    assert_eq!(hear(&mut handshake, Ok(future)), r#"only ["2099-01-01"]"#);
    let (mut handshake, _) = Handshake::begin(&US, Some(Era::Legacy));
    assert_eq!(
        hear(&mut handshake, Ok(legacy("2099-01-01"))),
        "it speaks revision `2099-01-01` of the protocol, which we do not know"
    );
}

#[test]
fn late_discovery_counts_if_initialize_is_refused() {
    let (mut handshake, _) = Handshake::begin(&US, None);
    assert_eq!(outcome(&handshake.give_up()), "ask initialize");
    handshake.hear_late(&raw(&modern()));
    assert_eq!(hear(&mut handshake, Err(refusal(-32601, json!({})))), "done 2026-07-28 m");
    let (mut handshake, _) = Handshake::begin(&US, None);
    handshake.give_up();
    handshake.hear_late(&raw(&modern()));
    assert_eq!(hear(&mut handshake, Ok(legacy("2024-11-05"))), "done 2024-11-05 l");
}

#[test]
fn handshake_that_says_nothing_or_too_much_is_unusable() {
    for (result, expected) in [
        (json!({}), "its answer to `initialize` names no `protocolVersion`"),
        (json!([]), "its answer to `initialize` names no `protocolVersion`"),
        (
            json!({"protocolVersion": "2025-06-18", "x": "x".repeat(1024 * 1024)}),
            "its handshake has 1048615 bytes, and 1048576 are the most",
        ),
    ] {
        let (mut handshake, _) = Handshake::begin(&US, Some(Era::Legacy));
        assert_eq!(hear(&mut handshake, Ok(result)), expected);
    }
}
