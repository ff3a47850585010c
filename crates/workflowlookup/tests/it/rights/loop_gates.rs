//! The gate of a loop over HTTP: a token decides it, also where nothing else does.

use serde_json::{Value, json};

use super::house::{House, SHARED};
use crate::agent::{Era, advance};

#[test]
fn a_token_decides_whether_a_loop_begins() {
    let house = House::open("strict");
    let owner = house.client(Some("owner"), Era::Modern);
    let approver = house.client(Some("approver"), Era::Modern);
    let start = json!({"workflowId": "wipe", "sharedWith": SHARED});
    let session = owner.told("workflow_start", &start)["sessionId"].as_str().unwrap().to_owned();
    let stands = owner.told("workflow_advance", &advance(&session, 0, "plan", "both disks"));
    assert_eq!((&stands["step"], &stands["waiting"]["version"]), (&Value::Null, &json!(2)));
    let decide = |verb: &str, version: u64| {
        let path = format!("/sessions/{session}/{verb}");
        approver.endpoint("POST", &path, &json!({"version": version, "reason": "so"}))
    };
    let rejected = decide("reject", 2);
    assert_eq!((rejected.head.status, &rejected.json()["isWaiting"]), (200, &json!(true)));
    assert_eq!(rejected.json()["currentStep"], "each-disk");
    assert_eq!(decide("reject", 2).head.status, 200, "the same decision again is the same");
    assert_eq!(decide("approve", 2).head.status, 409, "another one about it comes too late");
    let status = owner.told("workflow_status", &json!({"sessionId": session}));
    assert_eq!((&status["step"], &status["waiting"]["version"]), (&Value::Null, &json!(3)));
    assert_eq!(decide("approve", 3).head.status, 200);
    let status = owner.told("workflow_status", &json!({"sessionId": session}));
    assert_eq!(status["step"]["id"], "erase");
}
