//! Many sessions and several servers at once: whoever follows a session hears of it, every call gets its one answer,
//! and no end of a server loses what it has answered.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Place;
use super::agent::{Agent, Era, Heard, LETTER, advance, refused, structured};
use super::bad_lines::tell;
use super::transcripts::Process;

/// What another process has done is told within a second; a slow machine gets more.
const TOLD_WITHIN: Duration = Duration::from_secs(15);
/// How many sessions are advanced at once.
const SESSIONS: usize = 64;

fn place() -> Place {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    place
}

#[test]
fn who_follows_a_session_hears_what_another_server_does() {
    hears_of_another_server(&place());
}

pub(super) fn hears_of_another_server(place: &Place) {
    for era in [Era::Legacy, Era::Modern] {
        let mut other = Agent::start(place);
        let session = other.start_session("letter");
        let uri = format!("session://{session}");
        let mut follower = Agent::start_in(era, place);
        follow(&mut follower, era, &uri);
        for (revision, output) in [(0, "Hey"), (1, "Hello"), (2, "Dear Ada")] {
            let arguments = advance(&session, revision, "write-it", output);
            structured(&other.call("workflow_advance", &arguments));
            let start = Instant::now();
            let (method, params) = told(&mut follower);
            assert_eq!(method, "notifications/resources/updated");
            assert_eq!(params["uri"], *uri);
            assert!(start.elapsed() < TOLD_WITHIN, "told after {:?}", start.elapsed());
            // Whoever is told finds it.
            let read = follower.request("resources/read", json!({"uri": uri}));
            let text = read["contents"][0]["text"].as_str().unwrap();
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read["revision"], revision + 1);
        }
        other.end();
    }
}

fn follow(follower: &mut Agent, era: Era, uri: &str) {
    match era {
        Era::Legacy => {
            follower.request("resources/subscribe", json!({"uri": uri}));
        }
        Era::Modern => {
            let listen = json!({"notifications": {"resourceSubscriptions": [uri]}});
            follower.begin("subscriptions/listen", listen);
            let (method, _) = told(follower);
            assert_eq!(method, "notifications/subscriptions/acknowledged");
        }
    }
}

fn told(agent: &mut Agent) -> (String, Value) {
    match agent.hear().unwrap() {
        Heard::Told { method, params } => (method, params),
        Heard::Answer { result, .. } => panic!("nobody asked: {result}"),
        Heard::Asked { message, .. } => panic!("nobody can answer: {message}"),
    }
}

/// Begins many sessions at once; their ids.
fn start_many(agent: &mut Agent) -> Vec<String> {
    let start = |_| agent.begin_call("workflow_start", &json!({"workflowId": "letter"}));
    let begun: Vec<u64> = (0..SESSIONS).map(start).collect();
    let started: BTreeMap<u64, Value> = begun.iter().map(|_| agent.answer()).collect();
    assert!(started.keys().eq(&begun), "one answer for each");
    let id = |result: &Value| structured(result)["sessionId"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = started.values().map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), SESSIONS);
    ids
}

/// An output that is not good: it is answered, stored, and may be followed by many more.
fn bad(session: &str, revision: u64) -> Value {
    advance(session, revision, "write-it", &format!("Hey {revision}"))
}

#[test]
fn many_sessions_at_once_get_one_answer_each_and_in_order() {
    const ADVANCES: u64 = 5;
    let place = place();
    let mut agent = Agent::start(&place);
    let sessions = start_many(&mut agent);
    let mut under_way: HashMap<u64, (&String, u64)> = HashMap::new();
    for session in &sessions {
        let id = agent.begin_call("workflow_advance", &bad(session, 0));
        under_way.insert(id, (session, 0));
    }
    while !under_way.is_empty() {
        let (id, result) = agent.answer();
        let (session, revision) = under_way.remove(&id).expect("one answer for each");
        let answer = structured(&result);
        assert_eq!(answer["sessionId"], *session);
        assert_eq!(answer["revision"], revision + 1);
        assert_eq!(answer["attempt"], revision + 1);
        if revision + 1 < ADVANCES {
            let id = agent.begin_call("workflow_advance", &bad(session, revision + 1));
            under_way.insert(id, (session, revision + 1));
        }
    }
    for session in &sessions {
        assert_eq!(agent.status(session)["revision"], ADVANCES);
    }
    agent.end();
}

/// A client that is impatient sends a call twice, and the next one before it has an answer. The same call gets the same
/// answer; one that builds on an answer which is not there yet is applied or refused, and then it can be made again.
#[test]
fn calls_of_one_session_that_do_not_wait_for_each_other() {
    let place = place();
    let mut agent = Agent::start(&place);
    for session in start_many(&mut agent) {
        let calls = [bad(&session, 0), bad(&session, 0), bad(&session, 1)];
        let ids = calls.each_ref().map(|call| agent.begin_call("workflow_advance", call));
        let mut results: HashMap<u64, Value> = ids.iter().map(|_| agent.answer()).collect();
        let [first, second, next] = ids.map(|id| results.remove(&id).expect("one answer for each"));
        assert_eq!(structured(&first)["revision"], 1);
        assert_eq!(first, second);
        let next = match next.get("isError") {
            None => next,
            Some(_) => {
                assert_eq!(refused(&next).1, -32005, "{next}");
                agent.call("workflow_advance", &calls[2])
            }
        };
        assert_eq!(structured(&next)["revision"], 2);
        assert_eq!(agent.status(&session)["revision"], 2);
    }
    agent.end();
}

