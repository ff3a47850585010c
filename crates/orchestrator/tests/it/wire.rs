//! The log of messages: all of them, in order, without secrets.

use orchestrator::wire::WireLog;
use serde_json::{Value, json};

use crate::world::{World, and, log, stdio};

#[tokio::test(flavor = "multi_thread")]
async fn every_message_is_written_down_in_order_and_no_secret() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("wire.jsonl");
    let mut entry = stdio(&["--era", "legacy", "--hostile", "garbage"]);
    entry["mcp"]["env"] = json!({"API_TOKEN": "${SECRET_TOKEN}"});
    let world = World::with(&[("test", and(entry, json!({})))], |options| {
        options.wire = Some(WireLog::open(&path).unwrap());
    });
    let environment = world.text("environment", json!({})).await;
    assert!(environment.contains("API_TOKEN=s3cr3t-t0ken"), "{environment}");
    let error = world.call("die", json!({"secret": "s3cr3t-t0ken"})).await.unwrap_err();
    assert!(!error.to_string().contains("s3cr3t"), "{error}");
    assert!(error.to_string().contains("token was ***"), "{error}");
    world.orchestrator.close().await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("s3cr3t") && text.contains("API_TOKEN=***"), "{text}");
    let lines = log(&path);
    assert_eq!(lines.len(), text.lines().count());
    let short: Vec<String> = lines
        .iter()
        .filter(|line| line["way"] != "stderr")
        .map(|line| {
            assert_eq!((line["server"].as_str(), line["time"].is_string()), (Some("test"), true));
            let message = &line["message"];
            let what = match (&message["method"], &message["result"], &line["text"]) {
                (Value::String(method), _, _) => method.clone(),
                (_, Value::Object(_), _) => "result".to_owned(),
                (_, _, Value::String(text)) => format!("text: {text}"),
                _ => message.to_string(),
            };
            format!("{} {what}", line["way"].as_str().unwrap())
        })
        .collect();
    insta::assert_snapshot!(short.join("\n"));
    let complaints: Vec<&str> = lines
        .iter()
        .filter(|line| line["way"] == "stderr")
        .filter_map(|line| line["text"].as_str())
        .collect();
    assert_eq!(complaints, ["out of memory, or so", "token was ***"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_down_can_be_played_again() {
    for era in ["legacy", "modern"] {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("wire.jsonl");
        let world = World::with(&[("test", stdio(&["--era", era]))], |options| {
            options.wire = Some(WireLog::open(&path).unwrap());
        });
        let hear = |world: World| async move {
            let mut heard = Vec::new();
            for (tool, arguments) in [
                ("echo", json!({"text": "a"})),
                ("all_content", json!({})),
                ("slow", json!({"ms": 20, "progress": 3})),
                ("fail", json!({"code": -5, "data": {"x": 1}})),
            ] {
                heard.push(format!(
                    "{:?}",
                    world.call(tool, arguments).await.map(|result| result.raw)
                ));
            }
            world.orchestrator.close().await;
            heard
        };
        let live = hear(world).await;
        let replayed =
            hear(World::new(&[("test", stdio(&["--replay", path.to_str().unwrap()]))])).await;
        assert_eq!(live, replayed);
    }
}
