//! Who is told what: changes go to those who asked for them, in the words of their revision, and what
//! belongs to stdio alone is not there over HTTP.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use mcp::content::{About, Tool};
use mcp::{
    Action, Audience, Changed, Connection, Handshake, Outcome, Peer, Private, Reply, Revision,
    Server, Transport,
};
use serde_json::{Value, json};

fn connection(transport: Transport) -> Connection {
    let about = || About {
        title: "Direct",
        description: "A method of its own",
        input_schema: json!({"type": "object"}),
        output_schema: Some(json!({"type": "object"})),
        annotations: json!({}),
        examples: None,
    };
    let tool = Tool { name: "direct", is_method: true, about };
    let server = Server::new("test", "Test", "1.0.0", "For a test", "None", vec![tool]);
    Connection::new(Arc::new(server), transport)
}

/// What comes back; a call is shown as such.
fn shown(actions: Vec<Action>) -> Vec<Value> {
    actions
        .into_iter()
        .map(|action| match action {
            Action::Reply(Reply { text, .. }) | Action::Notify(text) => {
                serde_json::from_str(&text).unwrap()
            }
            Action::Call { .. } => json!("call"),
            Action::Cancel(_) => json!("cancel"),
            Action::Drain => json!("drain"),
            Action::Close => json!("close"),
            action => panic!("{action:?}"),
        })
        .collect()
}

fn ask(connection: &mut Connection, method: &str, params: &Value) -> Vec<Value> {
    let line = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
    let mut actions = Vec::new();
    connection.receive(line.to_string().as_bytes(), &mut actions);
    shown(actions)
}

fn initialize(connection: &mut Connection, version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {}});
    ask(connection, "initialize", &params).remove(0)["result"]["capabilities"].take()
}

fn changed(connection: &mut Connection, uri: &str) -> Vec<(String, Value)> {
    let mut actions = Vec::new();
    let changed = Changed {
        resources: true,
        prompts: true,
        uris: vec![uri.to_owned()],
        ..Changed::default()
    };
    connection.changed(&changed, &mut actions);
    let told = shown(actions);
    told.into_iter()
        .map(|mut message| {
            assert_eq!(message.get("id"), None);
            let method = message["method"].as_str().unwrap();
            let method = method.strip_prefix("notifications/").unwrap().to_owned();
            (method, message["params"].take())
        })
        .collect()
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn a_client_with_a_handshake_is_told_what_was_promised() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut connection = connection(Transport::Stdio);
        assert_eq!(changed(&mut connection, "a:1"), [], "nobody has said who they are");
        let capabilities = initialize(&mut connection, version);
        ask(&mut connection, "resources/subscribe", &json!({"uri": "a:1"}));
        let mut expected = Vec::new();
        for kind in ["resources", "prompts"] {
            if capabilities[kind]["listChanged"] == true {
                expected.push((format!("{kind}/list_changed"), json!({})));
            }
        }
        assert_eq!(expected.is_empty(), version == "2024-11-05", "{version}");
        assert_eq!(changed(&mut connection, "a:2"), expected, "{version}");
        expected.push(("resources/updated".to_owned(), json!({"uri": "a:1"})));
        assert_eq!(changed(&mut connection, "a:1"), expected, "{version}");
        ask(&mut connection, "resources/unsubscribe", &json!({"uri": "a:1"}));
        expected.pop();
        assert_eq!(changed(&mut connection, "a:1"), expected, "{version}");
    }
}

#[test]
fn a_stream_is_told_what_it_asked_for_under_its_own_name() {
    let mut connection = connection(Transport::Stdio);
    let wanted = json!({"promptsListChanged": true, "resourceSubscriptions": ["a:1"]});
    let params = json!({"_meta": meta(), "notifications": wanted});
    let acknowledged = ask(&mut connection, "subscriptions/listen", &params);
    let name = json!({"io.modelcontextprotocol/subscriptionId": "subscriptions/listen"});
    assert_eq!(acknowledged[0]["params"], json!({"_meta": name, "notifications": wanted}));
    let prompts = ("prompts/list_changed".to_owned(), json!({"_meta": name}));
    let updated = ("resources/updated".to_owned(), json!({"_meta": name, "uri": "a:1"}));
    assert_eq!(changed(&mut connection, "a:2"), std::slice::from_ref(&prompts));
    assert_eq!(changed(&mut connection, "a:1"), [prompts, updated]);
    let params = json!({"requestId": "subscriptions/listen"});
    let line = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let mut actions = Vec::new();
    connection.receive(line.to_string().as_bytes(), &mut actions);
    assert!(actions.is_empty(), "{actions:?}");
    assert_eq!(changed(&mut connection, "a:1"), []);
}

