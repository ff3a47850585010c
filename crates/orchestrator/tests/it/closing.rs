//! The end: nothing is left, whoever is stubborn.

use orchestrator::Error;
use serde_json::json;

use crate::world::{World, call, is_alive, processes, stdio, until};

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_every_process() {
    let world = World::new(&[]);
    let path = world.path("log");
    let name = path.to_str().unwrap();
    world.rewrite(&[
        ("one", stdio(&["--log", name])),
        ("two", stdio(&["--log", name])),
        ("stubborn", stdio(&["--log", name, "--hostile", "stubborn"])),
    ]);
    for server in ["one", "two", "stubborn"] {
        world.orchestrator.ping(server).await.unwrap();
    }
    let processes = processes(&path);
    assert_eq!(processes.len(), 3);
    assert!(processes.iter().all(|process| is_alive(*process)));
    let waiting = tokio::spawn({
        let orchestrator = world.orchestrator.clone();
        async move { orchestrator.call(call("one", "never", json!({}))).await }
    });
    until("it is asked", || crate::world::methods(&path).contains(&"tools/call".to_owned())).await;
    world.orchestrator.close().await;
    assert!(processes.iter().all(|process| !is_alive(*process)));
    let waited = waiting.await.unwrap();
    assert!(matches!(waited, Err(Error::Transport { .. })), "{waited:?}");
    let error = world.orchestrator.ping("one").await.unwrap_err();
    assert_eq!(error, Error::Closed);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_what_is_being_connected() {
    let world = World::new(&[]);
    let path = world.path("log");
    world.rewrite(&[(
        "test",
        stdio(&["--log", path.to_str().unwrap(), "--hostile", "never-initializes"]),
    )]);
    let waiting = tokio::spawn({
        let orchestrator = world.orchestrator.clone();
        async move { orchestrator.ping("test").await }
    });
    until("it is started", || processes(&path).len() == 1).await;
    world.orchestrator.close().await;
    assert!(waiting.await.unwrap().is_err());
    let process = processes(&path)[0];
    until("it has ended", || !is_alive(process)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_orchestrator_ends_every_process() {
    let world = World::new(&[]);
    let path = world.path("log");
    world.rewrite(&[("test", stdio(&["--log", path.to_str().unwrap()]))]);
    world.orchestrator.subscribe("test", "test://a").await.unwrap();
    let World { orchestrator, folder, .. } = world;
    drop(orchestrator);
    let process = processes(&path)[0];
    until("it has ended", || !is_alive(process)).await;
    drop(folder);
}

#[test]
fn a_runtime_that_goes_leaves_no_process() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (world, path) = runtime.block_on(async {
        let world = World::new(&[]);
        let path = world.path("log");
        world.rewrite(&[("test", stdio(&["--log", path.to_str().unwrap()]))]);
        world.orchestrator.ping("test").await.unwrap();
        (world, path)
    });
    runtime.shutdown_background();
    let process = processes(&path)[0];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(until("it has ended", || !is_alive(process)));
    drop(world);
}
