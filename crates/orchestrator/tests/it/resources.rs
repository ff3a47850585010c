//! Resources: read, and followed across the lives of connections.

use orchestrator::Error;
use orchestrator::pool::Event;
use serde_json::json;

use crate::world::{World, event, log, methods, stdio, until};

fn world(more: &[&str]) -> (World, std::path::PathBuf) {
    let world = World::new(&[]);
    let path = world.path("log");
    let mut arguments = vec!["--log", path.to_str().unwrap()];
    arguments.extend(more);
    world.rewrite(&[("test", stdio(&arguments))]);
    (world, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_is_read_as_it_is() {
    for era in ["legacy", "modern"] {
        let (world, _) = world(&["--era", era]);
        let read = world.orchestrator.read("test", "test://a").await.unwrap();
        assert_eq!(read["contents"], json!([{"uri": "test://a", "text": "of it", "extra": true}]));
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_are_told_until_nobody_wants_them() {
    for era in ["legacy", "modern"] {
        let (world, path) = world(&["--era", era]);
        let mut events = world.orchestrator.events();
        let orchestrator = &world.orchestrator;
        orchestrator.subscribe("test", "test://a").await.unwrap();
        orchestrator.subscribe("test", "test://a").await.unwrap();
        orchestrator.subscribe("test", "test://b").await.unwrap();
        let counts = world.text("counts", json!({})).await;
        assert!(counts.contains(r#"["test://a","test://b"]"#), "{counts}");
        world.call("update", json!({"uri": "test://a"})).await.unwrap();
        let updated = event(&mut events, |event| matches!(event, Event::Updated { .. })).await;
        assert_eq!(
            updated,
            Event::Updated { server: "test".to_owned(), uri: "test://a".to_owned() }
        );
        // The second one still wants to hear.
        orchestrator.unsubscribe("test", "test://a").await.unwrap();
        assert!(world.text("counts", json!({})).await.contains("test://a"));
        orchestrator.unsubscribe("test", "test://a").await.unwrap();
        let mut counts = String::from("test://a");
        while counts.contains("test://a") {
            counts = world.text("counts", json!({})).await;
        }
        assert!(counts.contains("test://b"), "{counts}");
        // One request that says all, or one each.
        let subscribing =
            methods(&path).iter().filter(|method| *method == "resources/subscribe").count();
        assert_eq!(subscribing, if era == "legacy" { 2 } else { 0 });
        orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_made_anew_for_those_who_listen() {
    for era in ["legacy", "modern"] {
        let (world, path) = world(&["--era", era]);
        let mut events = world.orchestrator.events();
        world.orchestrator.subscribe("test", "test://a").await.unwrap();
        let _ = world.call("die", json!({})).await.unwrap_err();
        event(&mut events, |event| matches!(event, Event::Gone { .. })).await;
        event(&mut events, |event| matches!(event, Event::Connected { .. })).await;
        let is_told = |line: &serde_json::Value| {
            line["params"]["uri"] == "test://a"
                || line["params"]["notifications"]["resourceSubscriptions"] == json!(["test://a"])
        };
        until("it is told again", || log(&path).iter().filter(|line| is_told(line)).count() == 2)
            .await;
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_agree_is_not_believed() {
    for hostile in ["agrees-to-nothing", "knows-no-listening"] {
        let (world, _) = world(&["--era", "modern", "--hostile", hostile]);
        let error = world.orchestrator.subscribe("test", "test://a").await.unwrap_err();
        assert!(matches!(error, Error::NotOffered { .. }), "{error}");
        world.orchestrator.close().await;
    }
}
