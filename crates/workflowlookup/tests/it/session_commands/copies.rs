//! A copy whose original was pruned, as its agent meets it.

use serde_json::{Value, json};

use crate::Place;
use crate::agent::{Agent, advance, refused, structured};

const SHED: &str = r#"{
    "id": "shed", "name": "Shed", "description": "Builds a shed", "version": "1.0.0",
    "steps": [
        {"id": "plan", "title": "Plan", "prompt": "Plan."},
        {"id": "build", "title": "Build", "prompt": "Build {{steps.plan.output}}."},
        {"id": "check", "title": "Check", "prompt": "Check {{steps.build.output}}."}
    ]
}"#;

#[test]
fn copy_goes_on_after_its_original_is_pruned() {
    let place = Place::new();
    place.write("workflows/shed.json", SHED);
    let mut agent = Agent::start(&place);
    let original = agent.start_session("shed");
    agent.call("workflow_advance", &advance(&original, 0, "plan", "a small shed"));
    let fork = json!({
        "sessionId": original, "revision": 1, "toStep": "build", "reason": "again", "fork": true,
    });
    let copied = agent.call("workflow_rewind", &fork);
    let copy = structured(&copied)["sessionId"].as_str().unwrap().to_owned();
    for (revision, step) in [(1, "build"), (2, "check")] {
        structured(&agent.call("workflow_advance", &advance(&original, revision, step, "done")));
    }
    let pruned = place.run(&["session", "prune", "--older-than", "0s"]);
    assert!(pruned.stdout.contains("1 complete session removed"), "{}", pruned.shown());

    let removed = "not available: its original session was removed";
    let status = agent.status(&copy);
    let instruction = status["instruction"].as_str().unwrap();
    let filled = format!("Build (the output of step `plan` is {removed}).");
    assert!(instruction.contains(&filled), "{instruction}");
    let read = |agent: &mut Agent, step: &str| {
        agent.call("workflow_status", &json!({"sessionId": copy, "stepId": step}))
    };
    let missing = read(&mut agent, "plan");
    let (why, code) = refused(&missing);
    assert!(why.contains("what came before the copy is not available"), "{why}");
    assert!(why.contains("its original session was removed"), "{why}");
    assert_eq!(code, -32602);
    let built = advance(&copy, 0, "build", "a blue shed");
    structured(&agent.call("workflow_advance", &built));
    assert_eq!(structured(&read(&mut agent, "build"))["output"], "a blue shed");
    let uri = format!("session://{copy}/outputs/build");
    let resource = agent.request("resources/read", json!({"uri": uri}));
    let text = resource["contents"][0]["text"].as_str().unwrap();
    let page: Value = serde_json::from_str(text).unwrap();
    assert_eq!(page["output"], "a blue shed");
    agent.end();
}
