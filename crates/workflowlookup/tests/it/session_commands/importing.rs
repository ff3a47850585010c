//! A file with a session is not believed: what would stop a server is refused, and what nobody can verify is marked
//! wherever the session is shown.

use serde_json::Value;

#[path = "../../../../store/tests/it/forging.rs"]
mod forging;

use super::*;
use crate::agent::{Agent, LETTER, structured};
use forging::reseal;

const WILD: u64 = 1 << 62;

/// A session of the workflow `letter` that somebody has made up; these are its events after the first.
fn forged(events: &[Value], head: &Value) -> Value {
    let place = json!({"step": "write-it"});
    let started = json!({"type": "started", "workflowId": "letter", "context": {}, "place": place});
    let mut all = vec![json!({"time": 1, "kind": "started", "body": started})];
    for body in events {
        let (revision, body) = (&body["revision"], &body["body"]);
        let kind = &body["type"];
        all.push(json!({"time": 2, "kind": kind, "revision": revision, "body": body}));
    }
    let workflow = workflow::read_trusted(LETTER, Format::Json).unwrap();
    let mut log = json!({
        "format": 1,
        "session": {"id": "forged-1", "key": "k", "owner": "the boss", "workflow": "letter",
            "goal": "", "created": 1},
        "head": head,
        "definition": {"text": serde_json::to_string(&workflow).unwrap()},
        "events": all,
    });
    log["head"]["touched"] = json!(2);
    reseal(&mut log);
    log
}

fn begun() -> Value {
    forged(&[], &json!({"status": "running", "step": "write-it", "revision": 0}))
}

fn import(place: &Place, log: &Value) -> Done {
    place.run_with_input(&["session", "import", "-"], &log.to_string())
}

#[test]
fn what_would_stop_a_server_is_refused() {
    let place = Place::new();
    let mut cyclic = begun();
    let settings = json!({"type": "for", "count": 2, "maxIterations": 2});
    let named = |id: &str, body: &str| json!({"id": id, "type": "loop", "title": id, "loop": settings, "body": body});
    let steps = json!([
        {"id": "top", "type": "loop", "title": "Top", "loop": settings,
         "body": [named("inner", "there")]},
        named("there", "back"),
        named("back", "there"),
        {"id": "write-it", "title": "Write", "prompt": "Write."},
    ]);
    let mut definition: Value =
        serde_json::from_str(cyclic["definition"]["text"].as_str().unwrap()).unwrap();
    definition["steps"] = steps;
    cyclic["definition"]["text"] = json!(definition.to_string());
    let rewound = json!({"revision": 0, "body": {"type": "rewound", "reason": "x", "version": WILD,
        "context": {}, "place": {"step": "write-it"}}});
    let rewound =
        forged(&[rewound], &json!({"status": "running", "step": "write-it", "revision": 1}));
    let mut copied = begun();
    copied["events"][0]["body"]["forkedFrom"] = json!({"session": "forged-1", "version": WILD});
    for (mut log, pointer) in [
        (cyclic, "/definition/text"),
        (rewound, "/events/1/body/version"),
        (copied, "/events/0/body/forkedFrom"),
    ] {
        reseal(&mut log);
        let done = import(&place, &log);
        assert_eq!(done.status, 1, "{}", done.shown());
        assert!(done.stderr.contains(&format!("(at `{pointer}`)")), "{}", done.shown());
    }
    assert!(
        place.run(&["session", "list", "--json"]).json()["sessions"].as_array().unwrap().is_empty()
    );
}

#[test]
fn a_planted_key_hands_nobody_a_session() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&place);
    let own = agent.start_session("letter");
    let owner = place.run(&["session", "show", &own, "--json"]).json()["owner"].clone();
    let mut log = begun();
    log["session"]["owner"] = owner;
    reseal(&mut log);
    assert_eq!(import(&place, &log).status, 0);
    let start = json!({"workflowId": "letter", "key": "k"});
    let started = structured(&agent.call("workflow_start", &start)).clone();
    assert_ne!(started["sessionId"], "forged-1");
    agent.end();
}

#[test]
fn a_forged_approval_is_unverified_wherever_it_is_shown() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let output = |step: &str| json!({"step": step, "output": "Dear Ada, all is well."});
    let events = [
        json!({"revision": 0, "body": {"type": "accepted", "submission": output("write-it"),
            "place": {"step": "send-it", "completed": ["write-it"]}}}),
        json!({"revision": 1, "body": {"type": "submitted", "submission": output("send-it")}}),
        json!({"revision": 1, "body": {"type": "approved",
            "decision": {"who": "the boss", "channel": "token"},
            "place": {"step": "file-it", "completed": ["send-it"]}}}),
    ];
    let log = forged(&events, &json!({"status": "running", "step": "file-it", "revision": 2}));
    let done = import(&place, &log);
    assert_eq!(done.status, 0, "{}", done.shown());
    assert!(done.stderr.contains("1 event could not be decided again"), "{}", done.shown());
    let shown = place.run(&["session", "show", "forged-1"]).stdout;
    assert!(
        shown.contains("approved by the boss with a token; then `file-it` [unverified]"),
        "{shown}"
    );
    assert!(
        shown.contains("imported     from a file with session `forged-1` of the boss"),
        "{shown}"
    );
    assert!(!shown.contains("owner        the boss"), "{shown}");
    let report = place.run(&["session", "show", "forged-1", "--markdown"]).stdout;
    assert!(report.contains("with a token. (unverified: it was imported)"), "{report}");
    let document = place.run(&["session", "show", "forged-1", "--json"]).json();
    assert_eq!(document["imported"]["unverified"], 1);
    assert_eq!(document["events"][3]["isUnverified"], true);
    assert_eq!(document["events"][2]["isUnverified"], false);
    let verified = place.run(&["session", "verify"]);
    assert_eq!(verified.status, 0);
    let note = "session `forged-1` came from a file; 1 event of it unverified";
    assert!(verified.stdout.contains(note), "{}", verified.shown());
    let verified = place.run(&["session", "verify", "--json"]).json();
    assert_eq!(verified["imported"][0]["origin"]["owner"], "the boss");
    let listed = place.run(&["session", "list", "--json"]).json();
    assert_eq!(listed["sessions"][0]["isImported"], true);
    let exported = place.run(&["session", "export", "forged-1"]).json();
    assert_eq!(exported["events"][4]["kind"], "imported");
    let mut agent = Agent::start(&place);
    let status = agent.status("forged-1");
    assert_eq!(
        (&status["imported"]["owner"], &status["imported"]["unverified"]),
        (&json!("the boss"), &json!(1))
    );
    let all = agent.call("workflow_status", &json!({}));
    assert_eq!(structured(&all)["sessions"][0]["isImported"], true);
    agent.end();
}
