//! Results: as they were sent, checked, and cut where they are too large.

use orchestrator::{Error, Party};
use serde_json::json;

use crate::world::{World, stdio};

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_what_the_server_sent() {
    for era in ["legacy", "modern"] {
        let world = World::new(&[("test", stdio(&["--era", era]))]);
        let result = world.call("all_content", json!({})).await.unwrap();
        let text = serde_json::to_string(&result.raw).unwrap();
        insta::allow_duplicates!(
            insta::assert_snapshot!(text, @r#"{"_meta":{"example.com/trace":"x"},"content":[{"annotations":{"priority":0.5},"text":"t","type":"text","unknown":[1]},{"data":"AAAA","mimeType":"image/png","type":"image"},{"data":"AAAA","mimeType":"audio/wav","type":"audio"},{"resource":{"_meta":{"m":1},"text":"a","uri":"test://a"},"type":"resource"},{"name":"b","type":"resource_link","uri":"test://b"},{"exact":1.5,"points":[[1,2,3]],"type":"hologram"}],"future":{"field":true},"resultType":"complete","structuredContent":null}"#)
        );
        assert!(result.warnings.is_empty());
        world.orchestrator.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn promises_that_are_not_kept_are_told_and_the_result_stays() {
    let world = World::new(&[("test", stdio(&[]))]);
    let result = world.call("lies", json!({})).await.unwrap();
    assert_eq!(result.raw["structuredContent"]["count"], "many");
    assert!(result.warnings[0].contains("/count"), "{:?}", result.warnings);
    let result = world.call("silent", json!({})).await.unwrap();
    assert!(result.warnings[0].contains("no `structuredContent`"), "{:?}", result.warnings);
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_is_cut_and_kept_whole() {
    let world = World::with(&[("test", stdio(&[]))], |options| options.result_limit = 10_000);
    let result = world.call("big", json!({"bytes": 9_000})).await.unwrap();
    assert!(result.kept.is_none() && result.warnings.is_empty());
    let result = world.call("big", json!({"bytes": 1_000_000})).await.unwrap();
    let kept = result.kept.clone().unwrap();
    assert!(result.raw.to_string().len() < 11_000);
    let word = result.raw["content"][0]["text"].as_str().unwrap();
    assert!(word.contains(&kept.uri) && word.contains(&kept.bytes.to_string()), "{word}");
    assert!(word.contains(&kept.first_part()), "{word}");
    assert!(result.warnings[0].contains(&kept.uri));
    let whole: serde_json::Value = serde_json::from_str(
        &world.orchestrator.kept(&Party::alone(), &kept.uri).await.unwrap().text,
    )
    .unwrap();
    assert_eq!(whole["content"][0]["text"].as_str().unwrap().len(), 1_000_000);
    let error = world.orchestrator.kept(&Party::alone(), "mcp-kept:0123").await.unwrap_err();
    assert!(matches!(error, Error::NotKept { .. }), "{error}");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_mebibytes_pass_and_what_is_larger_is_refused_clearly() {
    let world = World::new(&[("test", stdio(&[]))]);
    let result = world.call("big", json!({"bytes": 50 * 1024 * 1024})).await.unwrap();
    assert!(result.kept.unwrap().bytes > 50 * 1024 * 1024);
    for id_last in [false, true] {
        let waiting = world.call("slow", json!({"ms": 3_000}));
        let large = world.call("too_long", json!({"idLast": id_last}));
        let (waiting, large) = tokio::join!(waiting, large);
        assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
        // It is known whom it concerns, and nobody else loses anything.
        waiting.unwrap();
    }
    assert_eq!(world.text("echo", json!({"text": "a"})).await, "a");
    world.orchestrator.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_end_the_call() {
    let world = World::new(&[("test", stdio(&[]))]);
    for tool in ["strange", "deep"] {
        let error = world.call(tool, json!({})).await.unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{tool}: {error}");
    }
    let error = world.call("half", json!({})).await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }), "{error}");
    world.orchestrator.close().await;
}
