//! Servers that do not keep to the protocol. Nothing of it may harm a caller who keeps to it.

use std::time::Duration;

use orchestrator::Error;
use serde_json::json;

use crate::world::{World, call, is_alive, processes, stdio, until};

#[tokio::test(flavor = "multi_thread")]
async fn noise_between_the_answers_is_skipped() {
    for hostile in ["garbage", "twice", "wrong-ids", "text-ids", "floods-stderr"] {
        for era in ["legacy", "modern"] {
            let world = World::new(&[("test", stdio(&["--era", era, "--hostile", hostile]))]);
            for number in 0..20 {
                let text = number.to_string();
                assert_eq!(world.text("echo", json!({"text": text})).await, text, "{hostile}");
            }
            world.orchestrator.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_harm_nobody() {
    for hostile in ["floods-requests", "floods-notifications"] {
        let world = World::new(&[
            ("test", stdio(&["--era", "legacy", "--hostile", hostile])),
            ("good", stdio(&[])),
        ]);
        // Whether it answers in between is its own affair.
        let answered =
            tokio::time::timeout(Duration::from_secs(3), world.call("echo", json!({"text": "a"})));
        let answered = answered.await;
        assert!(!matches!(answered, Ok(Err(Error::Protocol { .. }))), "{answered:?}");
        world.orchestrator.call(call("good", "echo", json!({"text": "a"}))).await.unwrap();
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_from_somebody_who_does_not_listen_is_ended() {
    let world = World::new(&[]);
    let path = world.path("log");
    let arguments = ["--era", "legacy", "--hostile", "deaf-flood", "--log", path.to_str().unwrap()];
    world.rewrite(&[("test", stdio(&arguments))]);
    let late = world.call_with("echo", json!({"text": "a"}), |call| {
        call.timeout = Some(Duration::from_secs(1))
    });
    let late = late.await.unwrap_err();
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    let process = processes(&path)[0];
    until("it has ended", || !is_alive(process)).await;
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_wait_for_ten_servers() {
    let ids: Vec<String> = (0..10).map(|number| format!("server-{number}")).collect();
    let servers: Vec<_> = ids.iter().map(|id| (id.as_str(), stdio(&[]))).collect();
    let world = World::new(&servers);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..1_000 {
        let (orchestrator, id) = (world.orchestrator.clone(), ids[number % 10].clone());
        calls
            .spawn(async move { orchestrator.call(call(&id, "slow", json!({"ms": 1_000}))).await });
    }
    for result in calls.join_all().await {
        assert_eq!(result.unwrap().raw["content"][0]["text"], "done");
    }
    world.orchestrator.close().await;
}
