//! Who may call what, with which arguments, and how often: decided before anything is sent.

use orchestrator::{Answer, AskedBy, Error, Wanted};
use serde_json::{Map, Value, json};

use crate::world::{Says, World, and, call, methods, stdio};

#[tokio::test(flavor = "multi_thread")]
async fn names_that_do_not_exist_are_answered_with_those_that_do() {
    let world = World::new(&[("test", stdio(&[])), ("other", stdio(&[]))]);
    let error = world.orchestrator.call(call("tets", "echo", json!({}))).await.unwrap_err();
    insta::assert_snapshot!(error, @"there is no server `tets` in the registry; did you mean `test`?");
    let error = world.call("ehco", json!({})).await.unwrap_err();
    insta::assert_snapshot!(error, @"`test` has no tool `ehco`; did you mean `echo`?");
    let error = world.call("xyzzy", json!({})).await.unwrap_err();
    insta::assert_snapshot!(error, @"`test` has no tool `xyzzy`; describe the server to see its tools");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_checked_before_anything_is_sent() {
    let world = World::new(&[]);
    let path = world.path("log");
    world.rewrite(&[("test", stdio(&["--log", path.to_str().unwrap()]))]);
    let error = world.call("echo", json!({"text": 5})).await.unwrap_err();
    let Error::Arguments { problems, .. } = &error else { panic!("{error}") };
    assert_eq!(problems[0].pointer, "/text");
    assert!(world.call("slow", json!({})).await.unwrap_err().to_string().contains("`ms`"));
    assert!(!methods(&path).contains(&"tools/call".to_owned()));
    world.orchestrator.close().await;
}

/// Every step down the schema is taken twice: 2⁴⁰ evaluations.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_take_too_much_work_are_not_sent() {
    let world = World::new(&[]);
    let path = world.path("log");
    let arguments = ["--hostile", "lies", "--log", path.to_str().unwrap()];
    world.rewrite(&[("test", stdio(&arguments))]);
    let error = world.call("in_for_ever", json!({"a": 1})).await.unwrap_err();
    insta::assert_snapshot!(error, @"`test.in_for_ever` was not called: checking its arguments takes more work than one call may cause");
    assert!(!methods(&path).contains(&"tools/call".to_owned()));
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_are_denied_are_not_there() {
    let entry =
        and(stdio(&[]), json!({"tools": {"allow": ["e*", "slow"], "deny": ["environment"]}}));
    let world = World::new(&[("test", entry)]);
    let tools = world.orchestrator.tools("test").await.unwrap();
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo", "slow"]);
    for tool in ["environment", "fail"] {
        let error = world.call(tool, json!({})).await.unwrap_err();
        assert!(matches!(error, Error::Denied(_)), "{error}");
    }
    // A change of the rules counts at once, and needs no other process.
    world.rewrite(&[("test", stdio(&[]))]);
    world.call("environment", json!({})).await.unwrap();
    assert!(world.orchestrator.tools("test").await.unwrap().get("environment").is_some());
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sensitive_call_is_confirmed() {
    let entry = and(stdio(&[]), json!({"sensitivity": "medium"}));
    let world = World::new(&[("test", entry)]);
    let error = world.call("destroy", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("alwaysAllow"), "{error}");
    let no = Says::new(Answer::Declined);
    let error = world
        .call_with("destroy", json!({}), |call| call.asker = Some(no.clone()))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotConfirmed { .. }), "{error}");
    let yes = Says::yes();
    world
        .call_with("destroy", json!({"a": 1}), |call| call.asker = Some(yes.clone()))
        .await
        .unwrap();
    let forms = yes.forms();
    let arguments: Map<String, Value> = serde_json::from_value(json!({"a": 1})).unwrap();
    assert_eq!(forms[0].wanted, Wanted::Confirmation { tool: "destroy".to_owned(), arguments });
    // A person is not asked about their own call, and nobody about a tool that destroys nothing.
    world.call_with("destroy", json!({}), |call| call.asked_by = AskedBy::Person).await.unwrap();
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_calls_a_minute_are_refused() {
    let world = World::new(&[("test", and(stdio(&[]), json!({"maxCallsPerMinute": 3})))]);
    for _ in 0..3 {
        world.call("echo", json!({"text": "a"})).await.unwrap();
    }
    let error = world.call("echo", json!({"text": "a"})).await.unwrap_err();
    let Error::TooMany { exceeded, .. } = &error else { panic!("{error}") };
    assert!(error.retryable() && exceeded.wait.is_some());
    // What is wrong anyway is not counted, and what is no call either.
    assert!(matches!(world.call("echo", json!({})).await, Err(Error::Arguments { .. })));
    world.orchestrator.ping("test").await.unwrap();
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_asked_too_much_at_a_time_is_busy() {
    let world = World::new(&[("test", stdio(&[]))]);
    world.orchestrator.tools("test").await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..300 {
        let orchestrator = world.orchestrator.clone();
        calls.spawn(
            async move { orchestrator.call(call("test", "slow", json!({"ms": 2_000}))).await },
        );
    }
    let results = calls.join_all().await;
    let busy = results.iter().filter(|result| matches!(result, Err(Error::Busy { .. }))).count();
    let done = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!((busy, done), (300 - 256, 256));
    world.call("echo", json!({"text": "a"})).await.unwrap();
    world.orchestrator.close().await;
}
