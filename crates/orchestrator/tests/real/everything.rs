//! The reference server of the protocol's authors that has something of everything.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use orchestrator::Answer;
use orchestrator::pool::Event;
use serde_json::{Map, Value, json};

use crate::installed;
use crate::processes::Mark;
use crate::tour::Tour;
use crate::world::{World, event};

/// How npm calls it.
const PACKAGE: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
/// A resource that it makes up.
const RESOURCE: &str = "demo://resource/dynamic/text/1";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the servers that `cargo xtask test` installs"]
async fn everything_over_stdio() {
    let mark = Mark::new();
    let (name, value) = mark.variable();
    let entry = entry(json!({
        "transport": "stdio",
        "command": "node",
        "args": [installed("typescript").join(PACKAGE)],
        "env": {name: value},
    }));
    let world = World::new(&[("test", entry)]);
    let text = look_at(&world).await;
    insta::assert_snapshot!("everything", text);
    world.orchestrator.close().await;
    assert_eq!(mark.processes(), []);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the servers that `cargo xtask test` installs"]
async fn everything_over_http() {
    let server = Listening::start();
    let world = World::new(&[("test", entry(json!({"transport": "http", "url": server.url})))]);
    let text = look_at(&world).await;
    // The same as over stdio.
    insta::assert_snapshot!("everything", text);
    world.orchestrator.close().await;
}

fn entry(mcp: Value) -> Value {
    json!({"mcp": mcp, "sensitivity": "low", "timeoutMs": 60_000, "maxCallsPerMinute": 1_000})
}

async fn look_at(world: &World) -> String {
    let mut events = world.orchestrator.events();
    let mut tour = Tour::begin(world).await;
    // It adds tools once it knows what a client can do, and says so.
    let begun = std::time::Instant::now();
    while world
        .orchestrator
        .tools("test")
        .await
        .unwrap()
        .get("trigger-elicitation-request")
        .is_none()
    {
        assert!(begun.elapsed() < crate::world::FOR_EVER, "the list is stale");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    tour.tools().await;
    tour.call("echo", json!({"message": "hello"})).await;
    tour.call("echo", json!({"massage": 1})).await;
    tour.call("get-sum", json!({"a": 2, "b": 3})).await;
    tour.call("get-tiny-image", json!({})).await;
    tour.call("get-structured-content", json!({"location": "Chicago"})).await;
    tour.call("get-structured-content", json!({"location": "Atlantis"})).await;
    tour.call("get-annotated-message", json!({"messageType": "error", "includeImage": true})).await;
    tour.call("get-resource-links", json!({"count": 2})).await;
    tour.call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 0})).await;
    let reference = json!({"resourceType": "Text", "resourceId": 1});
    let result = world.call("get-resource-reference", reference).await.unwrap();
    let block = &result.raw["content"][1];
    tour.say(&format!("a block of type {}, {}", block["type"], block["resource"]["uri"]));
    tour.followed("trigger-long-running-operation", json!({"duration": 0.5, "steps": 5})).await;
    // Nobody is there, somebody does not want to, somebody does.
    tour.call("trigger-elicitation-request", json!({})).await;
    tour.asked("trigger-elicitation-request", json!({}), Answer::Declined).await;
    let filled: Map<String, Value> =
        serde_json::from_value(json!({"name": "Ada", "check": true, "integer": 7})).unwrap();
    tour.asked("trigger-elicitation-request", json!({}), Answer::Accepted(filled)).await;
    let visit = json!({"url": "https://example.com/consent", "elicitationId": "e-1"});
    tour.asked("trigger-url-elicitation", visit, Answer::Accepted(Map::new())).await;
    tour.call("simulate-research-query", json!({"topic": "tides"})).await;
    tour.call("trigger-sampling-request", json!({"prompt": "x"})).await;
    let (resources, templates, prompts) = (
        world.orchestrator.resources("test").await.unwrap(),
        world.orchestrator.templates("test").await.unwrap(),
        world.orchestrator.prompts("test").await.unwrap(),
    );
    let counts = (resources.items.len(), templates.items.len(), prompts.items.len());
    tour.say(&format!("{} resources, {} templates, {} prompts", counts.0, counts.1, counts.2));
    tour.read(RESOURCE).await;
    tour.read("demo://resource/dynamic/blob/1").await;
    tour.read("demo://resource/nowhere").await;
    world.orchestrator.subscribe("test", RESOURCE).await.unwrap();
    world.call("toggle-subscriber-updates", json!({})).await.unwrap();
    for _ in 0..2 {
        event(&mut events, |event| matches!(event, Event::Updated { uri, .. } if uri == RESOURCE))
            .await;
    }
    tour.say("two updates came");
    world.orchestrator.unsubscribe("test", RESOURCE).await.unwrap();
    world.call("toggle-subscriber-updates", json!({})).await.unwrap();
    world.orchestrator.ping("test").await.unwrap();
    tour.text
}

/// The server over HTTP.
struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    fn start() -> Self {
        let this = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = this.join("tests/real/everything.mjs");
        let mut process = Command::new("node")
            .arg(script)
            .arg(installed("typescript").join(PACKAGE))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| line.unwrap().strip_prefix("port ").map(str::to_owned));
        // It goes on to tell of each request.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, url: format!("http://127.0.0.1:{}/mcp", port.unwrap()) }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
