//! The endpoints beside MCP: what they take, and what they answer.

use serde_json::{Value, json};

use super::house::House;
use crate::agent::{Era, advance};
use crate::http_client::Request;

#[test]
fn a_decision_is_about_what_was_seen() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Modern);
    let approver = house.client(Some("approver"), Era::Modern);
    let (session, version) = owner.waiting();
    let path = |verb: &str| format!("/sessions/{session}/{verb}");
    let decide = |verb: &str, body: &Value| approver.endpoint("POST", &path(verb), body);
    // The approver reads what waits, and under which number.
    let read = approver.told("workflow_status", &json!({"sessionId": session}));
    assert_eq!(
        (&read["waiting"]["version"], &read["waitingOutput"]),
        (&json!(version), &json!("by post"))
    );
    let prompt = read["instruction"].as_str().unwrap();
    assert!(prompt.contains("Your token may decide it"), "{prompt}");

    // It is handed in anew meanwhile.
    owner.told("workflow_advance", &advance(&session, 1, "send-it", "by pigeon"));
    let stale = decide("approve", &json!({"version": version}));
    assert_eq!(stale.head.status, 409);
    assert_eq!(stale.json()["error"]["data"]["isWaiting"], true);

    let rejected =
        decide("reject", &json!({"version": version + 1, "reason": " pigeons are slow "}));
    assert_eq!(rejected.head.status, 200);
    let text = |value: &Value| value.to_string().replace(&session, "[ID]");
    insta::assert_snapshot!(text(&rejected.json()), @r#"{"currentRevision":2,"currentStep":"send-it","isComplete":false,"isWaiting":false,"sessionId":"[ID]","workflowId":"letter"}"#);
    let status = owner.told("workflow_status", &json!({"sessionId": session}));
    assert_eq!(status["issues"], json!(["A person has rejected the output: pigeons are slow"]));

    // Nothing waits any more.
    let again = decide("reject", &json!({"version": version + 2}));
    assert_eq!(again.head.status, 409);
    insta::assert_snapshot!(text(&again.json()), @r#"{"error":{"code":-32005,"data":{"currentRevision":2,"currentStep":"send-it","details":"no step of the session waits for a person","isComplete":false,"isWaiting":false,"sessionId":"[ID]","workflowId":"letter"},"message":"State error"}}"#);

    owner.told("workflow_advance", &advance(&session, 2, "send-it", "by post"));
    let wrong = json!({"verdict": "fine"});
    for (status, request) in [
        (
            400,
            Request::new("POST", &path("approve"))
                .header("Content-Type", "application/json")
                .body("{"),
        ),
        (
            400,
            Request::new("POST", &path("approve"))
                .header("Content-Type", "application/json")
                .body(wrong.to_string()),
        ),
        (
            400,
            Request::new("POST", &path("approve"))
                .header("Content-Type", "application/json")
                .body(json!({"version": version + 3, "reason": "x".repeat(5000)}).to_string()),
        ),
        (
            415,
            Request::new("POST", &path("approve")).header("Content-Type", "text/plain").body("{}"),
        ),
        (415, Request::new("POST", &path("approve")).body("{}")),
        (405, Request::new("GET", &path("approve"))),
        (405, Request::new("PUT", &path("approve"))),
        (
            413,
            Request::new("POST", &path("approve"))
                .header("Content-Type", "application/json")
                .header("Content-Length", "99999999")
                .body(""),
        ),
        (403, Request::new("POST", &path("approve")).header("Origin", "https://evil.example")),
        (403, Request::new("POST", &path("approve")).header("Host", "evil.example")),
        (404, Request::new("POST", &path("forget"))),
        (404, Request::new("POST", "/sessions")),
    ] {
        let response = approver.send(request.clone());
        assert_eq!(response.head.status, status, "{request:?}");
    }
    let read = approver.told("workflow_status", &json!({"sessionId": session}));
    assert!(read["waiting"].is_object(), "nothing of that decided it");
    let version = &read["waiting"]["version"];
    assert_eq!(decide("approve", &json!({"version": version})).head.status, 200);
}

#[test]
fn tokens_are_managed_by_who_may() {
    let house = House::open("asking");
    let boss = house.client(Some("boss"), Era::Modern);
    let made = boss.endpoint(
        "POST",
        "/tokens",
        &json!({"name": "anna@example.com", "right": "approve", "days": 7}),
    );
    assert_eq!(made.head.status, 201, "{made:?}");
    assert_eq!(made.head.header("Cache-Control"), Some("no-store"));
    let made = made.json();
    assert_eq!((&made["name"], &made["right"]), (&json!("anna@example.com"), &json!("approve")));
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("wfl_"), "{made}");

    let listed = boss.endpoint("GET", "/tokens", &Value::Null);
    assert!(!String::from_utf8_lossy(&listed.body).contains(token), "shown once");
    let names: Vec<Value> = listed.json()["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| json!([one["name"], one["right"]]))
        .collect();
    assert_eq!(names.len(), 7);
    assert_eq!(names[6], json!(["anna@example.com", "approve"]));
    let shown = house.place.run(&["token", "list", "--json"]).json();
    assert_eq!(shown["tokens"][6]["right"], "approve");

    let taken = boss.endpoint("POST", "/tokens", &json!({"name": "owner"}));
    assert_eq!(taken.head.status, 409);
    for body in [
        json!({}),
        json!({"name": "a b"}),
        json!({"name": "x", "right": "everything"}),
        json!({"name": "x", "days": 0}),
        json!({"name": "x", "for": "ever"}),
    ] {
        assert_eq!(boss.endpoint("POST", "/tokens", &body).head.status, 400, "{body}");
    }
    assert_eq!(
        boss.endpoint("DELETE", "/tokens/anna%40example.com", &Value::Null).head.status,
        204
    );
    assert_eq!(
        boss.endpoint("DELETE", "/tokens/anna%40example.com", &Value::Null).head.status,
        404
    );
    assert_eq!(boss.endpoint("PUT", "/tokens/anna", &Value::Null).head.status, 405);
    let lines = house.audit();
    let noted = |event: &str| {
        let line = lines.iter().rfind(|line| line["event"] == event).unwrap();
        [&line["principal"], &line["token"], &line["tokenRight"]].map(Clone::clone)
    };
    assert_eq!(noted("tokenMade"), [json!("boss"), json!("anna@example.com"), json!("approve")]);
    assert_eq!(noted("tokenRevoked"), [json!("boss"), json!("anna@example.com"), Value::Null]);
}

#[test]
fn refusals_are_counted_and_say_which_methods_there_are() {
    let house = House::open("asking");
    let owner = house.client(Some("owner"), Era::Modern);
    let refused = || {
        let page = owner.send(Request::new("GET", "/metrics"));
        let page = String::from_utf8(page.body).unwrap();
        let of_kind = |kind: &str| {
            let name = format!("workflowlookup_http_refusals_total{{kind=\"{kind}\"}} ");
            page.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap()
        };
        (of_kind("not_allowed"), of_kind("not_authenticated"))
    };
    let before = refused();
    assert_eq!(owner.endpoint("GET", "/tokens", &Value::Null).head.status, 403);
    assert_eq!(owner.endpoint("POST", "/sessions/a/approve", &json!({})).head.status, 403);
    let nobody = Request::new("GET", "/tokens").send(house.server.address).unwrap();
    assert_eq!(nobody.head.status, 401);
    assert_eq!(refused(), (before.0 + 2, before.1 + 1));

    for (method, path, allowed) in [
        ("DELETE", "/tokens", "GET, POST"),
        ("GET", "/tokens/owner", "DELETE"),
        ("GET", "/sessions/a/reject", "POST"),
    ] {
        let response = owner.endpoint(method, path, &Value::Null);
        assert_eq!(response.head.status, 405);
        assert_eq!(response.head.header("Allow"), Some(allowed), "{method} {path}");
    }
}
