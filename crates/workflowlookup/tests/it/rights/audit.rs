//! The audit log itself: where it is, who may read it, and what happens where it cannot be written.

use std::fs;

use serde_json::{Value, json};

use super::house::House;
use crate::Place;
use crate::agent::{Agent, Era, LETTER, advance};

fn waiting(place: &Place) -> String {
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(place);
    let session = agent.start_session("letter");
    agent.call("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    agent.call("workflow_advance", &advance(&session, 1, "send-it", "by post"));
    agent.end();
    session
}

#[cfg(unix)]
#[test]
fn it_is_in_the_state_folder_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let session = waiting(&place);
    assert_eq!(place.run(&["session", "approve", &session, "--version", "3"]).status, 0);
    let file = place.home().join(".local/state/workflowlookup/audit.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let line: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let who = &line["principal"];
    assert!(who.is_string() && line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    let expected = json!({
        "time": line["time"], "event": "decided", "principal": who, "channel": "cli", "session": session,
        "step": "send-it", "version": 3, "ruling": "approved",
    });
    assert_eq!(line, expected);
}

#[test]
fn it_can_be_somewhere_else_and_holds_nobody_up() {
    let place = Place::new();
    let session = waiting(&place);
    let reject = ["session", "reject", &session, "--version", "3", "--reason", "no"];
    let done = place.run(&[&reject[..], &["--audit-log", "-"]].concat());
    assert_eq!(done.status, 0);
    let line = done.stderr.lines().find(|line| line.starts_with('{')).unwrap();
    assert_eq!(serde_json::from_str::<Value>(line).unwrap()["ruling"], "rejected");
    assert!(!line.contains("no\""), "why is in the session, and not here: {line}");

    let mut command = place.command(&["token", "new", "ci"]);
    command.env("WORKFLOWLOOKUP_AUDIT_LOG", place.project().join("by-variable.jsonl"));
    assert_eq!(place.finish(command, "").status, 0);
    let text = fs::read_to_string(place.project().join("by-variable.jsonl")).unwrap();
    assert!(text.contains(r#""token":"ci","tokenRight":"use""#), "{text}");

    // A folder is nothing that can be appended to.
    let done = place.run(&["token", "revoke", "ci", "--audit-log", "workflows"]);
    assert_eq!(done.status, 0, "{}", done.shown());
    assert!(
        done.stderr.contains("the audit log `workflows` cannot be written"),
        "{}",
        done.shown()
    );
}

#[test]
fn a_server_does_not_begin_without_the_log_that_was_asked_for() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    for serving in [&["serve"][..], &["serve", "--http", "127.0.0.1:0"]] {
        let done = place.run(&[serving, &["--audit-log", "workflows"]].concat());
        assert_eq!(done.status, 1, "{}", done.shown());
        assert!(
            done.stderr.contains("the audit log `workflows` cannot be written"),
            "{}",
            done.shown()
        );
        assert!(done.stderr.contains("--audit-log"), "{}", done.shown());
    }
}

#[test]
fn whoever_goes_on_with_another_s_handshake_is_named() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Legacy);
    let mut other = house.client(Some("other"), Era::Legacy);
    other.carry(&owner);
    assert_eq!(other.call("workflow_list", &json!({})).head.status, 404);
    let line = house.audit().pop().unwrap();
    let told = ["event", "principal", "right", "wanted", "reason"].map(|name| line[name].clone());
    assert_eq!(
        told,
        ["refused", "other", "use", "POST /mcp", "the `Mcp-Session-Id` is somebody else's"]
    );
}
