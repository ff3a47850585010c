//! Upstreams over HTTP.

#[path = "../../examples/test_server/behaviour.rs"]
#[expect(dead_code, reason = "processes do more")]
mod behaviour;
#[path = "../../examples/test_server/lies.rs"]
mod lies;
#[path = "../../examples/test_server/mischief.rs"]
mod mischief;
#[path = "../../examples/test_server/server.rs"]
mod server;
#[path = "../../examples/test_server/tools.rs"]
mod tools;
mod web;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use orchestrator::pool::Tokens;
use orchestrator::pool::{Boxed, NoToken, Refusal};
use orchestrator::pool::{Event, Kind};
use orchestrator::{Answer, Error, Progress};
use registry::entry::Connect;
use serde_json::{Map, Value, json};
use web::{Form, Instead, Web};

use crate::world::{Says, World, event, until};

const FORMS: [Form; 2] = [Form::Json, Form::Events];

async fn world(form: Form, options: &[&str]) -> (World, Web) {
    let web = Web::start(form, options).await;
    (World::new(&[("test", web.entry())]), web)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_in_both_eras_and_both_forms() {
    for form in FORMS {
        for (era, revision) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
            let (world, web) = world(form, &["--era", era]).await;
            assert_eq!(world.text("echo", json!({"text": "hello"})).await, "hello");
            let result = world.call("all_content", json!({})).await.unwrap();
            assert_eq!(
                result.raw["content"][5],
                json!({"type": "hologram", "points": [[1, 2, 3]], "exact": 1.5})
            );
            assert_eq!(
                (&result.raw["future"], &result.raw["_meta"]),
                (&json!({"field": true}), &json!({"example.com/trace": "x"}))
            );
            let info = world.orchestrator.info("test").await.unwrap();
            assert_eq!((info.revision.as_str(), info.name.as_str()), (revision, "test-server"));
            let error = world.call("fail", json!({"code": -7, "data": [1]})).await.unwrap_err();
            assert!(matches!(error, Error::Upstream { code: -7, data: Some(_), .. }), "{error}");
            world.orchestrator.ping("test").await.unwrap();
            let last = web.last("tools/call");
            assert_eq!(last.headers["mcp-protocol-version"], revision);
            if era == "modern" {
                assert_eq!(
                    (&last.headers["mcp-method"], &last.headers["mcp-name"]),
                    (&"tools/call".parse().unwrap(), &"fail".parse().unwrap())
                );
            }
            world.orchestrator.close().await;
            // A session is ended, where there is one.
            let deleted =
                web.requests().iter().filter(|request| request.verb == Method::DELETE).count();
            assert_eq!(deleted, usize::from(era == "legacy"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_is_begun_anew_once() {
    for form in FORMS {
        let (world, web) = world(form, &["--era", "legacy"]).await;
        world.call("echo", json!({"text": "a"})).await.unwrap();
        web.forget_sessions();
        assert_eq!(world.text("echo", json!({"text": "b"})).await, "b");
        assert_eq!(web.count("initialize"), 2);
        // A server that knows no session at all is not asked for ever.
        web.forget_sessions();
        for _ in 0..10 {
            web.instead(Instead::Answer(StatusCode::NOT_FOUND, "text/plain", String::new()));
        }
        let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{error}");
        // Once for its list of tools, and once for the call.
        assert_eq!(web.count("initialize"), 4);
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_are_subscribed_again_after_a_lost_session() {
    let (world, web) = world(Form::Json, &["--era", "legacy"]).await;
    world.orchestrator.subscribe("test", "test://a").await.unwrap();
    until("there is a stream", || web.streams() == 1).await;
    web.forget_sessions();
    // A call hears of it…
    assert_eq!(world.text("echo", json!({"text": "b"})).await, "b");
    until("it is subscribed again", || web.count("resources/subscribe") == 2).await;
    // …or the stream alone, which ends when the server does.
    until("there is a new stream", || web.streams() == 2).await;
    web.forget_sessions();
    web.end_streams();
    until("it is subscribed once more", || web.count("resources/subscribe") == 3).await;
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn error_with_status_404_is_an_answer() {
    let (world, web) = world(Form::Json, &["--era", "legacy"]).await;
    world.call("echo", json!({"text": "a"})).await.unwrap();
    let id = web.last("tools/call").message["id"].as_u64().unwrap() + 1;
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}});
    let page = (StatusCode::NOT_FOUND, "application/json", error.to_string());
    web.instead(Instead::Answer(page.0, page.1, page.2));
    let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
    assert!(matches!(error, Error::Upstream { code: -32601, .. }), "{error}");
    assert_eq!(web.count("initialize"), 1, "the session is still there");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_headers_are_sent() {
    let web = Web::start(Form::Json, &[]).await;
    web.require_token("s3cr3t-t0ken");
    let world = World::new(&[("test", web.entry())]);
    let error = world.call("echo", json!({"text": "a"})).await.unwrap_err();
    assert!(
        matches!(error, Error::Unauthorized { status: 401, .. }) && !error.retryable(),
        "{error}"
    );
    assert!(error.to_string().contains("mcp login test"), "{error}");
    assert!(error.to_string().contains("no credentials were sent"), "{error}");
    let mut entry = web.entry();
    entry["mcp"]["auth"] = json!({"type": "bearer", "token": "${SECRET_TOKEN}"});
    entry["mcp"]["headers"] = json!({"X-Team": "blue-${SECRET_TOKEN}"});
    world.rewrite(&[("test", entry)]);
    world.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(web.last("tools/call").headers["x-team"], "blue-s3cr3t-t0ken");
    web.instead(Instead::Answer(
        StatusCode::FORBIDDEN,
        "text/plain",
        "you said s3cr3t-t0ken".to_owned(),
    ));
    let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { status: 403, .. }), "{error}");
    // Its reason, and nothing of what was shown to it; a login would change nothing.
    let told = error.to_string();
    assert!(told.contains("you said ") && !told.contains("s3cr3t"), "{told}");
    assert!(
        told.contains("the credentials that it was given") && !told.contains("login"),
        "{told}"
    );
    world.orchestrator.close().await;
}

/// Has an old token and a new one.
#[derive(Default)]
struct Renews(Mutex<Vec<(u16, Option<String>)>>);

impl Tokens for Renews {
    fn token<'f>(
        &'f self,
        _: &'f str,
        _: &'f Connect,
    ) -> Boxed<'f, Result<Option<String>, NoToken>> {
        let token = if self.0.lock().unwrap().is_empty() { "old" } else { "new" };
        Box::pin(async move { Ok(Some(token.to_owned())) })
    }

    fn refused<'f>(&'f self, refusal: Refusal<'f>) -> Boxed<'f, Result<bool, NoToken>> {
        let mut refusals = self.0.lock().unwrap();
        refusals.push((refusal.status, refusal.challenge.map(str::to_owned)));
        let is_first = refusals.len() == 1;
        Box::pin(async move { Ok(is_first) })
    }

    fn secrets(&self) -> Arc<[String]> {
        Arc::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_renewed() {
    let web = Web::start(Form::Json, &[]).await;
    web.require_token("new");
    let mut entry = web.entry();
    entry["mcp"]["auth"] = json!({"type": "oauth"});
    let renews = Arc::new(Renews::default());
    let tokens = renews.clone();
    let world = World::with(&[("test", entry)], |options| options.tokens = Some(tokens));
    world.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(renews.0.lock().unwrap().len(), 1);
    web.require_token("another");
    let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
    assert!(matches!(error, Error::Unauthorized { status: 401, .. }), "{error}");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_said_to_be() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/mcp?key=${{SECRET_TOKEN}}");
    let entry = json!({"mcp": {"transport": "http", "url": url}, "timeoutMs": 1_000});
    let world = World::new(&[("test", entry)]);
    let error = world.call("echo", json!({"text": "a"})).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }) && error.retryable(), "{error}");
    assert!(!error.to_string().contains("s3cr3t"), "{error}");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_overloaded_is_tried_again_where_that_does_no_harm() {
    let (world, web) = world(Form::Json, &[]).await;
    let overloaded = || {
        Instead::Answer(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "come back later".to_owned())
    };
    web.instead(overloaded());
    assert_eq!(world.text("echo", json!({"text": "a"})).await, "a");
    assert_eq!(web.count("tools/call"), 2);
    web.instead(overloaded());
    let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
    assert!(
        error.to_string().contains("503") && error.to_string().contains("come back later"),
        "{error}"
    );
    assert_eq!(web.count("tools/call"), 3);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_are_explained() {
    let (world, web) = world(Form::Json, &[]).await;
    world.orchestrator.tools("test").await.unwrap();
    let answer = |status, kind, text: &str| Instead::Answer(status, kind, text.to_owned());
    for (instead, expected) in [
        (answer(StatusCode::OK, "text/html", "<html>"), "`mcp.url`"),
        (answer(StatusCode::OK, "application/json", "{"), "none to what was asked"),
        (
            answer(StatusCode::OK, "application/json", r#"{"jsonrpc":"2.0","id":777,"result":{}}"#),
            "none to what was asked",
        ),
        (Instead::MovedTo("https://example.com/new"), "https://example.com/new"),
        (answer(StatusCode::IM_A_TEAPOT, "text/plain", "short and stout"), "short and stout"),
    ] {
        web.instead(instead);
        let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    // An error of JSON-RPC says more than a status.
    let refusal =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"wrong header","data":5}}"#;
    web.instead(answer(StatusCode::BAD_REQUEST, "application/json", refusal));
    let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
    assert!(
        matches!(&error, Error::Upstream { code: -32020, data: Some(data), .. } if *data == 5),
        "{error}"
    );
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_that_nothing_was_done() {
    let (world, web) = world(Form::Json, &[]).await;
    world.orchestrator.tools("test").await.unwrap();
    let mut said = Vec::new();
    let plain = |status, text: &str| Instead::Answer(status, "text/plain", text.to_owned());
    for instead in [
        plain(StatusCode::TOO_MANY_REQUESTS, "slow down"),
        Instead::Later(StatusCode::TOO_MANY_REQUESTS, "3600"),
        Instead::Later(StatusCode::SERVICE_UNAVAILABLE, "3600"),
        plain(StatusCode::PAYLOAD_TOO_LARGE, ""),
        plain(StatusCode::BAD_GATEWAY, "no backend"),
    ] {
        web.instead(instead);
        let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
        said.push(format!("{error} ({}, {:?})", error.retryable(), error.retry_after()));
    }
    insta::assert_snapshot!(said.join("\n"), @"
    `test` refused, so that nothing was done: HTTP 429 Too Many Requests: slow down; try again later (true, None)
    `test` refused, so that nothing was done: HTTP 429 Too Many Requests: slow down; try again in 3600 s (true, Some(3600s))
    `test` refused, so that nothing was done: HTTP 503 Service Unavailable: slow down; try again in 3600 s (true, Some(3600s))
    `test` refused, so that nothing was done: HTTP 413 Payload Too Large (false, None)
    the connection to `test` broke, and what was asked may have been done: HTTP 502 Bad Gateway: no backend (false, None)
    ");
    assert_eq!(web.count("tools/call"), 5);
    // There is time to wait for it, and what was not done is not done twice.
    web.instead(Instead::Later(StatusCode::TOO_MANY_REQUESTS, "1"));
    world.call("slow", json!({"ms": 1})).await.unwrap();
    assert_eq!(web.count("tools/call"), 7);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_too_early_ends_the_call() {
    for era in ["legacy", "modern"] {
        let (world, web) = world(Form::Events, &["--era", era]).await;
        world.orchestrator.tools("test").await.unwrap();
        web.instead(Instead::BrokenStream);
        let error = world.call("slow", json!({"ms": 1})).await.unwrap_err();
        assert!(matches!(error, Error::Transport { sent: true, .. }), "{error}");
        world.call("echo", json!({"text": "a"})).await.unwrap();
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_with_the_stream() {
    for era in ["legacy", "modern"] {
        let (world, _) = world(Form::Events, &["--era", era]).await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = heard.clone();
        let slow = world.call_with("slow", json!({"ms": 100, "progress": 10}), |call| {
            call.progress =
                Some(Arc::new(move |progress: Progress| hear.lock().unwrap().push(progress.done)));
        });
        slow.await.unwrap();
        assert_eq!(*heard.lock().unwrap(), (1..=10).map(f64::from).collect::<Vec<_>>());
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_reaches_the_person_whose_call_it_came_with() {
    for era in ["legacy", "modern"] {
        let (world, _) = world(Form::Events, &["--era", era]).await;
        world.orchestrator.tools("test").await.unwrap();
        let name: Map<String, Value> = serde_json::from_value(json!({"name": "Ada"})).unwrap();
        let (one, other) = (Says::new(Answer::Accepted(name)), Says::yes());
        let waiting =
            world.call_with("slow", json!({"ms": 2_000}), |call| call.asker = Some(other.clone()));
        let asking = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            world.call_with("ask", json!({}), |call| call.asker = Some(one.clone())).await.unwrap()
        };
        let (waited, asked) = tokio::join!(waiting, asking);
        waited.unwrap();
        assert_eq!(
            asked.raw["content"][0]["text"],
            r#"{"action":"accept","content":{"name":"Ada"}}"#
        );
        assert_eq!((one.forms().len(), other.forms().len()), (1, 0));
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_is_cancelled() {
    for form in FORMS {
        let (world, web) = world(form, &["--era", "legacy"]).await;
        world.orchestrator.tools("test").await.unwrap();
        let late = world
            .call_with("never", json!({}), |call| call.timeout = Some(Duration::from_millis(300)));
        assert!(matches!(late.await, Err(Error::Timeout { .. })));
        until("the server hears of it", || web.count("notifications/cancelled") == 1).await;
        assert_eq!(
            web.last("notifications/cancelled").message["params"]["requestId"],
            web.last("tools/call").message["id"]
        );
        until("a sign of life is wanted", || web.count("ping") == 1).await;
        world.call("echo", json!({"text": "a"})).await.unwrap();
        assert_eq!(web.count("initialize"), 1);
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_go_as_headers_where_a_tool_wants_that() {
    let (world, web) = world(Form::Json, &["--era", "modern"]).await;
    let tools = world.orchestrator.tools("test").await.unwrap();
    assert!(tools.get("regional").is_some() && tools.get("misheaded").is_none());
    world.call("regional", json!({"region": "eu-west"})).await.unwrap();
    assert_eq!(web.last("tools/call").headers["mcp-param-region"], "eu-west");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_heard_on_the_stream_beside() {
    let (world, web) = world(Form::Json, &["--era", "legacy"]).await;
    let mut events = world.orchestrator.events();
    world.orchestrator.tools("test").await.unwrap();
    until("the stream is there", || web.streams() == 1).await;
    web.notify("notifications/tools/list_changed");
    event(&mut events, |event| matches!(event, Event::Changed { list: Kind::Tools, .. })).await;
    world.orchestrator.tools("test").await.unwrap();
    assert_eq!(web.count("tools/list"), 2);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused() {
    for form in FORMS {
        let (world, _) = world(form, &[]).await;
        let result = world.call("big", json!({"bytes": 50 * 1024 * 1024})).await.unwrap();
        assert!(result.kept.unwrap().bytes > 50 * 1024 * 1024);
        let error = world.call("big", json!({"bytes": 80 * 1024 * 1024})).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        world.call("echo", json!({"text": "a"})).await.unwrap();
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_go_at_the_same_time() {
    let (world, web) = world(Form::Json, &[]).await;
    world.orchestrator.tools("test").await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let orchestrator = world.orchestrator.clone();
        let never = crate::world::call("test", "never", json!({}));
        calls.spawn(async move { orchestrator.call(never).await });
    }
    until("all of them are asked", || web.count("tools/call") == 100).await;
    world.call("echo", json!({"text": "a"})).await.unwrap();
    calls.abort_all();
    world.orchestrator.close().await;
}
