//! Very many calls at the same time, through one orchestrator. In a process of its own, so that its memory is theirs.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "what it took is worth knowing")]
#![cfg(target_os = "linux")]

#[path = "hostile/left.rs"]
mod left;
#[path = "../../process_guard/tests/guard/processes.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod processes;
#[path = "it/world.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod world;

use std::time::Duration;

use left::Has;
use orchestrator::{Call, CallResult, Error};
use processes::Mark;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use world::{FOR_EVER, World, call, stdio};

const SERVERS: usize = 10;
const CALLS_EACH: usize = 100;
/// So many calls of one server may wait; more are refused.
const WAITING_MAX: usize = 256;
const TOO_MANY_EACH: usize = 300;
/// What all of it may take, at its peak and when it is over: 6,000 calls, of which 2,560 wait at the same time.
const MEMORY_PEAK_MAX: u64 = 128 * 1024 * 1024;
const MEMORY_KEPT_MAX: u64 = 96 * 1024 * 1024;
/// The same for the second time, when what the allocator keeps is there already.
const MEMORY_MORE_MAX: u64 = 32 * 1024 * 1024;

type Called = JoinSet<(String, Result<CallResult, Error>)>;

fn start(world: &World, calls: &mut Called, text: String, call: Call) {
    let orchestrator = world.orchestrator.clone();
    calls.spawn(async move { (text, orchestrator.call(call).await) });
}

fn id(server: usize) -> String {
    format!("server-{server}")
}

/// Each server answers when all calls wait there, the last one first.
async fn all_are_answered(world: &World) {
    let mut calls = Called::new();
    let begin = |calls: &mut Called, server: usize, number: usize| {
        let text = format!("{server}/{number}");
        let arguments = json!({"text": text, "of": CALLS_EACH});
        start(world, calls, text, call(&id(server), "out_of_order", arguments));
    };
    for number in 1..CALLS_EACH {
        (0..SERVERS).for_each(|server| begin(&mut calls, server, number));
    }
    let early = tokio::time::timeout(Duration::from_millis(500), calls.join_next()).await;
    assert!(early.is_err(), "{early:?}");
    (0..SERVERS).for_each(|server| begin(&mut calls, server, 0));
    let answered = tokio::time::timeout(FOR_EVER, calls.join_all()).await.unwrap();
    assert_eq!(answered.len(), SERVERS * CALLS_EACH);
    for (text, result) in answered {
        assert_eq!(result.unwrap().raw["content"][0]["text"], text);
    }
}

/// What is too much is refused at once, and the rest waits.
async fn too_many_are_refused(world: &World) {
    let mut calls = Called::new();
    for _ in 0..TOO_MANY_EACH {
        for server in 0..SERVERS {
            start(world, &mut calls, String::new(), call(&id(server), "never", json!({})));
        }
    }
    for _ in 0..SERVERS * (TOO_MANY_EACH - WAITING_MAX) {
        let refused = tokio::time::timeout(FOR_EVER, calls.join_next()).await.unwrap();
        let (_, result) = refused.unwrap().unwrap();
        assert!(matches!(result, Err(Error::Busy { in_flight: WAITING_MAX, .. })), "{result:?}");
    }
    assert_eq!(calls.len(), SERVERS * WAITING_MAX);
    calls.shutdown().await;
    // There is room again, and nothing of it is left over there.
    all_are_answered(world).await;
}

#[test]
fn a_thousand_calls_over_ten_servers() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().worker_threads(2).thread_keep_alive(Duration::from_millis(10));
    let runtime = runtime.build().unwrap();
    let mark = Mark::new();
    let (name, value) = mark.variable();
    let entry = |_| {
        let mut entry = stdio(&["--era", "legacy"]);
        entry["timeoutMs"] = json!(FOR_EVER.as_millis() as u64);
        entry["mcp"]["env"] = json!({name.clone(): value});
        entry
    };
    let entries: Vec<Value> = (0..SERVERS).map(entry).collect();
    let play = async |rounds: usize| {
        let ids: Vec<String> = (0..SERVERS).map(id).collect();
        let servers: Vec<(&str, Value)> =
            ids.iter().map(String::as_str).zip(entries.iter().cloned()).collect();
        let world = World::new(&servers);
        for id in &ids {
            world.orchestrator.tools(id).await.unwrap();
        }
        for _ in 0..rounds {
            all_are_answered(&world).await;
            too_many_are_refused(&world).await;
        }
        world.orchestrator.close().await;
    };
    // What is made once is made now.
    runtime.block_on(play(0));
    for kept_max in [MEMORY_KEPT_MAX, MEMORY_MORE_MAX] {
        let before = Has::before();
        runtime.block_on(play(1));
        before.assert_nothing_is_left(&mark, kept_max, MEMORY_PEAK_MAX);
    }
}
