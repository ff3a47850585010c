//! The gate of a loop: nobody gets the first step of the loop before a person has approved it, whichever way they ask.

use serde_json::{Value, json};

use super::agent::{Agent, Era, Heard, advance, refused, structured};
use super::transcripts::Process;
use super::*;

pub(super) const WIPE: &str = r#"{"id": "wipe", "name": "Wipe", "description": "Wipes disks", "version": "1.0.0",
    "steps": [
        {"id": "plan", "title": "Plan", "prompt": "Plan it."},
        {"id": "each-disk", "type": "loop", "title": "Each disk", "requireConfirmation": true,
         "loop": {"type": "for", "count": 2, "maxIterations": 2},
         "body": [{"id": "erase", "title": "Erase", "prompt": "Erase one."}]}
    ]}"#;

/// The same without a step before the loop.
fn at_once() -> String {
    let mut definition: Value = serde_json::from_str(WIPE).unwrap();
    definition["id"] = json!("at-once");
    definition["steps"].as_array_mut().unwrap().remove(0);
    definition.to_string()
}

fn place() -> Place {
    let place = Place::new();
    place.write("workflows/wipe.json", WIPE);
    place.write("workflows/at-once.json", at_once());
    place
}

/// Nothing of the step that is behind the gate.
fn assert_closed(answer: &Value) {
    let text = answer.to_string();
    assert!(!text.contains("erase") && !text.contains("Erase"), "{text}");
    assert_eq!((&answer["step"], &answer["isComplete"]), (&Value::Null, &json!(false)));
    assert_eq!(answer["waiting"]["stepId"], "each-disk");
}

#[test]
fn an_agent_waits_before_the_loop_and_after_a_rejection() {
    let place = place();
    let mut agent = Agent::start(&place);
    let id = &*agent.start_session("wipe");
    let arrived = agent.call("workflow_advance", &advance(id, 0, "plan", "both disks"));
    assert_eq!(structured(&arrived)["accepted"], true);
    assert_closed(structured(&arrived));
    let told = arrived["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("A person has to approve that loop `each-disk` begins."), "{told}");
    let early = agent.call("workflow_advance", &advance(id, 1, "erase", "erased"));
    assert_eq!(refused(&early).1, -32005);
    let listed = place.run(&["session", "list", "--status", "waiting", "--json"]).json();
    assert_eq!(listed["sessions"][0]["stepId"], "each-disk");

    let rejected = place.run(&["session", "reject", id, "--version", "2", "--reason", "not today"]);
    assert!(
        rejected.stdout.contains("rejected loop `each-disk` (Each disk)"),
        "{}",
        rejected.shown()
    );
    let status = agent.status(id);
    assert_closed(&status);
    assert_eq!(status["waiting"]["rejected"]["reason"], "not today");
    let shown = place.run(&["session", "show", id]).stdout;
    for part in ["whether loop `each-disk` (Each disk) begins", "not today", "session approve"] {
        assert!(shown.contains(part), "{shown}");
    }
    let report = place.run(&["session", "show", id, "--markdown"]).stdout;
    assert!(report.contains("It was rejected before by "), "{report}");

    let approved = place.run(&["session", "approve", id, "--version", "3"]);
    assert!(approved.stdout.contains("approved loop `each-disk`"), "{}", approved.shown());
    let status = agent.status(id);
    assert_eq!(status["step"]["id"], "erase");
    assert!(status.get("waiting").is_none(), "{status}");
    let revision = status["revision"].as_u64().unwrap();
    for done in 0..2 {
        let erased = agent.call("workflow_advance", &advance(id, revision + done, "erase", "gone"));
        assert_eq!(structured(&erased)["accepted"], true, "nobody is asked again");
    }
    assert_eq!(agent.status(id)["isComplete"], true);
    agent.end();
    assert_eq!(place.run(&["session", "verify"]).status, 0);
}

/// A client whose user can be asked asks about the loop, also where a session begins with it.
#[test]
fn a_client_asks_its_user_about_the_loop() {
    let place = place();
    let mut command = place.command(&["serve"]);
    command.stderr(Stdio::null());
    let capabilities = json!({"elicitation": {}});
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, capabilities);
    let ask = |agent: &mut Agent, tool: &str, arguments: &Value, decision: &str| {
        agent.begin_call(tool, arguments);
        loop {
            match agent.hear().unwrap() {
                Heard::Asked { id, message } => {
                    assert!(message.contains("approve that loop `each-disk`"), "{message}");
                    let content = json!({"decision": decision, "reason": "so"});
                    agent.reply(&id, &json!({"action": "accept", "content": content}));
                }
                Heard::Answer { result, .. } => return structured(&result).clone(),
                Heard::Told { .. } => {}
            }
        }
    };
    let started = ask(&mut agent, "workflow_start", &json!({"workflowId": "at-once"}), "approve");
    assert_eq!((&started["step"]["id"], &started["revision"]), (&json!("erase"), &json!(1)));
    let started = ask(&mut agent, "workflow_start", &json!({"workflowId": "at-once"}), "reject");
    assert_closed(&started);
    let id = &*agent.start_session("wipe");
    let arrived = advance(id, 0, "plan", "both disks");
    let opened = ask(&mut agent, "workflow_advance", &arrived, "approve");
    assert_eq!((&opened["accepted"], &opened["step"]["id"]), (&json!(true), &json!("erase")));
    agent.end();
}

#[test]
fn whoever_walks_a_workflow_is_asked_before_its_loop() {
    let place = place();
    let done = place.run_with_input(&["run", "wipe"], "Both disks.\n.\nn not today\n");
    assert!(
        done.stdout.contains("A person has to approve that loop `each-disk` begins"),
        "{}",
        done.shown()
    );
    assert!(!done.stdout.contains("Erase one."), "{}", done.shown());
    assert!(done.stdout.contains("the loop does not begin"), "{}", done.shown());
    let done = place.run_with_input(&["run", "--resume"], "y\ngone\n.\ngone\n.\n");
    assert_eq!(done.status, 0, "{}", done.shown());
    assert_eq!(done.stdout.matches("Erase one.").count(), 2, "{}", done.shown());
}
