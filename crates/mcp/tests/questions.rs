//! Everything that a client can be asked, in both eras: its user, its model, and itself. Messages are held against the
//! official schemas where those are at hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads the official schemas")]
#![allow(dead_code, reason = "tests share what they need, and not all need all of it")]

#[path = "support/peer.rs"]
mod peer;
#[path = "support/schemas.rs"]
mod schemas;

use std::time::Duration;

use mcp::content::{About, Block, Message, Tool};
use mcp::{Action, Answer, Ask, Call, Form, Outcome, Question, Root, Sampled, Sampling, Server};
use peer::{Client, REVISIONS, call, messages};
use schemas::{check_messages_of, valid};
use serde_json::{Value, json};

fn server() -> Server {
    let about = || About {
        title: "Asks",
        description: "Asks",
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: json!({}),
        examples: None,
    };
    let tool = Tool { name: "asks", is_method: false, about };
    Server::new("test", "Test", "1.0.0", "For a test", "None", vec![tool])
}

/// Every kind of field that the newest forms can have.
fn form() -> Form {
    let options =
        json!([{"const": "a", "title": "The first"}, {"const": "b", "title": "The second"}]);
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 30},
        "is_good": {"type": "boolean", "default": true},
        "plain": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "titled": {"type": "string", "oneOf": options},
        "named": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        "several": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "several_titled": {"type": "array", "items": {"anyOf": options}},
    }});
    Form { message: "Who?".to_owned(), schema }
}

fn sampling() -> Sampling {
    Sampling {
        messages: vec![Message::user(Block::text("The capital of France?"))],
        system_prompt: Some("Be brief.".to_owned()),
        tokens_max: 100,
    }
}

fn everything() -> Vec<(String, Question)> {
    let all = [
        ("user", Question::Form(form())),
        ("model", Question::Sampling(sampling())),
        ("folders", Question::Roots),
    ];
    all.map(|(name, question)| (name.to_owned(), question)).into()
}

fn ask(call: Call, questions: Vec<(String, Question)>, state: Option<&str>) -> Outcome {
    let patience = Duration::from_secs(1);
    let state = state.map(str::to_owned);
    Outcome::Ask(Box::new(Ask { call, questions, patience, about: None, state }))
}

fn done() -> Outcome {
    Outcome::Blocks { blocks: vec![Block::text("done")], structured: None, is_error: false }
}

fn capabilities() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

fn answers() -> [(&'static str, Value); 3] {
    [
        ("user", json!({"action": "accept", "content": {"name": "Ada"}})),
        (
            "model",
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}),
        ),
        ("folders", json!({"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]})),
    ]
}

fn check_answers(given: &std::collections::BTreeMap<String, Answer>) {
    let fields = json!({"name": "Ada"}).as_object().unwrap().clone();
    assert_eq!(given["user"], Answer::Accepted(fields));
    let blocks = vec![json!({"type": "text", "text": "Paris"})];
    let sampled = Sampled { model: "m".to_owned(), blocks };
    assert_eq!(sampled.text(), Some("Paris"));
    assert_eq!(given["model"], Answer::Sampled(sampled));
    let root =
        |uri: &str, name: Option<&str>| Root { uri: uri.to_owned(), name: name.map(str::to_owned) };
    let roots = vec![root("file:///a", Some("A")), root("file:///b", None)];
    assert_eq!(given["folders"], Answer::Roots(roots));
}

fn expected_params(revision: &str) -> [(&'static str, &'static str, Value); 3] {
    let mut form_params = json!({"message": "Who?", "requestedSchema": form().schema});
    if revision != "2025-06-18" {
        form_params["mode"] = json!("form");
    }
    let text = json!({"type": "text", "text": "The capital of France?"});
    let sampling = json!({
        "messages": [{"role": "user", "content": text}],
        "systemPrompt": "Be brief.",
        "maxTokens": 100,
    });
    [
        ("elicitation/create", "ElicitRequest", form_params),
        ("sampling/createMessage", "CreateMessageRequest", sampling),
        ("roots/list", "ListRootsRequest", json!({})),
    ]
}

#[test]
fn with_a_handshake_each_question_is_a_request() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::new(server(), revision, capabilities());
        let (ticket, first, _) = client.call("tools/call", json!({"name": "asks"}));
        let mut actions = Vec::new();
        client.connection.finish(ticket, ask(first, everything(), None), &mut actions);
        let ids: Vec<String> = actions
            .iter()
            .map(|action| match action {
                Action::Ask { id, .. } => id.clone(),
                action => panic!("{action:?}"),
            })
            .collect();
        let asked = messages(actions);
        for ((message, id), (method, definition, params)) in
            asked.iter().zip(&ids).zip(expected_params(revision))
        {
            assert_eq!(message["id"], **id);
            assert_eq!(message["method"], method);
            assert_eq!(message["params"], params, "{revision}");
            // Before, forms had less to offer than this one asks for.
            if revision == "2025-11-25" || definition != "ElicitRequest" {
                valid(revision, definition, message);
            }
        }
        let mut actions = Vec::new();
        for (message, (_, answer)) in asked.iter().zip(answers()) {
            assert!(actions.is_empty(), "all answers are waited for");
            actions =
                client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}));
        }
        let (again, _, caller) = call(actions);
        assert_eq!(again, ticket);
        check_answers(&caller.answers.unwrap().given);
        let reply = client.finish(ticket, done());
        assert_eq!(reply[0]["result"]["content"][0]["text"], "done");
    }
}

