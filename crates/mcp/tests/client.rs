//! The client side: classification of messages, encoding of requests, pages and streams.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use mcp::client::{
    Client, ClientInfo, Handshake, Id, Incoming, InputRequired, ListKind, PageStep, Pages, Request,
    Resumption, SERVER_REQUESTS_MAX, ServerRequest, SseEvent, cancelled, guess_id, read,
};
use mcp::{Era, Revision};
use serde_json::value::RawValue;
use serde_json::{Value, json};

const CLIENT: ClientInfo = ClientInfo { name: "us", version: "1" };

type Named = Client<&'static str, &'static str>;

fn hear(client: &mut Named, text: &str) -> String {
    let messages = read(text).into_iter().map(|message| match client.receive(message) {
        Incoming::Response { pending, outcome: Ok(result), .. } => format!("{pending}: {result}"),
        Incoming::Response { pending, outcome: Err(error), .. } => format!("{pending}: {error:?}"),
        other => format!("{other:?}"),
    });
    messages.collect::<Vec<_>>().join("\n")
}

#[test]
fn messages_are_classified() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#,
        r#"{"jsonrpc":"2.0","id":"7","result":null}"#,
        r#"{"jsonrpc":"2.0","id":3.0,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":"x-1","error":{"code":-32000,"message":"no","data":{"b":2}}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":"x","message":5}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-1.5,"message":null,"data":null}}"#,
        r#"{"jsonrpc":"2.0","id":4,"error":"broken"}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}"#,
        "Server started on port 3000",
        "5",
        "null",
        "",
        r#"[{"jsonrpc":"2.0","id":1,"result":{}}, 5, {"jsonrpc":"2.0","method":"x"}]"#,
        "[",
    ];
    let mut text = String::new();
    for line in lines {
        text += &format!("{line}\n");
        for message in read(line) {
            text += &match message {
                Ok(message) => format!("    {message:?}\n"),
                Err(unreadable) => format!("    {unreadable:?}: {unreadable}\n"),
            };
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn response_is_delivered_once() {
    let mut client = Named::default();
    assert_eq!((client.register("ann"), client.register("bob"), client.register("eve")), (0, 1, 2));
    assert_eq!(hear(&mut client, r#"{"id":1,"result":{"a":1}}"#), r#"bob: {"a":1}"#);
    assert_eq!(hear(&mut client, r#"{"id":1,"result":{}}"#), "Unmatched(Ours(1))");
    assert_eq!(hear(&mut client, r#"{"id":"0","result":5}"#), "ann: 5");
    assert_eq!(hear(&mut client, r#"{"id":2}"#), "eve: NoOutcome");
    assert!(hear(&mut client, r#"{"id":"x","result":5}"#).starts_with("Unmatched(Foreign"));
    let id = client.register("ann");
    assert_eq!(client.remove(id), Some("ann"));
    assert_eq!(hear(&mut client, r#"{"id":3,"result":5}"#), "Unmatched(Ours(3))");
    client.register("ann");
    assert_eq!(client.drain().collect::<Vec<_>>(), [(4, "ann")]);
}

#[test]
fn concurrent_server_requests_are_limited() {
    let mut client = Named::default();
    let ask = |client: &mut Named, id: usize| {
        let text = json!({"id": id, "method": "roots/list"}).to_string();
        let Some(message) = read(&text).pop() else { panic!("{text}") };
        match client.receive(message) {
            Incoming::Request(ServerRequest { id, method, .. }) => {
                client.accept_request(id, "somebody");
                method
            }
            other => format!("{other:?}"),
        }
    };
    for id in 0..SERVER_REQUESTS_MAX {
        assert_eq!(ask(&mut client, id), "roots/list");
    }
    assert!(ask(&mut client, 1_000).contains("asks too much at a time"));
    let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(hear(&mut client, cancelled), r#"RequestCancelled("somebody")"#);
    assert_eq!(ask(&mut client, 7), "roots/list");
    assert!(ask(&mut client, 7).contains("asks too much at a time"));
    let id = Id::parse("3").unwrap();
    assert!(client.finish_response(&id) && !client.finish_response(&id));
}

#[test]
fn notifications_are_classified() {
    let mut client = Named::default();
    let told = |method: &str, params: Value| {
        json!({"method": format!("notifications/{method}"), "params": params}).to_string()
    };
    let subscription = json!({"io.modelcontextprotocol/subscriptionId": 3});
    let acknowledged = json!({"_meta": subscription, "notifications": {"toolsListChanged": true}});
    let lines = [
        told("progress", json!({"progressToken": "5", "progress": 1, "message": "half"})),
        told("progress", json!({"progressToken": {}})),
        told("tools/list_changed", json!({})),
        told("resources/updated", json!({"uri": "test://a"})),
        told("resources/updated", json!({"uri": "x".repeat(8 * 1024 + 1)})),
        told("resources/updated", json!({})),
        told("message", json!({"data": "hello"})),
        told("cancelled", json!({"requestId": 4})),
        told("subscriptions/acknowledged", acknowledged),
        told("subscriptions/acknowledged", json!({})),
        told("new", json!({})),
        told("large", json!("x".repeat(1024 * 1024))),
    ];
    let heard: Vec<String> = lines.iter().map(|line| hear(&mut client, line)).collect();
    insta::assert_snapshot!(heard.join("\n"));
}

#[test]
fn requests_are_encoded_for_their_era() {
    let arguments = json!({"city": "Köln", "n": {"q": 5}});
    let Value::Object(arguments) = arguments else { panic!("no object") };
    let schema = json!({"properties": {
        "city": {"type": "string", "x-mcp-header": "City"},
        "n": {"properties": {"q": {"type": "integer", "x-mcp-header": "Q"}}},
        "missing": {"type": "string", "x-mcp-header": "Missing"},
    }});
    let call = Request::call_tool("weather", &arguments, Some(&schema));
    let (_, probe) = Handshake::begin(&CLIENT, None);
    let (_, initialize) = Handshake::begin(&CLIENT, Some(Era::Legacy));
    let mut text = String::new();
    for (request, revision) in [
        (&call, Some(Revision::V2025_11_25)),
        (&call, Some(Revision::V2026_07_28)),
        (&initialize, None),
        (&probe, None),
        (&Request::sign_of_life(Era::Legacy), Some(Revision::V2024_11_05)),
        (&Request::sign_of_life(Era::Modern), Some(Revision::V2026_07_28)),
        (&Request::new("resources/read").with("uri", "test://a"), Some(Revision::V2026_07_28)),
    ] {
        text += &format!("{}\n", request.encode(7, &CLIENT, revision));
        for (name, value) in request.headers(revision) {
            text += &format!("    {name}: {value}\n");
        }
    }
    text += &cancelled(7);
    insta::assert_snapshot!(text);
}

#[test]
fn pagination_is_bounded() {
    let page = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let mut pages = Pages::new(ListKind::Tools);
    assert!(!pages.request().encode(0, &CLIENT, None).contains("cursor"));
    let first = page(r#"{"tools":[1],"nextCursor":"b","ttlMs":5000}"#);
    assert_eq!(pages.receive(&first).flatten().map(RawValue::get), Some("[1]"));
    assert_eq!(pages.next_step(true), PageStep::Next);
    assert!(pages.request().encode(0, &CLIENT, None).contains(r#""cursor":"b""#));
    let second = page(r#"{"tools":[2],"ttlMs":7000}"#);
    assert!(pages.receive(&second).is_some());
    assert_eq!(
        (pages.next_step(true), pages.time_to_live()),
        (PageStep::End, Some(Duration::from_secs(5)))
    );
    assert!(Pages::new(ListKind::Tools).receive(&page("5")).is_none());
    let mut circle = Pages::new(ListKind::Prompts);
    let again = page(r#"{"prompts":[],"nextCursor":"a"}"#);
    assert!(circle.receive(&again).is_some() && circle.next_step(true) == PageStep::Next);
    assert!(
        circle.receive(&again).is_some()
            && matches!(circle.next_step(true), PageStep::Truncated(_))
    );
    let mut full = Pages::new(ListKind::Prompts);
    assert!(
        full.receive(&again).is_some() && matches!(full.next_step(false), PageStep::Truncated(_))
    );
}

#[test]
fn input_required_result_is_recognized() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let read = |text: &str| InputRequired::read(&raw(text));
    assert_eq!(read(r#"{"content":[{"text":"input_required"}]}"#), Ok(None));
    let question = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"roots/list"}}}"#;
    let Ok(Some(required)) = read(question) else { panic!("no question") };
    assert_eq!(
        (required.requests["a"].method.as_str(), required.state.as_deref()),
        ("roots/list", Some("s"))
    );
    assert!(read(r#"{"resultType":"input_required","inputRequests":5}"#).is_err());
    let many: Map = (0..17).map(|at| (at.to_string(), json!({"method": "m"}))).collect();
    let many = json!({"resultType": "input_required", "inputRequests": many}).to_string();
    assert_eq!(read(&many), Err("it has 17 questions at a time".to_owned()));
}

type Map = serde_json::Map<String, Value>;

#[test]
fn ids_are_found_in_fragments() {
    for (part, id) in [
        (r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"te"#, Some(17)),
        (r#"{"jsonrpc":"2.0", "id" : "5" ,"#, Some(5)),
        (r#"aaaaaaaa"}]},"id":3}"#, Some(3)),
        (r#"{"id":"#, None),
        (r#"{"id":x}"#, None),
        ("nothing", None),
    ] {
        assert_eq!(guess_id(part.as_bytes()), id, "{part}");
    }
}

#[test]
fn stream_is_resumed_with_backoff() {
    let seconds = |resumption: &Resumption| resumption.delay().as_secs_f64();
    let mut resumption = Resumption::default();
    assert_eq!((resumption.last_event(), seconds(&resumption)), (None, 1.0));
    let retry = Some(Duration::from_millis(250));
    resumption.observe(&SseEvent { id: Some("7".to_owned()), retry, ..SseEvent::default() });
    assert_eq!((resumption.last_event(), seconds(&resumption)), (Some("7"), 0.25));
    resumption.record_failure();
    assert_eq!(seconds(&resumption), 2.0);
    for _ in 0..100 {
        resumption.record_failure();
    }
    assert_eq!(seconds(&resumption), 60.0);
    resumption.record_success();
    assert_eq!(seconds(&resumption), 0.25);
    let retry = Some(Duration::ZERO);
    resumption.observe(&SseEvent { retry, ..SseEvent::default() });
    assert_eq!(seconds(&resumption), 0.05);
}
