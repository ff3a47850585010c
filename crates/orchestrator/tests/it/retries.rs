//! What is tried again, and what never is.

use orchestrator::Error;
use serde_json::json;

use crate::world::{World, call, log, methods, processes, stdio, until};

async fn tried(tool: &str, how: &str, fails: u32) -> (Result<String, Error>, usize) {
    let world = World::new(&[]);
    let (path, left) = (world.path("log"), world.path("left"));
    std::fs::write(&left, fails.to_string()).unwrap();
    world.rewrite(&[("test", stdio(&["--log", path.to_str().unwrap()]))]);
    let result = world.call(tool, json!({"file": left, "how": how})).await;
    let result = result.map(|result| result.raw["content"][0]["text"].as_str().unwrap().to_owned());
    let calls = log(&path).iter().filter(|line| line["method"] == "tools/call").count();
    world.orchestrator.close().await;
    (result, calls)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_only_reads_is_tried_three_times() {
    for how in ["error", "die"] {
        let (result, calls) = tried("flaky_read", how, 2).await;
        assert_eq!((result.unwrap().as_str(), calls), ("at last", 3), "{how}");
    }
    let (result, calls) = tried("flaky_read", "error", 9).await;
    assert!(matches!(result, Err(Error::Upstream { code: -32603, .. })), "{result:?}");
    assert_eq!(calls, 3);
}

/// It starts and lists well each time, and falls over each time that it is called.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_of_every_call_is_left_alone() {
    let world = World::new(&[("test", stdio(&[]))]);
    for _ in 0..5 {
        // As the server does with every upstream that is there again.
        world.orchestrator.info("test").await.unwrap();
        world.orchestrator.tools("test").await.unwrap();
        let died = world.call("die", json!({})).await;
        assert!(matches!(died, Err(Error::Transport { .. })), "{died:?}");
    }
    let error = world.call("die", json!({})).await.unwrap_err();
    assert!(matches!(error, Error::Open { .. }), "{error}");
    assert!(error.retry_after().is_some());
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_may_do_something_is_tried_once() {
    let (result, calls) = tried("flaky_write", "error", 1).await;
    assert!(matches!(result, Err(Error::Upstream { code: -32603, .. })), "{result:?}");
    assert_eq!(calls, 1);
    let (result, calls) = tried("flaky_write", "die", 1).await;
    assert!(matches!(result, Err(Error::Transport { sent: true, .. })), "{result:?}");
    assert_eq!(calls, 1);
}

/// The server dies of a call that is tried again, and its entry is taken away or rewritten before that.
#[tokio::test(flavor = "multi_thread")]
async fn outdated_entry_starts_nothing() {
    for is_gone in [true, false] {
        let world = World::new(&[]);
        let (path, left) = (world.path("log"), world.path("left"));
        std::fs::write(&left, "9").unwrap();
        let entry = |era: &str| stdio(&["--log", path.to_str().unwrap(), "--era", era]);
        world.rewrite(&[("test", entry("legacy"))]);
        let orchestrator = world.orchestrator.clone();
        let dying = call("test", "flaky_read", json!({"file": left, "how": "die"}));
        let dying = tokio::spawn(async move { orchestrator.call(dying).await });
        until("it is called", || methods(&path).contains(&"tools/call".to_owned())).await;
        let id = if is_gone { "other" } else { "test" };
        world.rewrite(&[(id, entry("modern"))]);
        let error = dying.await.unwrap().unwrap_err();
        match is_gone {
            true => assert!(matches!(error, Error::NoServer { .. }), "{error}"),
            false => assert!(matches!(error, Error::Outdated { .. }), "{error}"),
        }
        assert_eq!(processes(&path).len(), 1, "it was started again");
        world.orchestrator.close().await;
    }
}