#[test]
fn models_and_folders_can_be_asked_for_in_every_handshake() {
    for revision in REVISIONS.into_iter().filter(|revision| *revision != "2026-07-28") {
        let mut client = Client::new(server(), revision, json!({"sampling": {}, "roots": {}}));
        let (ticket, first, caller) = client.call("prompts/get", json!({"name": "x"}));
        assert!(!caller.abilities.forms && caller.abilities.sampling && caller.abilities.roots);
        let questions = everything().split_off(1);
        let asked = client.finish(ticket, ask(first, questions, None));
        for (message, (_, definition, _)) in asked.iter().zip(&expected_params(revision)[1..]) {
            valid(revision, definition, message);
        }
        // A client that will not, and one that answers with several blocks.
        let error = json!({"code": -1, "message": "User rejected sampling request"});
        let refused = client.send(&json!({"jsonrpc": "2.0", "id": asked[0]["id"], "error": error}));
        assert!(matches!(&refused[..], [Action::Warn(_)]), "{refused:?}");
        let answer = json!({"roots": []});
        let answer = json!({"jsonrpc": "2.0", "id": asked[1]["id"], "result": answer});
        let (_, again, caller) = call(client.send(&answer));
        assert!(matches!(again, Call::GetPrompt { .. }), "{again:?}");
        let given = caller.answers.unwrap().given;
        assert_eq!(given["model"], Answer::Cancelled);
        assert_eq!(given["folders"], Answer::Roots(Vec::new()));
    }
}

#[test]
fn in_the_modern_era_the_questions_are_the_result() {
    let requests = [
        ("tools/call", json!({"name": "asks"})),
        ("prompts/get", json!({"name": "asks"})),
        ("resources/read", json!({"uri": "test://asks"})),
    ];
    for (method, params) in requests {
        let mut client = Client::new(server(), "2026-07-28", capabilities());
        let (ticket, first, _) = client.call(method, params.clone());
        let reply = client.finish(ticket, ask(first, everything(), Some("s1")));
        let result = &reply[0]["result"];
        assert_eq!(result["resultType"], "input_required");
        assert_eq!(result["requestState"], "s1");
        for ((name, _), (asked, _, expected)) in
            everything().iter().zip(expected_params("2026-07-28"))
        {
            let request = &result["inputRequests"][name];
            assert_eq!(*request, json!({"method": asked, "params": expected}));
        }
        valid("2026-07-28", "InputRequiredResult", result);
        valid("2026-07-28", "InputRequests", &result["inputRequests"]);
        // Another round, and then the end. What nobody asked for does no harm.
        let mut params = params;
        let responses: serde_json::Map<String, Value> =
            answers().map(|(name, answer)| (name.to_owned(), answer)).into_iter().collect();
        valid("2026-07-28", "InputResponses", &json!(responses));
        params["inputResponses"] = json!(responses);
        params["inputResponses"]["extra"] = json!({"action": "cancel"});
        params["requestState"] = json!("s1");
        let (ticket, second, caller) = client.call(method, params.clone());
        let brought = caller.answers.unwrap();
        assert_eq!(brought.state.as_deref(), Some("s1"));
        check_answers(&brought.given);
        let reply = client.finish(ticket, ask(second, Vec::new(), Some("s2")));
        let result = &reply[0]["result"];
        assert_eq!(result.get("inputRequests"), None, "a state alone is asked for too");
        assert_eq!(result["requestState"], "s2");
        valid("2026-07-28", "InputRequiredResult", result);
        // What cannot be read is refused, whatever kind it is.
        for odd in [
            json!(12345),
            json!({"roots": {}}),
            json!({"roots": [{"name": "no place"}]}),
            json!({"role": "assistant", "content": {"type": "text", "text": "by nobody"}}),
            json!({"role": "assistant", "model": "m", "content": "a text"}),
            json!({"action": "maybe"}),
            json!({}),
        ] {
            params["inputResponses"] = json!({"user": odd});
            let reply = messages(client.request(method, params.clone()));
            assert_eq!(reply[0]["error"]["code"], -32602, "{odd}");
        }
    }
}

