//! Asking the client's user, and telling how a call goes on: the same tool, in the words of each revision.
//! Messages are held against the official schemas where those are at hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads the official schemas")]

#[path = "support/schemas.rs"]
mod schemas;

use std::sync::Arc;
use std::time::Duration;

use mcp::content::{About, Tool};
use mcp::{
    Abilities, Action, Answer, Ask, Call, Caller, Changed, Connection, Form, Outcome, Progress,
    Reply, Server, Ticket, Transport,
};
use schemas::{check_messages_of, valid};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(45);
const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn connection() -> Connection {
    let about = || About {
        title: "Asks",
        description: "Wants to know something",
        input_schema: json!({"type": "object"}),
        output_schema: Some(json!({"type": "object"})),
        annotations: json!({}),
        examples: None,
    };
    let tool = Tool { name: "asks", is_method: true, about };
    let server = Server::new("test", "Test", "1.0.0", "For a test", "None", vec![tool]);
    Connection::new(Arc::new(server), Transport::Stdio)
}

/// Sends a message, and what comes of it.
fn send(connection: &mut Connection, message: &Value) -> Vec<Action> {
    let mut actions = Vec::new();
    connection.receive(message.to_string().as_bytes(), &mut actions);
    actions
}

fn request(id: &str, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn initialized(version: &str, capabilities: &Value) -> Connection {
    let mut connection = connection();
    let params = json!({"protocolVersion": version, "capabilities": capabilities});
    send(&mut connection, &request("hello", "initialize", &params));
    connection
}

/// The only action: a call.
fn call(mut actions: Vec<Action>) -> (Ticket, Call, Caller) {
    assert_eq!(actions.len(), 1, "{actions:?}");
    match actions.remove(0) {
        Action::Call { ticket, call, caller } => (ticket, call, caller),
        action => panic!("{action:?}"),
    }
}

/// Messages to the client, whatever they are.
fn messages(actions: Vec<Action>) -> Vec<Value> {
    let texts = actions.into_iter().map(|action| match action {
        Action::Reply(Reply { text, .. }) | Action::Notify(text) => text,
        Action::Ask { message, patience, .. } => {
            assert_eq!(patience, PATIENCE);
            message
        }
        action => panic!("{action:?}"),
    });
    texts.map(|text| serde_json::from_str(&text).unwrap()).collect()
}

fn finish(connection: &mut Connection, ticket: Ticket, outcome: Outcome) -> Vec<Value> {
    let mut actions = Vec::new();
    connection.finish(ticket, outcome, &mut actions);
    messages(actions)
}

fn ask(call: Call) -> Outcome {
    let form = |message: &str, name: &str| Form {
        message: message.to_owned(),
        schema: json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}),
    };
    let questions = vec![
        ("name".to_owned(), form("Who are you?", "name").into()),
        ("colour".to_owned(), form("Which colour?", "colour").into()),
    ];
    Outcome::Ask(Box::new(Ask {
        call,
        questions,
        patience: PATIENCE,
        about: Some("gate:1".to_owned()),
        state: Some("s1".to_owned()),
    }))
}

