//! Calls that go well, and errors that are the server's own.

use std::sync::{Arc, Mutex};

use orchestrator::{Error, Progress};
use serde_json::json;

use crate::world::{World, and, call, log, methods, stdio};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_in_both_eras() {
    for (era, revision) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let world = World::new(&[("test", stdio(&["--era", era]))]);
        let result = world.call("echo", json!({"text": "hello"})).await.unwrap();
        assert_eq!(result.raw["content"][0]["text"], "hello");
        assert!(!result.is_error && result.warnings.is_empty() && result.kept.is_none());
        let info = world.orchestrator.info("test").await.unwrap();
        assert_eq!(info.revision, revision);
        assert_eq!((info.name.as_str(), info.version.as_str()), ("test-server", "1.2.3"));
        assert_eq!(info.instructions.as_deref(), Some("be kind"));
        assert_eq!(info.capabilities["made-up"]["x"], 1);
        world.orchestrator.ping("test").await.unwrap();
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_revisions_are_spoken() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let world = World::new(&[("test", stdio(&["--era", "legacy", "--revision", revision]))]);
        assert_eq!(world.text("echo", json!({"text": "a"})).await, "a");
        assert_eq!(world.orchestrator.info("test").await.unwrap().revision, revision);
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_calls_is_said() {
    let world = World::new(&[]);
    let path = world.path("log");
    let name = path.to_str().unwrap();
    world.rewrite(&[
        ("old", stdio(&["--era", "legacy", "--log", name])),
        ("new", stdio(&["--era", "modern", "--log", name])),
    ]);
    for server in ["old", "new"] {
        world.orchestrator.call(call(server, "echo", json!({"text": "a"}))).await.unwrap();
    }
    let us = json!({"name": "workflowlookup", "version": env!("CARGO_PKG_VERSION")});
    let log = log(&path);
    let of = |method: &str| log.iter().rfind(|line| line["method"] == method).unwrap().clone();
    assert_eq!(of("initialize")["params"]["clientInfo"], us);
    assert!(of("initialize")["params"]["capabilities"]["elicitation"].is_object());
    let meta = &of("tools/call")["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"], us);
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_server_stays_as_it_is() {
    for era in ["legacy", "modern"] {
        let world = World::new(&[("test", stdio(&["--era", era]))]);
        let data = json!({"reason": ["a", 1], "deep": {"x": null}});
        let error = world.call("fail", json!({"code": -32042, "data": data})).await.unwrap_err();
        let expected = Error::Upstream {
            server: "test".to_owned(),
            code: -32042,
            message: "it went wrong".to_owned(),
            data: Some(data),
        };
        assert_eq!(error, expected);
        // One that no library's type has room for.
        let error = world.call("fail", json!({"code": 9_000_000_000_i64})).await.unwrap_err();
        assert!(
            matches!(error, Error::Upstream { code: 9_000_000_000, data: None, .. }),
            "{error:?}"
        );
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_has_a_result() {
    let world = World::new(&[("test", stdio(&[]))]);
    let result = world.call("tool_error", json!({})).await.unwrap();
    assert!(result.is_error);
    assert_eq!(result.raw["content"][0]["text"], "no such file");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_heard_in_order() {
    for era in ["legacy", "modern"] {
        let world = World::new(&[("test", stdio(&["--era", era]))]);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hear = heard.clone();
        let slow = world.call_with("slow", json!({"ms": 100, "progress": 20}), |call| {
            call.progress =
                Some(Arc::new(move |progress: Progress| hear.lock().unwrap().push(progress)));
        });
        slow.await.unwrap();
        let heard = heard.lock().unwrap().clone();
        let steps: Vec<f64> = heard.iter().map(|progress| progress.done).collect();
        assert_eq!(steps, (1..=20).map(f64::from).collect::<Vec<_>>());
        assert_eq!(heard[4].total, Some(20.0));
        assert_eq!(heard[4].message.as_deref(), Some("step 5"));
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_find_their_callers_in_any_order() {
    let world = World::new(&[("test", stdio(&[]))]);
    world.orchestrator.tools("test").await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..100_u64 {
        let orchestrator = world.orchestrator.clone();
        calls.spawn(async move {
            let waiting = call("test", "slow", json!({"ms": (number * 7) % 50}));
            let echoing = call("test", "echo", json!({"text": number.to_string()}));
            let (waited, echoed) =
                tokio::join!(orchestrator.call(waiting), orchestrator.call(echoing));
            assert_eq!(waited.unwrap().raw["content"][0]["text"], "done");
            assert_eq!(echoed.unwrap().raw["content"][0]["text"], number.to_string());
        });
    }
    calls.join_all().await;
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_connected_before_it_is_needed() {
    let world = World::new(&[]);
    let path = world.path("log");
    let entry = stdio(&["--log", path.to_str().unwrap()]);
    world.rewrite(&[("test", entry.clone())]);
    world.orchestrator.registry();
    assert!(
        world.orchestrator.known_tools("test").is_none()
            && !world.orchestrator.is_connected("test")
    );
    let denied = and(entry, json!({"tools": {"deny": ["echo"]}}));
    world.rewrite(&[("test", denied)]);
    let error = world.call("echo", json!({"text": "a"})).await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "{error}");
    assert!(methods(&path).is_empty());
    world.orchestrator.tools("test").await.unwrap();
    let known = world.orchestrator.known_tools("test").unwrap();
    assert!(known.get("slow").is_some() && known.get("echo").is_none());
    assert!(world.orchestrator.is_connected("test"));
    world.orchestrator.close().await;
}
