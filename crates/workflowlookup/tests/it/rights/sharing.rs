//! Sessions that are shared with somebody who was not asked: they displace nothing, and nobody can flood a list with them.

use serde_json::{Value, json};

use super::house::{Client, House};
use crate::agent::{Agent, Era, advance, refused};
use crate::http_agent::answer_of;

const OPEN_SHARES_MAX: usize = 20;

fn shared_start(with: &str) -> Value {
    json!({"workflowId": "letter", "sharedWith": [with]})
}

/// Begins a session that is shared with somebody; its id.
fn share(client: &Client, with: &str) -> String {
    let started = client.told("workflow_start", &shared_start(with));
    started["sessionId"].as_str().unwrap().to_owned()
}

/// One that waits for a person.
fn share_waiting(client: &Client, with: &str) -> String {
    let session = share(client, with);
    client.told("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    client.told("workflow_advance", &advance(&session, 1, "send-it", "by post"));
    session
}

/// The ids in a list of `workflow_status`.
fn listed(client: &Client, list: &str) -> Vec<String> {
    let status = client.told("workflow_status", &json!({}));
    let ids = status[list].as_array().cloned().unwrap_or_default();
    ids.iter().map(|row| row["sessionId"].as_str().unwrap().to_owned()).collect()
}

fn resources(client: &Client) -> Vec<String> {
    let answer = answer_of(&client.ask("resources/list", &json!({})));
    let uris = answer["result"]["resources"].as_array().unwrap().iter();
    let uris = uris.map(|resource| resource["uri"].as_str().unwrap().to_owned());
    uris.filter(|uri| uri.starts_with("session://")).collect()
}

#[test]
fn shared_sessions_displace_no_own_ones() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Modern);
    let colleague = house.client(Some("colleague"), Era::Modern);
    let own = colleague.told("workflow_start", &json!({"workflowId": "letter"}));
    let own = own["sessionId"].as_str().unwrap().to_owned();
    let shared: Vec<String> = (0..OPEN_SHARES_MAX).map(|_| share(&owner, "colleague")).collect();

    assert_eq!(listed(&colleague, "sessions"), [&*own]);
    let newest_first: Vec<_> = shared.iter().rev().cloned().collect();
    assert_eq!(listed(&colleague, "sharedSessions"), newest_first);
    let status = answer_of(&colleague.call("workflow_status", &json!({})));
    let text = status["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("- `{own}`: `letter`")), "{text}");
    assert!(
        text.contains(&format!("Shared with you:\n- `{}` of `owner`:", newest_first[0])),
        "{text}"
    );
    let uris = resources(&colleague);
    assert_eq!(uris.len(), 21);
    assert_eq!(uris[..2], [&own, &newest_first[0]].map(|id| format!("session://{id}")));
    let completed = answer_of(&colleague.ask(
        "completion/complete",
        &json!({
            "ref": {"type": "ref/resource", "uri": "session://{id}"},
            "argument": {"name": "id", "value": ""},
        }),
    ));
    assert_eq!(completed["result"]["completion"]["values"][0], own);
    assert_eq!(completed["result"]["completion"]["values"].as_array().unwrap().len(), 21);

    // No more are taken, however they are shared.
    let refused_start = answer_of(&owner.call("workflow_start", &shared_start("colleague")));
    let (message, code) = refused(&refused_start["result"]);
    assert_eq!(code, -32602, "{message}");
    assert!(message.contains("`colleague` has 20 open sessions"), "{message}");
    let more = owner.told("workflow_start", &json!({"workflowId": "letter"}));
    let more = more["sessionId"].as_str().unwrap();
    let shared_by_hand = house.place.run(&["session", "share", more, "colleague"]);
    assert_eq!(shared_by_hand.status, 1, "{}", shared_by_hand.shown());
    assert!(shared_by_hand.stderr.contains("20 open sessions"), "{}", shared_by_hand.shown());
    // It is between these two alone, and one that ends makes room.
    share(&owner, "approver");
    share(&house.client(Some("other"), Era::Modern), "colleague");
    let done = house.place.run(&["session", "share", &shared[0], "colleague", "--remove"]);
    assert_eq!(done.status, 0, "{}", done.shown());
    share(&owner, "colleague");
}