#[test]
fn several_blocks_are_as_good_as_one() {
    let mut client = Client::new(server(), "2026-07-28", capabilities());
    let blocks = json!([{"type": "tool_use"}, {"type": "text", "text": "a"}]);
    let response = json!({"role": "assistant", "model": "m", "content": blocks});
    let params = json!({"name": "asks", "inputResponses": {"model": response}});
    let (_, _, caller) = client.call("tools/call", params);
    let given = caller.answers.unwrap().given;
    let Answer::Sampled(sampled) = &given["model"] else { panic!("{given:?}") };
    assert_eq!((sampled.blocks.len(), sampled.text()), (2, Some("a")));
}

#[test]
fn only_what_is_missing_is_named() {
    let cases = [
        (json!({}), Some(json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}))),
        (json!({"sampling": {}}), Some(json!({"elicitation": {"form": {}}, "roots": {}}))),
        (json!({"elicitation": {}, "roots": {}}), Some(json!({"sampling": {}}))),
        (capabilities(), None),
    ];
    for (capabilities, missing) in cases {
        for revision in ["2025-11-25", "2026-07-28"] {
            let mut client = Client::new(server(), revision, capabilities.clone());
            let (ticket, first, _) = client.call("tools/call", json!({"name": "asks"}));
            let mut actions = Vec::new();
            client.connection.finish(ticket, ask(first, everything(), None), &mut actions);
            let status = match &actions[0] {
                Action::Reply(reply) => Some(reply.status),
                _ => None,
            };
            let message = messages(actions).remove(0);
            let Some(missing) = &missing else {
                assert_eq!(message.get("error"), None, "{message}");
                continue;
            };
            assert_eq!(message["error"]["code"], -32021);
            assert_eq!(message["error"]["data"]["requiredCapabilities"], *missing);
            assert_eq!(status, Some(if client.is_modern() { 400 } else { 200 }));
            if client.is_modern() {
                valid(revision, "MissingRequiredClientCapabilityError", &message);
            }
        }
    }
}

#[test]
fn in_the_modern_era_only_some_requests_may_ask() {
    for (method, params) in [
        ("resources/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/templates/list", json!({})),
    ] {
        let mut client = Client::new(server(), "2026-07-28", capabilities());
        let (ticket, first, _) = client.call(method, params);
        let reply = client.finish(ticket, ask(first, everything(), None));
        assert_eq!(reply[0]["error"]["code"], -32603, "{method}");
    }
    // Nothing to ask for is no question.
    let mut client = Client::new(server(), "2026-07-28", capabilities());
    let (ticket, first, _) = client.call("tools/call", json!({"name": "asks"}));
    let reply = client.finish(ticket, ask(first, Vec::new(), None));
    assert_eq!(reply[0]["error"]["code"], -32603);
}

#[test]
#[ignore = "needs the official MCP schemas; see CONTRIBUTING.md"]
fn messages_match_official_schemas() {
    check_messages_of(&[
        with_a_handshake_each_question_is_a_request,
        models_and_folders_can_be_asked_for_in_every_handshake,
        in_the_modern_era_the_questions_are_the_result,
        only_what_is_missing_is_named,
    ]);
}
