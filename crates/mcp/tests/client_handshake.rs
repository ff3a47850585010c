//! How a handshake continues after each response.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use mcp::Era;
use mcp::client::{ClientInfo, ErrorObject, Handshake, HandshakeError, HandshakeStep};
use serde_json::value::RawValue;
use serde_json::{Value, json};

const CLIENT: ClientInfo = ClientInfo { name: "us", version: "1" };

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn refusal(code: i64, data: Value) -> ErrorObject {
    ErrorObject { code, message: "no".to_owned(), data: Some(data) }
}

/// A short description of a step.
fn outcome(step: &HandshakeStep) -> String {
    match step {
        HandshakeStep::Send(request) => format!("ask {}", request.method()),
        HandshakeStep::Done(info) => format!("done {} {}", info.revision, info.name),
        HandshakeStep::Failed(HandshakeError::Refused(error)) => format!("refused {}", error.code),
        HandshakeStep::Failed(HandshakeError::NoCommonRevision(theirs)) => {
            format!("only {theirs:?}")
        }
        HandshakeStep::Failed(HandshakeError::Unusable(why)) => why.clone(),
    }
}

fn hear(handshake: &mut Handshake, answer: Result<Value, ErrorObject>) -> String {
    let step = match answer {
        Ok(result) => handshake.receive(Ok(&raw(&result))),
        Err(error) => handshake.receive(Err(error)),
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
    let (mut handshake, first) = Handshake::begin(&CLIENT, None);
    assert_eq!(first.method(), "server/discover");
    assert!(handshake.can_expire());
    assert_eq!(hear(&mut handshake, Err(refusal(-32601, json!({})))), "ask initialize");
    assert!(!handshake.can_expire());
    assert_eq!(hear(&mut handshake, Ok(legacy("2025-06-18"))), "done 2025-06-18 l");
    let (mut handshake, _) = Handshake::begin(&CLIENT, None);
    assert_eq!(hear(&mut handshake, Ok(modern())), "done 2026-07-28 m");
    // Whatever it answers, it is not what was asked for.
    let (mut handshake, _) = Handshake::begin(&CLIENT, None);
    assert_eq!(hear(&mut handshake, Ok(json!({"tools": []}))), "ask initialize");
}

#[test]
fn known_server_is_not_probed() {
    let (mut handshake, first) = Handshake::begin(&CLIENT, Some(Era::Legacy));
    assert_eq!((first.method(), handshake.can_expire()), ("initialize", false));
    assert_eq!(hear(&mut handshake, Err(refusal(-1, json!({})))), "refused -1");
    let (mut handshake, first) = Handshake::begin(&CLIENT, Some(Era::Modern));
    assert_eq!((first.method(), handshake.can_expire()), ("server/discover", false));
    assert_eq!(hear(&mut handshake, Err(refusal(-32601, json!({})))), "refused -32601");
}

#[test]
fn revisions_are_negotiated_once() {
    let unsupported = |theirs: &[&str]| Err(refusal(-32022, json!({"supported": theirs})));
    let (mut handshake, _) = Handshake::begin(&CLIENT, None);
    assert_eq!(hear(&mut handshake, unsupported(&["2026-07-28"])), "ask server/discover");
    assert_eq!(hear(&mut handshake, unsupported(&["2026-07-28"])), r#"only ["2026-07-28"]"#);
    let (mut handshake, _) = Handshake::begin(&CLIENT, None);
    assert_eq!(hear(&mut handshake, unsupported(&["2099-01-01"])), r#"only ["2099-01-01"]"#);
    // It knows the handshake, whatever it was asked.
    for era in [None, Some(Era::Modern)] {
        let (mut handshake, _) = Handshake::begin(&CLIENT, era);
        assert_eq!(hear(&mut handshake, unsupported(&["2025-06-18"])), "ask initialize");
        let (mut handshake, _) = Handshake::begin(&CLIENT, era);
        let past = json!({"supportedVersions": ["2025-11-25"]});
        assert_eq!(hear(&mut handshake, Ok(past)), "ask initialize");
    }
    let (mut handshake, _) = Handshake::begin(&CLIENT, None);
    let future = json!({"supportedVersions": ["2099-01-01"]});
    assert_eq!(hear(&mut handshake, Ok(future)), r#"only ["2099-01-01"]"#);
    let (mut handshake, _) = Handshake::begin(&CLIENT, Some(Era::Legacy));
    assert_eq!(
        hear(&mut handshake, Ok(legacy("2026-07-28"))),
        "it answers `initialize` with revision `2026-07-28`, which has none"
    );
    let (mut handshake, _) = Handshake::begin(&CLIENT, Some(Era::Legacy));
    assert_eq!(
        hear(&mut handshake, Ok(legacy("2099-01-01"))),
        "it speaks revision `2099-01-01` of the protocol, which we do not know"
    );
}

#[test]
fn late_discovery_counts_if_initialize_is_rejected() {
    let (mut handshake, _) = Handshake::begin(&CLIENT, None);
    assert_eq!(outcome(&handshake.expire_discovery()), "ask initialize");
    handshake.receive_late_discovery(&raw(&modern()));
    assert_eq!(hear(&mut handshake, Err(refusal(-32601, json!({})))), "done 2026-07-28 m");
    let (mut handshake, _) = Handshake::begin(&CLIENT, None);
    handshake.expire_discovery();
    handshake.receive_late_discovery(&raw(&modern()));
    assert_eq!(hear(&mut handshake, Ok(legacy("2024-11-05"))), "done 2024-11-05 l");
}

#[test]
fn malformed_or_oversized_handshake_is_unusable() {
    for (result, expected) in [
        (json!({}), "its answer to `initialize` names no `protocolVersion`"),
        (json!([]), "its answer to `initialize` names no `protocolVersion`"),
        (
            json!({"protocolVersion": "2025-06-18", "x": "x".repeat(1024 * 1024)}),
            "its handshake has 1048615 bytes, and 1048576 are the most",
        ),
    ] {
        let (mut handshake, _) = Handshake::begin(&CLIENT, Some(Era::Legacy));
        assert_eq!(hear(&mut handshake, Ok(result)), expected);
    }
}