#[test]
fn session_list_keeps_the_users_own_apart() {
    let house = House::open("asking");
    let mut agent = Agent::start(&house.place);
    let own = agent.start_session("letter");
    agent.end();
    let owner = house.client(Some("owner"), Era::Modern);
    let others: Vec<String> = (0..3).map(|_| share(&owner, "colleague")).collect();

    let listed = house.place.run(&["session", "list", "--limit", "2", "--json"]).json();
    let ids = |list: &Value| {
        let rows = list["sessions"].as_array().unwrap().iter();
        rows.map(|row| row["sessionId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((ids(&listed), &listed["hasMore"]), (vec![own.clone()], &json!(false)));
    assert_eq!(ids(&listed["others"]), [others[2].clone(), others[1].clone()]);
    assert_eq!(listed["others"]["hasMore"], true);
    let lines = house.place.run(&["session", "list"]).stdout;
    let lines: Vec<&str> = lines.lines().collect();
    assert!(lines.len() == 4 && lines[0].starts_with(&own), "{lines:?}");
    assert!(lines[1].starts_with(&others[2]) && lines[1].ends_with("\towner"), "{lines:?}");
}

#[test]
fn status_text_shows_no_deceptive_characters() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Modern);
    let colleague = house.client(Some("colleague"), Era::Modern);
    let mut start = shared_start("colleague");
    start["goal"] = json!("pay \u{202e}001");
    let session = owner.told("workflow_start", &start)["sessionId"].clone();
    for arguments in [json!({}), json!({"sessionId": session})] {
        let status = answer_of(&colleague.call("workflow_status", &arguments));
        let text = status["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("pay \u{fffd}001"), "{text}");
        assert!(!text.contains('\u{202e}'), "{text}");
    }
}

#[test]
fn approver_sees_waiting_sessions_first_and_of_every_owner() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Modern);
    let other = house.client(Some("other"), Era::Modern);
    let approver = house.client(Some("approver"), Era::Modern);
    let waiting = share_waiting(&other, "approver");
    let running = share(&other, "approver");
    let flood: Vec<String> =
        (0..OPEN_SHARES_MAX).map(|_| share_waiting(&owner, "approver")).collect();

    let listed = listed(&approver, "sharedSessions");
    assert_eq!(listed.len(), 20);
    assert_eq!(listed[..2], [flood[19].clone(), waiting], "the newest of each owner");
    assert!(!listed.contains(&running), "it waits for nothing");
    let uris = resources(&approver);
    assert_eq!(uris.len(), 22);
    assert_eq!(*uris.last().unwrap(), format!("session://{running}"));
}

#[test]
fn decision_needs_the_version_that_was_seen() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Modern);
    let approver = house.client(Some("approver"), Era::Modern);
    let (session, version) = owner.waiting();
    for verb in ["approve", "reject"] {
        let path = format!("/sessions/{session}/{verb}");
        for body in [Value::Null, json!({}), json!({"reason": "fine"})] {
            let response = approver.endpoint("POST", &path, &body);
            assert_eq!(response.head.status, 400, "{verb} {body}");
            let details = response.json()["error"]["data"]["details"].to_string();
            assert!(details.contains("`version` is missing"), "{details}");
        }
        for wrong in [version - 1, version + 1] {
            let response = approver.endpoint("POST", &path, &json!({"version": wrong}));
            assert_eq!(response.head.status, 409, "{verb} {wrong}");
            assert_eq!(response.json()["error"]["data"]["waitingVersion"], version);
        }
    }
    let read = approver.told("workflow_status", &json!({"sessionId": session}));
    assert!(read["waiting"].is_object(), "nothing of that decided it");
    let path = format!("/sessions/{session}/approve");
    let approved = approver.endpoint("POST", &path, &json!({"version": version}));
    assert_eq!(approved.head.status, 200);
    // The same decision again, whose answer was lost.
    let again = approver.endpoint("POST", &path, &json!({"version": version}));
    assert_eq!(again.head.status, 200);
}
