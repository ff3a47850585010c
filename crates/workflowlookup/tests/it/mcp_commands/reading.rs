//! `mcp resources`, `mcp read` and `mcp subscribe`.

use super::*;
use crate::running::live::Live;

fn library() -> Fake {
    let resources = json!([
        {"uri": "file:///a.txt", "name": "a.txt", "mimeType": "text/plain", "description": "The first\none"},
        {"uri": "file:///logo.png", "name": "logo", "title": "The logo"},
    ]);
    let templates = json!([{"uriTemplate": "file:///{path}", "name": "any"}]);
    let content = |uri: &str, content: Value| {
        let mut content = content;
        content["uri"] = uri.into();
        json!({"contents": [content]})
    };
    let update = json!({
        "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "file:///a.txt"},
    });
    Fake::new()
        .asked("resources/list", json!({}), &[], Some(json!({"resources": resources})))
        .asked("resources/templates/list", json!({}), &[], Some(json!({"resourceTemplates": templates})))
        .asked("resources/read", json!({"uri": "file:///a.txt"}), &[], Some(content("file:///a.txt", json!({"text": "the text"}))))
        .asked("resources/read", json!({"uri": "file:///logo.png"}), &[], Some(content("file:///logo.png", json!({"blob": "AP8AGw==", "mimeType": "image/png"}))))
        .exchange("resources/read", json!({"uri": "file:///gone"}), &[], Some(("error", json!({"code": -32002, "message": "Resource not found", "data": {"uri": "file:///gone"}}))))
        .asked("resources/subscribe", json!({"uri": "file:///a.txt"}), &[update.clone(), update], Some(json!({})))
}

