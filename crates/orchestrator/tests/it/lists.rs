//! Lists: all pages of them, kept until they change, and no longer than they are said to live.

use orchestrator::Error;
use orchestrator::pool::{Event, Kind};
use serde_json::json;

use crate::world::{World, event, methods, stdio};

fn world(more: &[&str]) -> (World, std::path::PathBuf) {
    let world = World::new(&[]);
    let path = world.path("log");
    let mut arguments = vec!["--log", path.to_str().unwrap()];
    arguments.extend(more);
    world.rewrite(&[("test", stdio(&arguments))]);
    (world, path)
}

fn lists(path: &std::path::Path) -> usize {
    methods(path).iter().filter(|method| *method == "tools/list").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_are_read() {
    let (world, path) = world(&["--more-tools", "500", "--page", "50"]);
    let tools = world.orchestrator.tools("test").await.unwrap();
    assert!(tools.get("more-499").is_some() && tools.get("echo").is_some());
    assert!(tools.notes.is_empty(), "{:?}", tools.notes);
    assert_eq!(lists(&path), tools.tools.len().div_ceil(50));
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_kept_until_it_changes() {
    for era in ["legacy", "modern"] {
        let (world, path) = world(&["--era", era]);
        let mut events = world.orchestrator.events();
        for _ in 0..3 {
            world.orchestrator.tools("test").await.unwrap();
            world.call("echo", json!({"text": "a"})).await.unwrap();
        }
        assert_eq!(lists(&path), 1);
        if era == "modern" {
            crate::world::until("it listens", || {
                methods(&path).contains(&"subscriptions/listen".to_owned())
            })
            .await;
        }
        world.call("change", json!({"name": "new-one"})).await.unwrap();
        event(&mut events, |event| matches!(event, Event::Changed { list: Kind::Tools, .. })).await;
        assert!(world.orchestrator.tools("test").await.unwrap().get("new-one").is_some());
        assert_eq!(lists(&path), 2);
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_lives_as_long_as_it_says() {
    let (world, path) = world(&["--ttl", "0"]);
    for count in 1..4 {
        world.orchestrator.tools("test").await.unwrap();
        assert_eq!(lists(&path), count);
    }
    world.orchestrator.close().await;
    let (world, path) = self::world(&["--ttl", "3600000"]);
    for _ in 0..3 {
        world.orchestrator.tools("test").await.unwrap();
    }
    assert_eq!(lists(&path), 1);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_want_a_list_fetch_it_once() {
    let (world, path) = world(&["--list-delay", "300"]);
    let mut wanting = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let orchestrator = world.orchestrator.clone();
        wanting.spawn(async move { orchestrator.tools("test").await });
    }
    assert!(wanting.join_all().await.iter().all(Result::is_ok));
    assert_eq!(lists(&path), 1);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_without_an_end_are_cut_with_a_note() {
    for (hostile, note) in [("endless-pages", "does not end"), ("circular-pages", "begin anew")] {
        let (world, _) = world(&["--hostile", hostile]);
        let tools = world.orchestrator.tools("test").await.unwrap();
        assert!(tools.notes.iter().any(|told| told.contains(note)), "{:?}", tools.notes);
        assert!(!tools.tools.is_empty() && tools.tools.len() <= 10_000);
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_very_long_list_is_cut_with_a_note() {
    let (world, _) = world(&["--more-tools", "200000"]);
    let tools = world.orchestrator.tools("test").await.unwrap();
    assert_eq!(tools.tools.len(), 10_000);
    assert!(tools.notes.iter().any(|told| told.contains("10000")), "{:?}", tools.notes);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_lists_are_as_the_server_words_them() {
    for era in ["legacy", "modern"] {
        let (world, _) = world(&["--era", era]);
        let resources = world.orchestrator.resources("test").await.unwrap();
        assert_eq!(resources.items[1].text(), r#"{"name":"b","uri":"test://b","x":1}"#);
        let templates = world.orchestrator.templates("test").await.unwrap();
        assert_eq!(templates.items.len(), 1);
        let prompts = world.orchestrator.prompts("test").await.unwrap();
        assert_eq!(prompts.items[0].text(), r#"{"name":"p"}"#);
        world.orchestrator.close().await;
    }
    let (world, _) = world(&["--hostile", "sloppy", "--era", "legacy"]);
    let error = world.orchestrator.prompts("test").await.unwrap_err();
    assert!(matches!(error, Error::NotOffered { what: "prompts", .. }), "{error}");
    world.orchestrator.close().await;
}
