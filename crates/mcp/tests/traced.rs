//! What a host hears of the request behind a call: nothing, unless it wants to; then which one it is, and the trace that
//! the client says it is in.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
#![allow(dead_code, reason = "tests share what they need, and not all need all of it")]

#[path = "support/peer.rs"]
mod peer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp::content::{About, Tool};
use mcp::{Ask, Form, Mark, Outcome, Server, Traced};
use peer::{Client, REVISIONS, call};
use serde_json::{Value, json};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn server(traces: bool) -> Server {
    let about = || About {
        title: "Does",
        description: "Does",
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    let tool = Tool { name: "does", is_method: false, about };
    let mut server = Server::new("test", "Test", "1.0.0", "For a test", "None", vec![tool]);
    server.traces = traces;
    server
}

/// A call of a client of this revision that has this to say beside it.
fn traced(client: &mut Client, revision: &str, mut meta: Value) -> Option<Arc<Traced>> {
    if client.is_modern() {
        meta["io.modelcontextprotocol/protocolVersion"] = json!(revision);
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    let params = json!({"name": "does", "arguments": {}, "_meta": meta});
    let request = json!({"jsonrpc": "2.0", "id": "r-1", "method": "tools/call", "params": params});
    let (ticket, _, caller) = call(client.send(&request));
    client.finish(ticket, Outcome::Busy);
    caller.traced
}

#[test]
fn nothing_is_kept_for_a_host_that_does_not_want_it() {
    for revision in REVISIONS {
        let mut client = Client::new(server(false), revision, json!({}));
        assert_eq!(traced(&mut client, revision, json!({"traceparent": PARENT})), None);
    }
}

#[test]
fn a_call_knows_its_request_and_its_trace() {
    for revision in REVISIONS {
        let mut client = Client::new(server(true), revision, json!({}));
        let meta = json!({"traceparent": PARENT, "tracestate": "a=1", "progressToken": 1});
        let found = traced(&mut client, revision, meta).unwrap();
        assert_eq!((found.id.as_json(), found.revision.name()), ("\"r-1\"", revision));
        assert_eq!(found.traceparent.as_deref(), Some(PARENT));
        assert_eq!(found.tracestate.as_deref(), Some("a=1"));
        let none = traced(&mut client, revision, json!({})).unwrap();
        assert_eq!((&none.traceparent, &none.tracestate), (&None, &None));
    }
}

#[test]
fn what_is_no_text_or_too_long_is_not_kept() {
    let mut client = Client::new(server(true), "2025-11-25", json!({}));
    let long = "a".repeat(513);
    for (meta, kept) in [
        (json!({"traceparent": 1, "tracestate": {}}), false),
        (json!({"traceparent": long, "tracestate": long}), false),
        (json!({"traceparent": PARENT, "tracestate": ["a=1"]}), true),
        (json!({"traceparent": PARENT, "tracestate": long}), true),
        (json!("traceparent"), false),
    ] {
        let found = traced(&mut client, "2025-11-25", meta.clone()).unwrap();
        assert_eq!((found.traceparent.is_some(), &found.tracestate), (kept, &None), "{meta}");
    }
}

#[test]
fn a_call_that_is_made_again_is_the_same_request() {
    let mut client = Client::new(server(true), "2025-11-25", json!({"elicitation": {}}));
    let (ticket, first, caller) = client.call("tools/call", json!({"name": "does"}));
    let mark = Mark { trace: 1, span: 2, begun: Instant::now() };
    caller.traced.unwrap().mark.set(mark).unwrap();
    let form = Form { message: "Well?".to_owned(), schema: json!({"type": "object"}) };
    let asked = client.finish(
        ticket,
        Outcome::Ask(Box::new(Ask {
            call: first,
            questions: vec![("well".to_owned(), form.into())],
            patience: Duration::from_secs(1),
            about: None,
            state: None,
        })),
    );
    let answer = json!({"jsonrpc": "2.0", "id": asked[0]["id"], "result": {"action": "decline"}});
    let (_, _, again) = call(client.send(&answer));
    assert_eq!(again.traced.unwrap().mark.get(), Some(&mark));
}
