//! Every line has a verdict.

use super::*;

fn verdict(line: &str) -> String {
    let one = |message: Result<Message<'_>, Rejected>| match message {
        Ok(Message::Request(request)) => {
            format!("request {} {}", request.id.as_json(), request.method)
        }
        Ok(Message::Notification { method, .. }) => format!("notification {method}"),
        Ok(Message::Response { .. }) => "response".to_owned(),
        Err(rejected) => {
            let id = rejected.id.as_ref().map_or("null", Id::as_json);
            format!("{} {id}", rejected.error.code)
        }
    };
    match receive(line.as_bytes()) {
        Received::One(message) => one(message),
        Received::Batch(members) => {
            let members: Vec<String> = members.into_iter().map(one).collect();
            format!("[{}]", members.join(", "))
        }
    }
}

#[test]
fn every_line_has_a_verdict() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
        (
            r#"{"jsonrpc":"2.0","id":"a\"b","method":"ping","params":null}"#,
            "request \"a\\\"b\" ping",
        ),
        (r#"{"jsonrpc":"2.0","method":"x"}"#, "notification x"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, "response"),
        (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#, "response"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#, "response"),
        (r#"{"jsonrpc":"2.0","error":{"code":1}}"#, "response"),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "-32600 null"),
        ("hello", "-32700 null"),
        (r#"{"jsonrpc":"2.0","id":1,"#, "-32700 null"),
        ("\u{0}", "-32700 null"),
        ("null", "-32600 null"),
        ("5", "-32600 null"),
        ("[]", "-32600 null"),
        (
            "[1, {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            "[-32600 null, request 1 ping]",
        ),
        (r#"{"id":1,"method":"ping"}"#, "-32600 1"),
        (r#"{"jsonrpc":"1.0","id":"x","method":"ping"}"#, "-32600 \"x\""),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "-32600 1"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "-32600 null"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "-32600 null"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "-32600 null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":5}"#, "-32600 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, "-32600 1"),
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#, "-32600 null"),
    ] {
        assert_eq!(verdict(line), expected, "{line}");
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    assert_eq!(verdict(&deep), "-32600 1");
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        verdict(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{open}{close}}}}}"#
        ))
    };
    assert_eq!(deep(NESTING_MAX - 2), "request 1 ping");
    assert_eq!(deep(NESTING_MAX - 1), "-32600 1");
}

#[test]
fn brackets_and_escapes_in_texts_are_texts() {
    let text = |inner: &str| {
        verdict(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{inner}"}}}}"#
        ))
    };
    for good in [&*"[".repeat(500), r#"\"[\""#, r"\\ud800", r"\ud83d\ude00", r"\u00e9\n", r"\\"] {
        assert_eq!(text(good), "request 1 ping", "{good}");
    }
    for bad in [r"\ud800", r"\uDC00", r"\ud83dx", r"\ud83d\n", r"\ud83d\u0041", r"\ude00\ud83d"] {
        assert_eq!(text(bad), "-32600 1", "{bad}");
    }
}

#[test]
fn params_say_what_is_missing() {
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wanted {
        #[expect(dead_code, reason = "only its absence is looked at")]
        workflow_id: String,
    }
    let read = |text: &str| {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        let error = params::<Wanted>(Some(&raw)).unwrap_err();
        (error.code, error.data.unwrap()["details"].as_str().unwrap().to_owned())
    };
    assert_eq!(read("{}"), (-32602, "workflowId is required".to_owned()));
    assert_eq!(read("[1]"), (-32602, "params must be an object".to_owned()));
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    assert_eq!(read(&deep).0, -32602, "what is not asked for is skipped, however deep");
    assert_eq!(read(r#"{"workflowId":"\ud800"}"#).0, -32600);
}
