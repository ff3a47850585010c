//! A server in Python, by the protocol's authors.

use serde_json::json;

use crate::installed;
use crate::processes::Mark;
use crate::tour::Tour;
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the servers that `cargo xtask test` installs"]
async fn a_server_in_python() {
    let mark = Mark::new();
    let (name, value) = mark.variable();
    let entry = json!({
        "mcp": {
            "transport": "stdio",
            "command": installed("python").join("bin/mcp-server-time"),
            "args": ["--local-timezone", "Asia/Tokyo"],
            "env": {name: value},
        },
        "sensitivity": "low",
        "timeoutMs": 60_000,
    });
    let world = World::new(&[("test", entry)]);
    let mut tour = Tour::begin(&world).await;
    tour.tools().await;
    // Two places that never change their clocks.
    let arguments = |time: &str| json!({"source_timezone": "Asia/Tokyo", "time": time, "target_timezone": "Asia/Kolkata"});
    let result = world.call("convert_time", arguments("16:30")).await.unwrap();
    let structured = &result.raw["structuredContent"];
    tour.say(&format!(
        "difference: {}, warnings: {:?}",
        structured["time_difference"], result.warnings
    ));
    let target = structured["target"]["datetime"].as_str().unwrap();
    assert!(target.ends_with("T13:00:00+05:30"), "{target}");
    tour.call("convert_time", arguments("noon")).await;
    tour.call("convert_time", json!({"time": 5})).await;
    tour.call("get_current_time", json!({"timezone": "Mars/Olympus"})).await;
    tour.call("get_time", json!({})).await;
    world.orchestrator.ping("test").await.unwrap();
    insta::assert_snapshot!(tour.text);
    world.orchestrator.close().await;
    assert_eq!(mark.processes(), []);
}
