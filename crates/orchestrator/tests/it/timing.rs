//! Deadlines, what extends them, and what happens when they pass or when a caller goes.

use std::time::Duration;

use orchestrator::Error;
use serde_json::json;

use crate::world::{World, and, call, log, methods, processes, stdio, until};

const SHORT: Duration = Duration::from_millis(300);

fn logged(world: &World, more: &[&str]) -> std::path::PathBuf {
    let path = world.path("log");
    let mut arguments = vec!["--log", path.to_str().unwrap()];
    arguments.extend(more);
    world.rewrite(&[("test", stdio(&arguments))]);
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_given_up() {
    for era in ["legacy", "modern"] {
        let world = World::new(&[]);
        let path = logged(&world, &["--era", era]);
        world.call("echo", json!({"text": "a"})).await.unwrap();
        let late = world
            .call_with("never", json!({}), |call| call.timeout = Some(SHORT))
            .await
            .unwrap_err();
        assert!(matches!(late, Error::Timeout { .. }), "{late}");
        assert!(late.to_string().starts_with("Request timeout"), "{late}");
        until("the server hears of it", || {
            methods(&path).contains(&"notifications/cancelled".to_owned())
        })
        .await;
        let log = log(&path);
        let call = log.iter().find(|line| line["params"]["name"] == "never").unwrap();
        let cancelled =
            log.iter().find(|line| line["method"] == "notifications/cancelled").unwrap();
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
        // It is asked whether it is alive, says so, and goes on.
        let sign = if era == "legacy" { "ping" } else { "server/discover" };
        until("a sign of life is wanted", || {
            methods(&path).iter().skip(4).any(|method| method == sign)
        })
        .await;
        world.call("echo", json!({"text": "a"})).await.unwrap();
        assert_eq!(processes(&path).len(), 1);
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_sign_of_life_is_ended_and_started_anew() {
    let world = World::new(&[]);
    let path = logged(&world, &[]);
    world.call("echo", json!({"text": "a"})).await.unwrap();
    let late = world
        .call_with("hang_all", json!({}), |call| call.timeout = Some(SHORT))
        .await
        .unwrap_err();
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    let process = processes(&path)[0];
    until("it is ended", || !crate::world::is_alive(process)).await;
    world.call("echo", json!({"text": "a"})).await.unwrap();
    assert_eq!(processes(&path).len(), 2);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_reads_nothing_harms_nobody() {
    let world = World::new(&[]);
    let path = logged(&world, &[]);
    world.call("echo", json!({"text": "a"})).await.unwrap();
    let stuck = world.call_with("hang_all", json!({}), |call| call.timeout = Some(SHORT));
    let asked = || methods(&path).iter().filter(|method| *method == "tools/call").count();
    let large = async {
        until("it reads nothing any more", || asked() == 2).await;
        // More than a pipe has room for.
        let text = "x".repeat(1_000_000);
        world.call_with("echo", json!({"text": text}), |call| call.timeout = Some(SHORT)).await
    };
    let (stuck, large) = tokio::join!(stuck, large);
    assert!(matches!(stuck, Err(Error::Timeout { .. })), "{stuck:?}");
    assert!(matches!(large, Err(Error::Timeout { .. })), "{large:?}");
    let process = processes(&path)[0];
    until("it is ended", || !crate::world::is_alive(process)).await;
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_extends_the_time_up_to_a_total() {
    let world = World::with(&[("test", stdio(&[]))], |options| {
        options.total_limit = Duration::from_secs(5)
    });
    world.orchestrator.tools("test").await.unwrap();
    let patient = |call: &mut orchestrator::Call| call.timeout = Some(Duration::from_millis(1_500));
    // Three seconds in steps of a hundredth: no step is late, and all together are.
    world.call_with("slow", json!({"ms": 3_000, "progress": 29}), patient).await.unwrap();
    let late =
        world.call_with("slow", json!({"ms": 60_000, "progress": 299}), patient).await.unwrap_err();
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    let late = world.call_with("slow", json!({"ms": 3_000}), patient).await.unwrap_err();
    assert!(matches!(late, Error::Timeout { .. }), "{late}");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_cancels_the_call() {
    let world = World::new(&[]);
    let path = logged(&world, &[]);
    world.orchestrator.tools("test").await.unwrap();
    let cancelled = |count: usize| {
        let path = path.clone();
        move || {
            methods(&path).iter().filter(|method| *method == "notifications/cancelled").count()
                == count
        }
    };
    // By dropping the future.
    let asked = || methods(&path).iter().filter(|method| *method == "tools/call").count();
    tokio::select! {
        _ = world.call("never", json!({})) => unreachable!("it never answers"),
        () = until("it is asked", || asked() == 1) => {}
    }
    until("it is cancelled", cancelled(1)).await;
    // By the token.
    let mut never = call("test", "never", json!({}));
    let token = tokio_util::sync::CancellationToken::new();
    never.cancelled = token.clone();
    let (result, ()) = tokio::join!(world.orchestrator.call(never), async {
        until("it is asked", || asked() == 2).await;
        token.cancel();
    });
    assert!(matches!(result, Err(Error::Cancelled { .. })));
    until("it is cancelled", cancelled(2)).await;
    // Nobody doubts a server because of that.
    assert!(!methods(&path).contains(&"ping".to_owned()));
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_counts_too() {
    let entry = and(stdio(&["--hostile", "never-initializes"]), json!({"timeoutMs": 500}));
    let world = World::new(&[("test", entry)]);
    let late = world.call("echo", json!({"text": "a"})).await.unwrap_err();
    insta::assert_snapshot!(
        late.to_string().split(" within").next().unwrap(),
        @"Request timeout: `test` did not get ready"
    );
    world.orchestrator.close().await;
}
