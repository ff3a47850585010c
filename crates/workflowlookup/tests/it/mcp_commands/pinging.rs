//! `mcp ping`: who answers, all at once.

use std::io::{BufRead as _, BufReader};

use super::*;

fn several() -> Place {
    let place = project(&[
        ("fake", Fake::new()),
        ("mute", Fake::silent().asked("initialize", json!({}), &[], None)),
    ]);
    let path = place.project().join("mcp.registry.json");
    let mut registry: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let gone = json!({"id": "gone", "mcp": {"command": "/nowhere/at/all"}});
    registry["servers"].as_array_mut().unwrap().push(gone);
    place.write_trusted("mcp.registry.json", registry.to_string());
    place
}

#[test]
fn each_says_how_it_is() {
    let place = several();
    let done = place.run(&["mcp", "ping", "self", "fake", "fake"]);
    let told = done.told();
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"), @"
    --- stdout
    exit 0
    fake	ok	connected in [TIME], answered in [TIME] (fake 1.2.3, 2025-11-25)
    self	ok	connected in [TIME], answered in [TIME] (Workflow Lookup 0.1.0, 2026-07-28)
    ");
    let done = place.run(&["mcp", "ping", "--timeout", "2s", "--json"]);
    assert_eq!(done.status, 1);
    let json = done.json();
    let servers = json["servers"].as_array().unwrap();
    let states: Vec<(&Value, &Value)> =
        servers.iter().map(|one| (&one["id"], &one["ok"])).collect();
    let expected = [("self", true), ("fake", true), ("mute", false), ("gone", false)];
    let expected = expected.map(|(id, ok)| (json!(id), json!(ok)));
    assert_eq!(states, expected.iter().map(|(id, ok)| (id, ok)).collect::<Vec<_>>());
    assert_eq!(servers[2]["error"]["message"], "Request timeout");
    assert!(servers[0]["connectedMs"].is_u64() && servers[0]["answeredMs"].is_u64(), "{json}");
}

/// The line of a server that answers is there while another one is still waited for.
#[test]
fn one_that_hangs_holds_up_nobody() {
    let place = several();
    let mut command = place.command(&["mcp", "ping", "--timeout", "10m"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ids: Vec<String> =
        lines.take(3).map(|line| line.unwrap().split('\t').next().unwrap().to_owned()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["fake", "gone", "self"]);
    assert!(child.try_wait().unwrap().is_none());
    super::super::bad_lines::tell(&child, "TERM");
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}
