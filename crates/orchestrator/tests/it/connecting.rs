//! One connection for all, made when needed, anew when lost, and in the way that the server speaks.

use std::time::Duration;

use orchestrator::{Error, Open};
use serde_json::json;

use crate::world::{World, and, call, methods, processes, stdio, until};

fn world(more: &[&str]) -> (World, std::path::PathBuf) {
    let world = World::new(&[]);
    let path = world.path("log");
    let mut arguments = vec!["--log", path.to_str().unwrap()];
    arguments.extend(more);
    world.rewrite(&[("test", stdio(&arguments))]);
    (world, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_calls_at_once_start_one_process() {
    let (world, path) = world(&["--start-delay", "300"]);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let orchestrator = world.orchestrator.clone();
        calls.spawn(
            async move { orchestrator.call(call("test", "echo", json!({"text": "a"}))).await },
        );
    }
    assert!(calls.join_all().await.iter().all(Result::is_ok));
    assert_eq!(processes(&path).len(), 1);
    let lists = methods(&path).iter().filter(|method| *method == "tools/list").count();
    assert_eq!(lists, 1);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_server_speaks_is_found_out_once() {
    for era in ["legacy", "modern"] {
        let (world, path) = world(&["--era", era]);
        world.call("echo", json!({"text": "a"})).await.unwrap();
        let first = methods(&path);
        let _ = world.call("die", json!({})).await.unwrap_err();
        world.call("echo", json!({"text": "a"})).await.unwrap();
        let second: Vec<String> = methods(&path).into_iter().skip(first.len()).collect();
        let handshake = |methods: &[String]| {
            let is_handshake =
                |method: &&String| ["initialize", "server/discover"].contains(&method.as_str());
            methods.iter().filter(is_handshake).cloned().collect::<Vec<_>>()
        };
        let (expected, again) = match era {
            "legacy" => (vec!["server/discover", "initialize"], vec!["initialize"]),
            _ => (vec!["server/discover"], vec!["server/discover"]),
        };
        assert_eq!(handshake(&first), expected);
        assert_eq!(handshake(&second), again);
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_know_the_modern_way_are_reached_all_the_same() {
    for hostile in ["ignores-discover", "dies-of-discover", "answers-anything", "sloppy"] {
        let (world, _) = world(&["--era", "legacy", "--hostile", hostile]);
        assert_eq!(world.text("echo", json!({"text": "a"})).await, "a", "{hostile}");
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_server_that_is_slow_to_start_is_reached_without_another_process() {
    let (world, path) = world(&["--era", "modern", "--start-delay", "4000"]);
    assert_eq!(world.text("echo", json!({"text": "a"})).await, "a");
    assert_eq!(world.orchestrator.info("test").await.unwrap().revision, "2026-07-28");
    assert_eq!(processes(&path).len(), 1);
    assert!(!methods(&path).contains(&"notifications/initialized".to_owned()));
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_process_says_its_last_words_and_is_started_anew() {
    let (world, path) = world(&[]);
    let error = world.call("die", json!({"status": 7, "secret": "x"})).await.unwrap_err();
    let Error::Transport { why, sent, .. } = &error else { panic!("{error}") };
    assert!(*sent);
    assert!(why.contains("status 7") && why.contains("out of memory, or so"), "{why}");
    world.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(processes(&path).len(), 2);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_wait_hear_of_a_death_and_it_counts_once() {
    let (world, _) = world(&[]);
    world.orchestrator.tools("test").await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let orchestrator = world.orchestrator.clone();
        calls.spawn(async move { orchestrator.call(call("test", "never", json!({}))).await });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let _ = world.call("die", json!({})).await.unwrap_err();
    for result in calls.join_all().await {
        assert!(matches!(result, Err(Error::Transport { .. })), "{result:?}");
    }
    // The breaker is not open: that was one failure.
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_is_said_at_once() {
    let missing = json!({"mcp": {"transport": "stdio", "command": "no-such-program-anywhere"}});
    let dying = stdio(&["--hostile", "dies-at-once"]);
    let future = stdio(&["--era", "legacy", "--hostile", "from-the-future"]);
    let world = World::new(&[("missing", missing), ("dying", dying), ("future", future)]);
    let error = world.orchestrator.ping("missing").await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().contains("no-such-program-anywhere"), "{error}");
    let error = world.orchestrator.ping("dying").await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(
        error.to_string().contains("status 3") && error.to_string().contains("no configuration"),
        "{error}"
    );
    let error = world.orchestrator.ping("future").await.unwrap_err();
    assert!(error.to_string().contains("2099-01-01"), "{error}");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_server_does_not_delay_another() {
    let world = World::new(&[
        ("silent", stdio(&["--hostile", "never-initializes"])),
        ("dying", stdio(&["--hostile", "dies-at-once"])),
        ("good", stdio(&[])),
    ]);
    let mut bad = tokio::task::JoinSet::new();
    for server in ["silent", "dying"] {
        for _ in 0..20 {
            let orchestrator = world.orchestrator.clone();
            bad.spawn(async move {
                orchestrator.call(call(server, "echo", json!({"text": "a"}))).await
            });
        }
    }
    for _ in 0..20 {
        world.orchestrator.call(call("good", "echo", json!({"text": "a"}))).await.unwrap();
    }
    assert!(!bad.is_empty());
    bad.abort_all();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_again_and_again_is_left_alone_for_a_while() {
    let (world, path) = world(&[]);
    world.orchestrator.tools("test").await.unwrap();
    let mut errors = Vec::new();
    for _ in 0..6 {
        errors.push(world.call("die", json!({})).await.unwrap_err());
    }
    let last = errors.last().unwrap();
    let Error::Open { open: Open::Resting { wait }, .. } = last else { panic!("{last}") };
    assert!(last.retryable());
    assert_eq!(processes(&path).len(), 5);
    // It is tried again then.
    tokio::time::sleep(*wait).await;
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_changes_is_another_server() {
    let (world, path) = world(&[]);
    world.call("echo", json!({"text": "a"})).await.unwrap();
    let first = processes(&path)[0];
    let arguments = ["--log", path.to_str().unwrap(), "--name", "second"];
    // Only its rules: the process stays.
    world.rewrite(&[("test", and(stdio(&arguments[..2]), json!({"timeoutMs": 20_000})))]);
    world.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(processes(&path).len(), 1);
    world.rewrite(&[("test", stdio(&arguments))]);
    world.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(processes(&path).len(), 2);
    until("the first one has ended", || !crate::world::is_alive(first)).await;
    // Gone from the registry: gone.
    world.rewrite(&[("other", stdio(&[]))]);
    let error = world.call("echo", json!({"text": "a"})).await.unwrap_err();
    assert!(matches!(error, Error::NoServer { .. }), "{error}");
    let second = processes(&path)[1];
    until("the second one has ended", || !crate::world::is_alive(second)).await;
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_goes_on_after_the_first_caller_gave_up() {
    let (world, path) = world(&["--start-delay", "1500"]);
    let impatient = world.call_with("echo", json!({"text": "a"}), |call| {
        call.timeout = Some(Duration::from_millis(200));
    });
    assert!(matches!(impatient.await, Err(Error::Timeout { .. })));
    world.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(processes(&path).len(), 1);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_has_an_end() {
    let entry = stdio(&["--hostile", "never-initializes"]);
    let world = World::with(&[("test", entry)], |options| {
        options.connect_limit = Duration::from_millis(800)
    });
    // No time is left for another attempt.
    let patient = |call: &mut orchestrator::Call| call.timeout = Some(Duration::from_millis(1_700));
    let error = world.call_with("echo", json!({"text": "a"}), patient).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().contains("handshake"), "{error}");
    world.orchestrator.close().await;
}