#[test]
fn resources_are_listed_and_read() {
    let place = fake(library());
    insta::assert_snapshot!(place.run(&["mcp", "resources", "fake"]).shown(), @"
    exit 0
    --- stdout
    file:///a.txt	text/plain	a.txt	The first one
    file:///logo.png		The logo	
    file:///{path}		any
    ");
    insta::assert_snapshot!(place.run(&["mcp", "resources", "fake", "--json"]).shown(), @r#"
    exit 0
    --- stdout
    {
      "resources": [
        {"description":"The first\none","mimeType":"text/plain","name":"a.txt","uri":"file:///a.txt"},
        {"name":"logo","title":"The logo","uri":"file:///logo.png"}
      ],
      "resourceTemplates": [
        {"name":"any","uriTemplate":"file:///{path}"}
      ],
      "notes": []
    }
    "#);
    insta::assert_snapshot!(place.run(&["mcp", "read", "fake", "file:///a.txt"]).shown(), @"
    exit 0
    --- stdout
    the text
    ");
    let json = place.run(&["mcp", "read", "fake", "file:///a.txt", "--json"]).json();
    assert_eq!(json["contents"][0]["text"], "the text");
    insta::assert_snapshot!(place.run(&["mcp", "read", "fake", "file:///gone"]).shown(), @r#"
    exit 1
    --- stderr
    error: `fake` answers with error -32002: Resource not found
    its data: {"uri":"file:///gone"}
    "#);
    let command = format!("{BINARY} mcp replay fake.jsonl");
    let read = place.run(&["mcp", "read", "--stdio", &command, "file:///a.txt"]);
    assert_eq!(read.stdout, "the text\n", "{}", read.shown());
    let none = Fake::new().asked("resources/list", json!({}), &[], Some(json!({"resources": []})));
    insta::assert_snapshot!(fake(none).run(&["mcp", "resources", "fake"]).shown(), @"
    exit 0
    --- stderr
    warning: `fake` has no resources
    ");
}

#[test]
fn what_is_no_text_goes_to_a_pipe_or_into_a_folder() {
    let place = fake(library());
    let output = place.command(&["mcp", "read", "fake", "file:///logo.png"]).output().unwrap();
    assert_eq!(output.stdout, [0, 255, 0, 27]);
    let done = place.run(&["mcp", "read", "fake", "file:///logo.png", "--save", "here"]);
    insta::assert_snapshot!(done.shown(), @"
    exit 0
    --- stdout
    [resource: file:///logo.png, image/png, 4 bytes, saved as here/logo-1.png]
    ");
    assert_eq!(fs::read(place.project().join("here/logo-1.png")).unwrap(), [0, 255, 0, 27]);
}

#[test]
fn changes_are_told_until_somebody_has_seen_enough() {
    let place = fake(library());
    let mut live = Live::start(place.command(&["mcp", "subscribe", "fake", "file:///a.txt"]));
    live.wait_for("\tfile:///a.txt\n");
    live.wait_for("\tfile:///a.txt\n");
    live.signal("INT");
    assert_eq!(live.ended(), None, "ended by the signal: {}", live.shown());
    let mut live =
        Live::start(place.command(&["mcp", "subscribe", "fake", "file:///a.txt", "--json"]));
    let shown = live.wait_for("}\n");
    let line: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!((&line["server"], &line["uri"]), (&json!("fake"), &json!("file:///a.txt")));
    live.signal("INT");
    assert_eq!(live.ended(), None);
    // The recording has no subscription to another one.
    insta::assert_snapshot!(place.run(&["mcp", "subscribe", "fake", "file:///b.txt"]).shown(), @r#"
    exit 1
    --- stderr
    error: `fake` answers with error -32602: the recording has no `resources/subscribe` with these parameters
    its data: {"asked":{"method":"resources/subscribe","params":{"uri":"file:///b.txt"}},"recorded":["resources/subscribe {\"uri\":\"file:///a.txt\"}"]}
    "#);
}

/// A server that ends is started again, and told again what is wanted.
#[test]
fn a_server_that_goes_away_is_looked_for_again() {
    let place = fake(library());
    // It hears a handshake and a request, and ends.
    let script = format!(
        "i=0; while [ $i -lt 4 ] && read -r line; do printf '%s\\n' \"$line\"; i=$((i+1)); done | {BINARY} mcp replay fake.jsonl"
    );
    let entry = json!({"id": "short", "mcp": {"command": "/bin/sh", "args": ["-c", script]}});
    place.write_trusted("short.json", json!([entry]).to_string());
    let words = ["--registry", "short.json", "mcp", "subscribe", "short", "file:///a.txt"];
    let mut live = Live::with_complaints(place.command(&words));
    live.wait_for("\tfile:///a.txt\n");
    live.wait_for("the connection to `short` is gone, and is made again");
    live.wait_for("\tfile:///a.txt\n");
    live.signal("TERM");
    assert_eq!(live.ended(), None);
}

/// Of this product's own, whose resources are sessions that go on.
#[test]
fn a_session_that_goes_on_is_a_change() {
    let place = project(&[]);
    let started = place.run(&["mcp", "call", "self.workflow_start", "workflowId=tidy", "--json"]);
    let session = started.json()["structuredContent"]["sessionId"].as_str().unwrap().to_owned();
    let resources = place.run(&["mcp", "resources", "self", "--json"]).json();
    let listed = resources["resources"].as_array().unwrap();
    let of_session = listed.iter().find(|one| one["uri"].as_str().unwrap().contains(&session));
    let uri =
        of_session.unwrap_or_else(|| panic!("{resources}"))["uri"].as_str().unwrap().to_owned();
    let mut live = Live::with_complaints(place.command(&["mcp", "subscribe", "self", &uri]));
    live.wait_for("watching 1 resource");
    let words = format!("sessionId={session}");
    let done = place.run(&[
        "mcp",
        "call",
        "self.workflow_advance",
        &words,
        "revision=0",
        "stepId=only",
        "output=done",
    ]);
    assert_eq!(done.status, 0, "{}", done.shown());
    live.wait_for(&format!("\t{uri}\n"));
    live.signal("INT");
    assert_eq!(live.ended(), None);
}

#[test]
fn one_that_is_in_no_registry_is_watched_too() {
    let place = fake(library());
    let command = format!("{BINARY} mcp replay fake.jsonl");
    let words = ["mcp", "subscribe", "--stdio", &command, "file:///a.txt"];
    let mut live = Live::start(place.command(&words));
    live.wait_for("\tfile:///a.txt\n");
    live.signal("INT");
    assert_eq!(live.ended(), None, "ended by the signal: {}", live.shown());
}