#[test]
fn what_belongs_to_stdio_is_not_there_over_http() {
    for (transport, is_there) in [(Transport::Stdio, true), (Transport::Http, false)] {
        let mut connection = connection(transport);
        initialize(&mut connection, "2025-06-18");
        let call = ask(&mut connection, "direct", &json!({}));
        assert_eq!(call == [json!("call")], is_there, "{call:?}");
        let end = ask(&mut connection, "shutdown", &json!({}));
        assert_eq!(end == [json!("drain")], is_there, "{end:?}");
        if !is_there {
            let codes = [&call, &end].map(|answers| answers[0]["error"]["code"].clone());
            assert_eq!(codes, [json!(-32601), json!(-32601)]);
        }
        // Never in the era without handshake.
        for method in ["direct", "shutdown"] {
            let answer = ask(&mut connection, method, &json!({"_meta": meta()}));
            assert_eq!(answer[0]["error"]["code"], -32601);
        }
    }
}

#[test]
fn a_message_is_one_line_however_its_host_writes_json() {
    let mut connection = connection(Transport::Stdio);
    initialize(&mut connection, "2025-11-25");
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"direct"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"direct"}}"#,
    ] {
        let mut actions = Vec::new();
        connection.receive(line.as_bytes(), &mut actions);
        let Some(Action::Call { ticket, .. }) = actions.pop() else { panic!("{line}") };
        let structured = "{\r\n  \"a\": \"b\\n\"\n}".to_owned();
        let outcome = Outcome::Tool { text: "a\nb".into(), structured };
        connection.finish(ticket, outcome, &mut actions);
        let Some(Action::Reply(Reply { text: reply, .. })) = actions.pop() else {
            panic!("{line}")
        };
        assert!(!reply.contains(['\n', '\r']), "{reply}");
        let result = serde_json::from_str::<Value>(&reply).unwrap()["result"].take();
        let bare = result.get("structuredContent").unwrap_or(&result);
        assert_eq!(bare, &json!({"a": "b\n"}));
    }
}

#[test]
fn subscriptions_are_bounded() {
    let mut connection = connection(Transport::Stdio);
    initialize(&mut connection, "2025-06-18");
    let subscribe = |number: usize| json!({"uri": format!("a:{number}")});
    let listen = json!({"_meta": meta(), "notifications": {}});
    for number in 0..1000 {
        let answer = ask(&mut connection, "resources/subscribe", &subscribe(number));
        assert_eq!(answer[0]["result"], json!({}));
        let line = json!({"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": listen});
        let mut actions = Vec::new();
        connection.receive(line.to_string().as_bytes(), &mut actions);
        assert_eq!(shown(actions)[0]["method"], "notifications/subscriptions/acknowledged");
    }
    let refused = |answer: &[Value]| answer[0]["error"]["code"] == -32602;
    assert!(refused(&ask(&mut connection, "resources/subscribe", &subscribe(1000))));
    assert!(refused(&ask(&mut connection, "subscriptions/listen", &listen)));
    // One that is there already costs nothing, and one that is gone makes room.
    assert!(!refused(&ask(&mut connection, "resources/subscribe", &subscribe(7))));
    ask(&mut connection, "resources/unsubscribe", &subscribe(7));
    assert!(!refused(&ask(&mut connection, "resources/subscribe", &subscribe(1000))));
}

#[test]
fn a_batch_is_bounded_and_its_answers_are_not_lost() {
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let call = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "direct"}});
    let send = |connection: &mut Connection, batch: &Value| {
        let mut actions = Vec::new();
        connection.receive(batch.to_string().as_bytes(), &mut actions);
        shown(actions)
    };
    let mut one = connection(Transport::Stdio);
    initialize(&mut one, "2025-03-26");
    let all: Vec<Value> = (0..100).map(ping).collect();
    assert_eq!(send(&mut one, &json!(all))[0].as_array().unwrap().len(), 100);
    let all: Vec<Value> = (0..101).map(ping).collect();
    assert_eq!(send(&mut one, &json!(all))[0]["error"]["code"], -32600);
    // Shut down from within: the call before it may end, and nothing after it is read.
    let shutdown = json!({"jsonrpc": "2.0", "id": 3, "method": "shutdown"});
    let said = send(&mut one, &json!([call(1), ping(2), shutdown, ping(4)]));
    assert_eq!(said, [json!("call"), json!("drain")]);
    let mut actions = Vec::new();
    one.close(&mut actions);
    let said = shown(actions);
    let ids = |answers: &Value| -> Vec<Value> {
        answers.as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect()
    };
    assert_eq!([&said[0], &said[2]], [&json!("cancel"), &json!("close")]);
    assert_eq!(ids(&said[1]), [json!(2), json!(3)]);
    // The end of everything sends what waited for the rest of its batch.
    let mut other = connection(Transport::Stdio);
    initialize(&mut other, "2025-03-26");
    assert_eq!(send(&mut other, &json!([ping(1), call(2)])), [json!("call")]);
    let mut actions = Vec::new();
    other.close(&mut actions);
    let said = shown(actions);
    assert_eq!(said[0], json!("cancel"));
    assert_eq!(ids(&said[1]), [json!(1)]);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut connection = connection(Transport::Stdio);
    initialize(&mut connection, "2025-06-18");
    let long = format!("a:{}", "x".repeat(2048));
    let answer = ask(&mut connection, "resources/subscribe", &json!({"uri": long}));
    assert_eq!(answer[0]["error"]["code"], -32602);
    let listen = |uris: Vec<String>| json!({"_meta": meta(), "notifications": {"resourceSubscriptions": uris}});
    let answer = ask(&mut connection, "subscriptions/listen", &listen(vec![long]));
    assert_eq!(answer[0]["error"]["code"], -32602);
    // All streams together.
    let uris = |count: usize| (0..count).map(|number| format!("a:{number}")).collect();
    let answer = ask(&mut connection, "subscriptions/listen", &listen(uris(600)));
    assert_eq!(answer[0]["method"], "notifications/subscriptions/acknowledged");
    let answer = ask(&mut connection, "subscriptions/listen", &listen(uris(401)));
    assert_eq!(answer[0]["error"]["code"], -32602);
}