#[test]
fn an_advance_is_answered_although_the_input_ends_behind_it() {
    let place = place();
    let mut agent = Agent::start(&place);
    let session = agent.start_session("letter");
    let sent = agent.begin_call("workflow_advance", &bad(&session, 0));
    agent.process.input = None;
    let (id, result) = agent.answer();
    assert_eq!(id, sent);
    assert_eq!(structured(&result)["revision"], 1);
    agent.end();
    let mut agent = Agent::start(&place);
    assert_eq!(agent.status(&session)["revision"], 1);
    assert_eq!(agent.call("workflow_advance", &bad(&session, 0)), result);
    agent.end();
}

#[test]
fn a_signal_in_the_middle_loses_nothing_that_was_answered() {
    for answers in [0, 1, 40, 200] {
        let place = place();
        let mut agent = Agent::start(&place);
        // How far each session is, by its answers.
        let mut revisions: BTreeMap<String, u64> =
            start_many(&mut agent).into_iter().map(|session| (session, 0)).collect();
        let mut under_way: HashMap<u64, String> = HashMap::new();
        for session in revisions.keys() {
            let id = agent.begin_call("workflow_advance", &bad(session, 0));
            under_way.insert(id, session.clone());
        }
        let mut heard = 0;
        loop {
            if heard == answers {
                tell(&agent.process.child, "TERM");
            }
            heard += 1;
            let (id, result) = match agent.hear() {
                Some(Heard::Answer { id, result }) => (id, result),
                Some(Heard::Told { .. }) => continue,
                Some(Heard::Asked { message, .. }) => panic!("nobody can answer: {message}"),
                None => break,
            };
            let session = under_way.remove(&id).expect("one answer for each");
            let revision = revisions.get_mut(&session).unwrap();
            assert_eq!(structured(&result)["revision"], *revision + 1);
            *revision += 1;
            // What is sent to a server that is told to go may never be read.
            let id = agent.begin_call("workflow_advance", &bad(&session, *revision));
            under_way.insert(id, session);
        }
        assert!(heard > answers);
        assert_eq!(agent.process.wait().code(), Some(0));

        let mut agent = Agent::start(&place);
        for (session, revision) in &revisions {
            let now = agent.status(session)["revision"].as_u64().unwrap();
            assert!((*revision..=revision + 1).contains(&now), "{now} is not {revision}");
            let again = agent.call("workflow_advance", &bad(session, *revision));
            assert_eq!(structured(&again)["revision"], revision + 1);
        }
        agent.end();
    }
}

/// What a client was asked by one server it may answer to the next: the key that signs it is kept.
#[test]
fn a_question_outlives_the_server_that_asked_it() {
    let place = place();
    let asking = || {
        let process = Process::spawn(place.command(&["serve"]));
        Agent::connect(process, Era::Modern, json!({"elicitation": {}}))
    };
    let mut agent = asking();
    let session = agent.start_session("letter");
    agent.call("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    let arguments = advance(&session, 1, "send-it", "by post");
    let asked = agent.call("workflow_advance", &arguments);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    agent.process.kill();

    let mut agent = asking();
    assert_eq!(agent.status(&session)["waiting"]["stepId"], "send-it");
    let answered = json!({
        "name": "workflow_advance",
        "arguments": arguments,
        "inputResponses": {"gate": {"action": "accept", "content": {"decision": "approve"}}},
        "requestState": asked["requestState"],
    });
    for _ in 0..2 {
        let result = agent.request("tools/call", answered.clone());
        assert_eq!(
            structured(&result)["revision"],
            2,
            "decided once, and answered as often as asked"
        );
    }
    agent.end();
}

#[test]
fn a_question_is_taken_back_when_somebody_decides_elsewhere() {
    let place = place();
    let process = Process::spawn({
        let mut command = place.command(&["serve"]);
        command.stderr(std::process::Stdio::null());
        command
    });
    let mut agent = Agent::connect(process, Era::Legacy, json!({"elicitation": {}}));
    let session = agent.start_session("letter");
    structured(&agent.call("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada")));
    let mut arguments = advance(&session, 1, "send-it", "by post");
    arguments["context"] = json!({"stamp": "second class"});
    let gated = agent.begin_call("workflow_advance", &arguments);
    let asked = loop {
        match agent.hear().unwrap() {
            Heard::Asked { id, message } => {
                // Whoever decides sees all that they decide about.
                let parts = ["by post", "- stamp: \"second class\""];
                assert!(parts.iter().all(|part| message.contains(part)), "{message}");
                break id;
            }
            Heard::Told { .. } => {}
            Heard::Answer { result, .. } => panic!("nobody has decided: {result}"),
        }
    };
    let decided =
        place.run(&["session", "reject", &session, "--version", "3", "--reason", "too slow"]);
    assert_eq!(decided.status, 0, "{}", decided.shown());
    let (method, params) = told(&mut agent);
    assert_eq!((&*method, &params["requestId"]), ("notifications/cancelled", &asked));
    let (id, result) = agent.answer();
    assert_eq!(id, gated);
    assert_eq!(
        structured(&result)["issues"],
        json!(["A person has rejected the output: too slow"])
    );
    agent.end();
}

#[test]
fn who_only_looks_makes_no_file() {
    let place = place();
    let mut agent = Agent::start(&place);
    assert_eq!(structured(&agent.call("workflow_status", &json!({})))["sessions"], json!([]));
    let rewind = json!({"sessionId": "none", "revision": 0, "toStep": "write-it", "reason": "x"});
    for (tool, arguments) in [
        ("workflow_status", json!({"sessionId": "none"})),
        ("workflow_advance", advance("none", 0, "write-it", "Dear Ada")),
        ("workflow_rewind", rewind),
    ] {
        let (_, code) = refused(&agent.call(tool, &arguments));
        assert_eq!(code, -32005, "{tool}");
    }
    agent.request("resources/list", json!({}));
    agent.end();
    assert!(!place.home().join(".local").exists());
}
