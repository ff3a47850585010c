//! What another server has said, passed on in the words of each revision. Messages are held against the official schemas
//! where those are at hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads the official schemas")]
#![allow(dead_code, reason = "tests share what they need, and not all need all of it")]

#[path = "support/peer.rs"]
mod peer;
#[path = "support/schemas.rs"]
mod schemas;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp::content::{
    About, ForeignResource, ForeignResult, Listed, Page, Resource as OwnResource, Tool,
};
use mcp::{Action, Ask, Call, More, Outcome, Server, Visit};
use peer::{Client, REVISIONS, call, messages};
use schemas::{check_messages_of, valid};
use serde_json::{Map, Value, json};

fn tool(name: &'static str) -> Tool {
    let about = || About {
        title: "Says",
        description: "Says something",
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    Tool { name, is_method: false, about }
}

fn server() -> Server {
    Server::new("test", "Test", "1.0.0", "For a test", "None", vec![tool("says")])
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn said(revision: &'static str, result: Value) -> Value {
    let mut client = Client::new(server(), revision, json!({}));
    let outcome = Outcome::Foreign(Box::new(ForeignResult::read(object(result))));
    let message = client.outcome("tools/call", json!({"name": "says"}), outcome);
    valid(revision, "CallToolResult", &message["result"]);
    message["result"].clone()
}

#[test]
fn every_kind_of_content_is_passed_on_where_it_has_a_place() {
    let content = json!([
        {"type": "text", "text": "a", "annotations": {"priority": 1}, "_meta": {"a/b": 1}},
        {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x:a", "text": "held"}},
        {"type": "resource_link", "uri": "x:b", "name": "b", "title": "The other", "size": 7},
        {"type": "hologram", "depth": 3},
    ]);
    let result = json!({
        "content": content,
        "structuredContent": {"a": [1, null]},
        "isError": true,
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "theirs"}, "a/b": "kept"},
        "resultType": "complete",
    });
    for revision in REVISIONS {
        let said = said(revision, result.clone());
        let text = |text: &str| json!({"type": "text", "text": text});
        let mut expected = content.as_array().unwrap().clone();
        expected[5] = text(r#"{"depth":3,"type":"hologram"}"#);
        if revision == "2024-11-05" {
            expected[2] = text("(a sound of type audio/wav, for newer clients)");
        }
        if revision < "2025-06-18" {
            expected[4] = text("The other: x:b");
        }
        assert_eq!(said["content"], json!(expected), "{revision}");
        assert_eq!(said["isError"], true);
        let structured = (revision >= "2025-06-18").then(|| json!({"a": [1, null]}));
        assert_eq!(said.get("structuredContent"), structured.as_ref(), "{revision}");
        assert_eq!(said["_meta"]["a/b"], "kept");
        let name = said["_meta"]["io.modelcontextprotocol/serverInfo"].get("name");
        assert_eq!(name, (revision == "2026-07-28").then_some(&json!("test")), "{revision}");
    }
}

/// Only the newest revision has a place for anything; a text tells it to all.
#[test]
fn structured_content_may_be_anything() {
    for structured in [json!({"a": 1}), json!([1, 2]), json!("b"), json!(false)] {
        for revision in REVISIONS {
            let said = said(revision, json!({"structuredContent": structured}));
            assert_eq!(said["content"], json!([{"type": "text", "text": structured.to_string()}]));
            let has_place = match revision {
                "2026-07-28" => true,
                _ => revision >= "2025-06-18" && structured.is_object(),
            };
            let placed = said.get("structuredContent");
            assert_eq!(placed, has_place.then_some(&structured), "{revision}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_left_out() {
    let odd = json!({"content": "a text", "isError": "yes", "_meta": 7, "structuredContent": null});
    for revision in REVISIONS {
        let said = said(revision, odd.clone());
        assert_eq!(said["content"], json!([]));
        assert_eq!((said.get("isError"), said.get("structuredContent")), (None, None));
    }
}

#[test]
fn resources_keep_their_words() {
    let theirs = object(json!({
        "uri": "mcp+files:file:///a", "name": "a", "title": "A", "size": 5, "mimeType": "a/b",
    }));
    let own = OwnResource {
        uri: "own://b".to_owned(),
        name: "b".to_owned(),
        title: "B".to_owned(),
        description: "Ours".to_owned(),
        mime_type: "a/b",
    };
    for revision in REVISIONS {
        let mut client = Client::new(server(), revision, json!({}));
        let items = vec![own.clone().into(), Listed::Foreign(ForeignResource(theirs.clone()))];
        let page = Page { items, next: None, is_live: true };
        let message = client.outcome("resources/list", json!({}), Outcome::Resources(page));
        valid(revision, "ListResourcesResult", &message["result"]);
        let second = &message["result"]["resources"][1];
        assert_eq!((&second["uri"], &second["size"]), (&json!("mcp+files:file:///a"), &json!(5)));
        assert_eq!(second.get("title").is_some(), revision >= "2025-06-18");

        let contents = vec![
            object(json!({"uri": "mcp+files:file:///a", "text": "held", "mimeType": "a/b"})),
            object(json!({"uri": "mcp+files:file:///b", "blob": "AAEC"})),
        ];
        let outcome = Outcome::ForeignContents(contents.clone());
        let uri = json!({"uri": "mcp+files:file:///a"});
        let message = client.outcome("resources/read", uri, outcome);
        valid(revision, "ReadResourceResult", &message["result"]);
        assert_eq!(message["result"]["contents"], json!(contents));
        let ttl = message["result"].get("ttlMs");
        assert_eq!(ttl, (revision == "2026-07-28").then_some(&json!(0)));
    }
}

/// A client is sent to an address only where it says that it can do that.
#[test]
fn a_user_is_sent_to_an_address() {
    for (capabilities, revision, can) in [
        (json!({"elicitation": {"url": {}}}), "2026-07-28", true),
        (json!({"elicitation": {"url": {}}}), "2025-11-25", true),
        (json!({"elicitation": {"form": {}}}), "2025-11-25", false),
        (json!({"elicitation": {"url": {}}}), "2025-06-18", false),
        (json!({"elicitation": {}}), "2026-07-28", false),
    ] {
        let mut client = Client::new(server(), revision, capabilities);
        let (ticket, call, caller) = client.call("tools/call", json!({"name": "says"}));
        assert_eq!(caller.abilities.visits, can, "{revision}");
        let visit = Visit {
            message: "Log in".to_owned(),
            url: "https://a.example/b".to_owned(),
            id: "7".to_owned(),
        };
        let questions = vec![("there".to_owned(), visit.into())];
        let patience = Duration::from_secs(1);
        let ask = Ask { call, questions, patience, about: None, state: Some("s".to_owned()) };
        let message = client.finish(ticket, Outcome::Ask(Box::new(ask))).remove(0);
        if !can {
            let missing = &message["error"]["data"]["requiredCapabilities"];
            assert_eq!(missing, &json!({"elicitation": {"url": {}}}), "{revision}: {message}");
            continue;
        }
        let mut expected =
            json!({"mode": "url", "message": "Log in", "url": "https://a.example/b"});
        let asked = match revision {
            "2026-07-28" => &message["result"]["inputRequests"]["there"],
            _ => &message,
        };
        if revision == "2025-11-25" {
            expected["elicitationId"] = json!("7");
        }
        valid(revision, "ElicitRequestURLParams", &asked["params"]);
        assert_eq!((&asked["method"], &asked["params"]), (&json!("elicitation/create"), &expected));
    }
}

/// Whoever asked hears that nobody will answer any more.
#[test]
fn a_question_whose_call_is_taken_back_is_forgotten() {
    for state in [Some("what it was about"), None] {
        let mut client = Client::new(server(), "2025-11-25", json!({"elicitation": {}}));
        let (ticket, call_again, _) = client.call("tools/call", json!({"name": "says"}));
        let form = mcp::Form { message: "Who?".to_owned(), schema: json!({"type": "object"}) };
        let ask = Ask {
            call: call_again,
            questions: vec![("who".to_owned(), form.into())],
            patience: Duration::from_secs(1),
            about: None,
            state: state.map(str::to_owned),
        };
        client.finish(ticket, Outcome::Ask(Box::new(ask)));
        let params = json!({"requestId": "r"});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let mut actions = client.send(&cancelled);
        if let Some(state) = state {
            let (ticket, forget, _) = call(vec![actions.pop().unwrap()]);
            assert!(matches!(forget, Call::Forget { state: own } if own == state));
            assert!(client.finish(ticket, Outcome::Fault).is_empty(), "nobody waits for it");
        }
        assert!(matches!(actions[..], [Action::Notify(_)]), "{actions:?}");
        assert_eq!(messages(actions)[0]["method"], "notifications/cancelled");
    }
}

/// Tools that come and go are listed and called while they are there, and at no other time.
#[test]
fn tools_come_and_go() {
    let are_there = Arc::new(AtomicBool::new(false));
    for revision in REVISIONS {
        let mut server = server();
        let own = Arc::clone(&are_there);
        server.more = Some(More {
            tools: vec![tool("sometimes")],
            instructions: "",
            are_there: Box::new(move || own.load(Ordering::Relaxed)),
        });
        let mut client = Client::new(server, revision, json!({}));
        for is_there in [false, true, false, true] {
            are_there.store(is_there, Ordering::Relaxed);
            let listed = messages(client.request("tools/list", json!({}))).remove(0);
            let names: Vec<&str> = listed["result"]["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            assert_eq!(names.contains(&"sometimes"), is_there);
            assert_eq!(names.len(), 1 + usize::from(is_there));
            let mut called = client.request("tools/call", json!({"name": "sometimes"}));
            match called.remove(0) {
                Action::Call { ticket, .. } => {
                    assert!(is_there);
                    client.finish(ticket, Outcome::Busy);
                }
                Action::Reply(reply) => assert!(!is_there && reply.text.contains("-32602")),
                action => panic!("{action:?}"),
            }
        }
    }
}

#[test]
#[ignore = "needs the official MCP schemas; see CONTRIBUTING.md"]
fn messages_match_official_schemas() {
    check_messages_of(&[
        every_kind_of_content_is_passed_on_where_it_has_a_place,
        structured_content_may_be_anything,
        what_makes_no_sense_is_left_out,
        resources_keep_their_words,
        a_user_is_sent_to_an_address,
    ]);
}