#[test]
fn changes_of_tools_are_told_where_they_were_promised() {
    let server = |tools_change: bool| {
        let mut server = Server::new("test", "Test", "1.0.0", "For a test", "None", Vec::new());
        server.tools_change = tools_change;
        Arc::new(server)
    };
    let told = |connection: &mut Connection| {
        let mut actions = Vec::new();
        let changed = Changed { tools: true, ..Changed::default() };
        connection.changed(&changed, &mut actions);
        shown(actions)
    };
    let list_changed = |params: Value| json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params});
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for tools_change in [false, true] {
            let mut connection = Connection::new(server(tools_change), Transport::Http);
            let promised = tools_change && version != "2024-11-05";
            let capabilities = initialize(&mut connection, version);
            assert_eq!(capabilities["tools"]["listChanged"], promised, "{version}");
            let expected = promised.then(|| list_changed(json!({})));
            assert_eq!(told(&mut connection), expected.into_iter().collect::<Vec<_>>());
        }
    }
    for (tools_change, wanted) in [(true, true), (true, false), (false, true)] {
        let mut connection = Connection::new(server(tools_change), Transport::Http);
        let wanted = json!({"promptsListChanged": true, "toolsListChanged": wanted});
        let params = json!({"_meta": meta(), "notifications": wanted});
        let acknowledged = ask(&mut connection, "subscriptions/listen", &params).remove(0);
        let is_told = tools_change && wanted["toolsListChanged"] == true;
        let agreed = acknowledged["params"]["notifications"].get("toolsListChanged");
        assert_eq!(agreed, is_told.then_some(&json!(true)));
        let name = json!({"io.modelcontextprotocol/subscriptionId": "subscriptions/listen"});
        let expected = is_told.then(|| list_changed(json!({"_meta": name})));
        assert_eq!(told(&mut connection), expected.into_iter().collect::<Vec<_>>());
    }
}

/// What is not everybody's business is told to those whose it is, also where others have asked for it.
#[test]
fn private_changes_go_to_their_audience() {
    let uri = "session://a";
    let changed = Changed {
        private: vec![Private {
            uri: uri.to_owned(),
            heard_by: Audience {
                unnamed: true,
                principals: vec!["ann".into()],
                scopes: vec!["all".into()],
            },
            listed_by: Audience { principals: vec!["ann".into()], ..Audience::default() },
        }],
        ..Changed::default()
    };
    let heard = |principal: Option<&str>, scope: Option<&str>, is_modern: bool| {
        let server =
            Arc::new(Server::new("test", "Test", "1.0.0", "For a test", "None", Vec::new()));
        let revision = Revision::parse("2025-11-25").unwrap();
        let handshake =
            (!is_modern).then(|| Handshake { revision, abilities: mcp::Abilities::default() });
        let (principal, scope) = (principal.map(Into::into), scope.map(Into::into));
        let peer = Peer { principal, scope, handshake, ..Peer::default() };
        let mut connection = Connection::over_http(server, peer);
        let followed = match is_modern {
            true => {
                let wanted = json!({"resourceSubscriptions": [uri], "resourcesListChanged": true});
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                let params = json!({"notifications": wanted, "_meta": meta});
                ask(&mut connection, "subscriptions/listen", &params)
            }
            false => ask(&mut connection, "resources/subscribe", &json!({"uri": uri})),
        };
        assert!(followed[0].get("error").is_none(), "{followed:?}");
        let mut actions = Vec::new();
        connection.changed(&changed, &mut actions);
        let told =
            shown(actions).into_iter().map(|told| told["method"].as_str().unwrap().to_owned());
        told.collect::<Vec<_>>()
    };
    let (updated, listed) =
        ("notifications/resources/updated", "notifications/resources/list_changed");
    for is_modern in [true, false] {
        assert_eq!(heard(Some("ann"), Some("some"), is_modern), [listed, updated]);
        assert_eq!(heard(Some("bob"), Some("all"), is_modern), [updated]);
        assert_eq!(heard(None, None, is_modern), [updated]);
        assert_eq!(heard(Some("bob"), Some("some"), is_modern), [""; 0]);
        // A name is no scope, and the other way round.
        assert_eq!(heard(Some("all"), Some("ann"), is_modern), [""; 0]);
        assert_eq!(heard(Some("bob"), None, is_modern), [""; 0]);
    }
}
