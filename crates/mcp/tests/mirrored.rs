//! Arguments that stand in headers too: a call over HTTP is refused where the two do not say the same.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use mcp::content::{About, Tool};
use mcp::http::{Headers, Kind, classify};
use mcp::{Body, Server};
use serde_json::{Value, json};

struct Sent(BTreeMap<String, String>);

impl Headers for Sent {
    fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(String::as_bytes)
    }
}

fn server() -> Server {
    let mirrors = || About {
        title: "Mirrors",
        description: "Wants arguments in headers",
        input_schema: json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "is_dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "place": {"type": "object", "properties": {
                "city": {"type": "string", "x-mcp-header": "City"},
            }},
            "query": {"type": "string"},
        }}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    let plain = || About { input_schema: json!({"type": "object"}), ..mirrors_not() };
    let tools = vec![
        Tool { name: "plain", is_method: false, about: plain },
        Tool { name: "mirrors", is_method: false, about: mirrors },
    ];
    Server::new("test", "Test", "1.0.0", "For a test", "None", tools)
}

fn mirrors_not() -> About {
    About {
        title: "Plain",
        description: "Wants nothing",
        input_schema: json!({}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    }
}

/// The status and the code that a call is refused with, if it is.
fn call(tool: &str, arguments: &Value, headers: &[(&str, &str)]) -> Option<(u16, i64)> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let body = body.to_string();
    let always =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    let sent = always.iter().chain(headers);
    let sent = Sent(sent.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
    match classify(&Body::read(body.as_bytes()), &sent, &server()) {
        Ok(kind) => {
            assert_eq!(kind, Kind::Modern);
            None
        }
        Err(reply) => {
            let message: Value = serde_json::from_str(&reply.text).unwrap();
            assert_eq!(message["id"], 1);
            Some((reply.status, message["error"]["code"].as_i64().unwrap()))
        }
    }
}

#[test]
fn what_agrees_is_let_through() {
    let region = "mcp-param-region";
    for (arguments, headers) in [
        (json!({}), vec![]),
        (json!({"query": "q"}), vec![]),
        (json!({"region": null}), vec![]),
        (json!({"region": "us-west1"}), vec![(region, "us-west1")]),
        (json!({"region": ""}), vec![(region, "")]),
        (json!({"region": "Hello"}), vec![(region, "=?base64?SGVsbG8=?=")]),
        (json!({"region": "Grüße"}), vec![(region, "=?base64?R3LDvMOfZQ==?=")]),
        // Half a mark is none.
        (json!({"region": "SGVsbG8="}), vec![(region, "SGVsbG8=")]),
        (json!({"region": "=?base64?SGVsbG8="}), vec![(region, "=?base64?SGVsbG8=")]),
        (json!({"count": 42}), vec![("mcp-param-count", "42")]),
        (json!({"count": 42}), vec![("mcp-param-count", "42.0")]),
        (json!({"count": 42.0}), vec![("mcp-param-count", "42")]),
        (json!({"count": -7}), vec![("mcp-param-count", "-7")]),
        (json!({"is_dry": false}), vec![("mcp-param-dry", "false")]),
        (json!({"place": {"city": "Ulm"}}), vec![("mcp-param-city", "Ulm")]),
        (json!({"place": {}}), vec![]),
        (json!({}), vec![("mcp-param-unknown", "x")]),
    ] {
        assert_eq!(call("mirrors", &arguments, &headers), None, "{arguments} {headers:?}");
    }
    assert_eq!(call("plain", &json!({"region": "a"}), &[]), None);
    assert_eq!(call("plain", &json!({}), &[(region, "a")]), None);
}

#[test]
fn what_does_not_agree_is_refused() {
    let region = "mcp-param-region";
    for (arguments, headers) in [
        (json!({"region": "a"}), vec![]),
        (json!({"region": "a"}), vec![(region, "b")]),
        (json!({"region": "a"}), vec![(region, "A")]),
        (json!({}), vec![(region, "a")]),
        (json!({"region": null}), vec![(region, "null")]),
        (json!({"region": "Hello"}), vec![(region, "=?base64?SGVsbG8?=")]),
        (json!({"region": "Hello"}), vec![(region, "=?base64?SGVs!!!bG8=?=")]),
        (json!({"region": "ü"}), vec![(region, "ü")]),
        (json!({"region": ["a"]}), vec![(region, "a")]),
        (json!({"count": 42}), vec![("mcp-param-count", "43")]),
        (
            json!({"count": 9_007_199_254_740_993_i64}),
            vec![("mcp-param-count", "9007199254740992")],
        ),
        (json!({"count": 42}), vec![("mcp-param-count", "many")]),
        (json!({"is_dry": true}), vec![("mcp-param-dry", "True")]),
        (json!({"place": {"city": "Ulm"}}), vec![]),
        (json!([1]), vec![(region, "a")]),
    ] {
        let refused = call("mirrors", &arguments, &headers);
        assert_eq!(refused, Some((400, -32020)), "{arguments} {headers:?}");
    }
}