fn done() -> Outcome {
    Outcome::Tool { text: "done".into(), structured: r#"{"done":true}"#.to_owned() }
}

fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

#[test]
fn with_a_handshake_the_client_is_asked_by_requests() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mut connection = initialized(version, &json!({"elicitation": {}}));
        let params = json!({"name": "asks", "arguments": {"a": 1}});
        let (ticket, first, context) =
            call(send(&mut connection, &request("r1", "tools/call", &params)));
        assert_eq!(
            context,
            Caller {
                abilities: Abilities { forms: true, ..Abilities::default() },
                ..Caller::default()
            }
        );
        let asked = finish(&mut connection, ticket, ask(first));
        let mut expected = vec![
            json!({"message": "Who are you?", "requestedSchema": {
                "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
            }}),
            json!({"message": "Which colour?", "requestedSchema": {
                "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
            }}),
        ];
        if version == "2025-11-25" {
            expected.iter_mut().for_each(|params| params["mode"] = json!("form"));
        }
        for (message, params) in asked.iter().zip(&expected) {
            assert_eq!(message["method"], "elicitation/create");
            assert_eq!(&message["params"], params, "{version}");
            valid(version, "ElicitRequest", message);
        }
        // In any order, and the client may talk of other things meanwhile.
        let respond = |asked: &Value, result: Value| json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        let colour = respond(&asked[1], json!({"action": "decline"}));
        assert!(send(&mut connection, &colour).is_empty());
        let pong = messages(send(&mut connection, &request("p", "ping", &json!({}))));
        assert_eq!(pong[0]["result"], json!({}));
        let name = respond(&asked[0], json!({"action": "accept", "content": {"name": "Ada"}}));
        let (again, second, context) = call(send(&mut connection, &name));
        assert_eq!(again, ticket);
        let Call::Tool { name, arguments, .. } = second else { panic!("{second:?}") };
        assert_eq!((name, arguments.get()), ("asks", r#"{"a":1}"#));
        let answers = context.answers.unwrap();
        assert_eq!(answers.state.as_deref(), Some("s1"));
        let filled_in = json!({"name": "Ada"}).as_object().unwrap().clone();
        assert_eq!(answers.given["name"], Answer::Accepted(filled_in));
        assert_eq!(answers.given["colour"], Answer::Declined);
        let reply = finish(&mut connection, ticket, done());
        assert_eq!(reply[0]["id"], "r1");
        assert_eq!(reply[0]["result"]["structuredContent"], json!({"done": true}));
        // An answer that comes twice, or to a question that nobody asked, is nobody's.
        assert!(send(&mut connection, &colour).is_empty());
    }
}

#[test]
fn in_the_modern_era_the_client_comes_back_with_the_answers() {
    let mut connection = connection();
    let meta = meta(&json!({"elicitation": {"form": {}}}));
    let mut params = json!({"_meta": meta, "name": "asks", "arguments": {}});
    let (ticket, first, context) =
        call(send(&mut connection, &request("r1", "tools/call", &params)));
    assert!(context.abilities.forms && context.answers.is_none());
    let reply = finish(&mut connection, ticket, ask(first));
    let result = &reply[0]["result"];
    assert_eq!(result["resultType"], "input_required");
    assert_eq!(result["requestState"], "s1");
    assert_eq!(result["inputRequests"]["name"]["params"]["mode"], "form");
    assert_eq!(result["inputRequests"]["colour"]["method"], "elicitation/create");
    valid("2026-07-28", "InputRequiredResult", result);
    valid("2026-07-28", "InputRequests", &result["inputRequests"]);
    // The same request again, under another id. What is missing was not answered.
    params["inputResponses"] = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    params["requestState"] = json!("s1");
    let again = request("r2", "tools/call", &params);
    valid("2026-07-28", "CallToolRequest", &again);
    let (ticket, _, context) = call(send(&mut connection, &again));
    let answers = context.answers.unwrap();
    assert_eq!(answers.state.as_deref(), Some("s1"));
    assert_eq!(answers.given.keys().collect::<Vec<_>>(), ["name"]);
    let reply = finish(&mut connection, ticket, done());
    assert_eq!(reply[0]["id"], "r2");
    assert_eq!(reply[0]["result"]["resultType"], "complete");
    // Answers that cannot be read are not guessed at.
    params["inputResponses"] = json!({"name": {"action": "maybe"}});
    let reply = messages(send(&mut connection, &request("r3", "tools/call", &params)));
    assert_eq!(reply[0]["error"]["code"], -32602);
    let details = reply[0]["error"]["data"]["details"].as_str().unwrap();
    assert!(details.contains("the answer `name`"), "{details}");
}

#[test]
fn who_cannot_be_asked_is_told_what_is_missing() {
    let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
    let mut cases = vec![];
    for version in HANDSHAKES {
        cases.push((initialized(version, &json!({})), json!({"name": "asks"})));
    }
    // A revision that does not have it yet, and a client that asks by opening a page only.
    cases.push((initialized("2025-03-26", &json!({"elicitation": {}})), json!({"name": "asks"})));
    let by_page = json!({"elicitation": {"url": {}}});
    cases.push((initialized("2025-11-25", &by_page), json!({"name": "asks"})));
    for capabilities in [json!({}), by_page] {
        cases.push((connection(), json!({"name": "asks", "_meta": meta(&capabilities)})));
    }
    for (mut connection, params) in cases {
        let (ticket, first, context) =
            call(send(&mut connection, &request("r1", "tools/call", &params)));
        assert!(!context.abilities.forms, "{params}");
        let reply = finish(&mut connection, ticket, ask(first));
        assert_eq!(reply[0]["error"]["code"], -32021, "{params}");
        assert_eq!(reply[0]["error"]["data"], required);
    }
    // Before there were several ways to ask, a client had nothing to name.
    let mut connection = initialized("2025-06-18", &json!({"elicitation": {"whatever": 1}}));
    let (_, _, context) =
        call(send(&mut connection, &request("r1", "tools/call", &json!({"name": "asks"}))));
    assert!(context.abilities.forms);
}

#[test]
fn no_answer_that_can_be_read_is_no_choice() {
    for answer in [
        json!({"error": {"code": -32601, "message": "Method not found"}}),
        json!({"result": {"action": "shrug"}}),
        json!({"result": null}),
        json!({"result": {"action": "accept", "content": [1]}}),
    ] {
        let mut connection = initialized("2025-11-25", &json!({"elicitation": {}}));
        let params = json!({"name": "asks"});
        let (ticket, first, _) = call(send(&mut connection, &request("r1", "tools/call", &params)));
        let asked = finish(&mut connection, ticket, ask(first));
        let mut context = None;
        for asked in asked {
            let mut message = answer.clone();
            message["jsonrpc"] = json!("2.0");
            message["id"] = asked["id"].clone();
            for action in send(&mut connection, &message) {
                match action {
                    Action::Warn(warning) => assert!(warning.contains("no choice"), "{warning}"),
                    Action::Call { caller: called, .. } => context = Some(called),
                    action => panic!("{action:?}"),
                }
            }
        }
        let given = context.unwrap().answers.unwrap().given;
        assert!(given.values().all(|answer| *answer == Answer::Cancelled), "{answer}: {given:?}");
    }
}

#[test]
fn a_request_that_is_taken_back_takes_its_questions_back() {
    let mut connection = initialized("2025-11-25", &json!({"elicitation": {}}));
    let params = json!({"name": "asks"});
    let (ticket, first, _) = call(send(&mut connection, &request("r1", "tools/call", &params)));
    let asked = finish(&mut connection, ticket, ask(first));
    let cancelled = |id: &Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let mut actions = send(&mut connection, &cancelled(&json!("r1")));
    let (_, forget, _) = call(vec![actions.pop().unwrap()]);
    assert!(matches!(forget, Call::Forget { state } if state == "s1"));
    let told = messages(actions);
    let taken_back: Vec<&Value> = told.iter().map(|told| &told["params"]["requestId"]).collect();
    assert_eq!(taken_back, asked.iter().map(|asked| &asked["id"]).collect::<Vec<_>>());
    for message in &told {
        valid("2025-11-25", "CancelledNotification", message);
    }
    // Too late, and nobody's.
    let late = json!({"jsonrpc": "2.0", "id": asked[0]["id"], "result": {"action": "decline"}});
    assert!(send(&mut connection, &late).is_empty());
    assert_eq!(finish(&mut connection, ticket, done()), Vec::<Value>::new());
}

#[test]
fn a_client_that_takes_too_long_is_not_waited_for() {
    let mut connection = initialized("2025-11-25", &json!({"elicitation": {}}));
    let params = json!({"name": "asks"});
    let (ticket, first, _) = call(send(&mut connection, &request("r1", "tools/call", &params)));
    let asked = finish(&mut connection, ticket, ask(first));
    let colour = json!({"jsonrpc": "2.0", "id": asked[1]["id"], "result": {"action": "decline"}});
    assert!(send(&mut connection, &colour).is_empty());
    let mut actions = Vec::new();
    connection.give_up(ticket, &mut actions);
    let again = actions.pop().unwrap();
    let taken_back = messages(actions);
    assert_eq!(taken_back.len(), 1, "what is answered is not taken back");
    assert_eq!(taken_back[0]["params"]["requestId"], asked[0]["id"]);
    let (_, _, caller) = call(vec![again]);
    let answers = caller.answers.unwrap();
    assert_eq!(answers.given.keys().collect::<Vec<_>>(), ["colour"]);
    // A second time there is nothing to give up, and an answer comes too late.
    let mut actions = Vec::new();
    connection.give_up(ticket, &mut actions);
    assert!(actions.is_empty());
    let late = json!({"jsonrpc": "2.0", "id": asked[0]["id"], "result": {"action": "accept"}});
    assert!(send(&mut connection, &late).is_empty());
    assert_eq!(finish(&mut connection, ticket, done()).len(), 1);
}

#[test]
fn a_question_that_is_settled_otherwise_is_taken_back() {
    let mut connection = initialized("2025-11-25", &json!({"elicitation": {}}));
    assert!(!connection.follows("gate:"));
    let params = json!({"name": "asks"});
    let (ticket, first, _) = call(send(&mut connection, &request("r1", "tools/call", &params)));
    let asked = finish(&mut connection, ticket, ask(first));
    assert!(connection.follows("gate:"));
    let mut settle = |uri: &str| {
        let mut actions = Vec::new();
        let changed = Changed { settled: vec![uri.to_owned()], ..Changed::default() };
        connection.changed(&changed, &mut actions);
        actions
    };
    assert!(settle("gate:2").is_empty(), "that was another one");
    let mut actions = settle("gate:1");
    let (again, _, caller) = call(vec![actions.pop().unwrap()]);
    assert_eq!((again, caller.answers.unwrap().given.len()), (ticket, 0));
    assert_eq!(messages(actions).len(), asked.len(), "each is taken back");
    assert!(settle("gate:1").is_empty());
    assert_eq!(finish(&mut connection, ticket, done()).len(), 1);
}

#[test]
fn progress_is_told_to_who_wants_to_hear_it() {
    let progress = |done: f64| Progress { done, total: Some(3.0), message: Some("so far".into()) };
    let mut cases: Vec<(Connection, Value, Option<&str>)> = HANDSHAKES
        .map(|version| {
            let params = json!({"name": "asks", "_meta": {"progressToken": 7}});
            let is_told = version != "2024-11-05";
            (initialized(version, &json!({})), params, is_told.then_some(version))
        })
        .into();
    let mut with_token = meta(&json!({}));
    with_token["progressToken"] = json!(7);
    let params = json!({"name": "asks", "_meta": with_token});
    cases.push((connection(), params, Some("2026-07-28")));
    cases.push((initialized("2025-11-25", &json!({})), json!({"name": "asks"}), None));
    let nonsense = json!({"name": "asks", "_meta": {"progressToken": {}}});
    cases.push((initialized("2025-11-25", &json!({})), nonsense, None));
    for (mut connection, params, told_in) in cases {
        let (ticket, _, context) =
            call(send(&mut connection, &request("r1", "tools/call", &params)));
        assert_eq!(context.wants_progress, told_in.is_some(), "{params}");
        let mut actions = Vec::new();
        // It must grow: what stands still or goes back is not told.
        for done in [1.0, 1.0, 0.5, 2.0] {
            connection.progress(ticket, &progress(done), &mut actions);
        }
        let told = messages(actions);
        let expected: &[f64] = if told_in.is_some() { &[1.0, 2.0] } else { &[] };
        assert_eq!(told.len(), expected.len(), "{params}");
        for (message, done) in told.iter().zip(expected) {
            let params =
                json!({"progressToken": 7, "progress": done, "total": 3.0, "message": "so far"});
            assert_eq!(message["method"], "notifications/progress");
            assert_eq!(message["params"], params);
            valid(told_in.unwrap(), "ProgressNotification", message);
        }
        assert_eq!(finish(&mut connection, ticket, done()).len(), 1);
        let mut actions = Vec::new();
        connection.progress(ticket, &progress(3.0), &mut actions);
        assert!(actions.is_empty(), "nothing more is said of what is answered");
    }
}

#[test]
#[ignore = "needs the official MCP schemas; see CONTRIBUTING.md"]
fn messages_match_official_schemas() {
    check_messages_of(&[
        with_a_handshake_the_client_is_asked_by_requests,
        in_the_modern_era_the_client_comes_back_with_the_answers,
        a_request_that_is_taken_back_takes_its_questions_back,
        progress_is_told_to_who_wants_to_hear_it,
    ]);
}
