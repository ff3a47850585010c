//! Strict gates: what waits is decided with a token that may approve, and in no other way, whoever tries.

use serde_json::{Value, json};

use super::actions::said;
use super::house::{House, next};
use crate::Place;
use crate::agent::{Era, LETTER, advance};
use crate::http_agent::answer_of;
use crate::http_client::Connection;
use crate::http_server::Listening;

#[test]
fn neither_the_command_line_nor_a_client_decides_in_a_strict_session() {
    let house = House::open("strict");
    let owner = house.client(Some("owner"), Era::Modern);
    let (session, version) = owner.waiting();
    let stands = owner.told("workflow_status", &json!({"sessionId": session}));
    let prompt = stands["instruction"].as_str().unwrap();
    assert!(prompt.contains(&format!("`POST /sessions/{session}/approve`")), "{prompt}");
    assert!(!prompt.contains("session approve"), "{prompt}");

    let seen = version.to_string();
    let commands: [&[&str]; 3] = [
        &["session", "approve", &session, "--version", &seen],
        &["session", "reject", &session, "--version", &seen, "--reason", "no"],
        &["run", "--resume", &session],
    ];
    for command in commands {
        let command = [command, &["--audit-log", "audit.jsonl"]].concat();
        let done = house.place.run_with_input(&command, "y\n");
        assert!(done.stderr.contains("a token that may approve"), "{}", done.shown());
        assert!(done.stderr.contains("/sessions/"), "{}", done.shown());
    }
    let shown = house.place.run(&["session", "show", &session]).stdout;
    assert!(shown.contains("only with a token that may approve"), "{shown}");
    let refused = house.audit();
    let refused: Vec<_> = refused.iter().filter(|line| line["event"] == "refused").collect();
    assert_eq!(refused.len(), 3, "{refused:?}");
    for line in refused {
        assert_eq!((&line["channel"], &line["session"]), (&json!("cli"), &json!(session)));
        assert_eq!((&line["step"], &line["version"]), (&json!("send-it"), &json!(version)));
    }

    // A server on the same store that asks its clients' users does not ask about this one either.
    let asking = Listening::spawn(house.place.command(&House::serving("asking")));
    for era in [Era::Modern, Era::Legacy] {
        let client =
            house.client_of(asking.address, Some("owner"), era, json!({"elicitation": {}}));
        let again = client.call("workflow_advance", &advance(&session, 1, "send-it", "by post"));
        assert_eq!(said(&again), "it waits");
    }
    asking.end();

    let approver = house.client(Some("approver"), Era::Modern);
    let decided = approver.endpoint(
        "POST",
        &format!("/sessions/{session}/approve"),
        &json!({"version": version}),
    );
    assert_eq!(decided.head.status, 200, "{decided:?}");
    assert_eq!(decided.json()["currentStep"], "file-it");
    // Who has lost the answer makes the same call again; another ruling is another matter.
    let again = |ruling: &str, body: &Value| {
        approver.endpoint("POST", &format!("/sessions/{session}/{ruling}"), body)
    };
    assert_eq!(again("approve", &json!({"version": version})).json(), decided.json());
    assert_eq!(again("approve", &json!({"version": version - 1})).head.status, 409);
    let another = json!({"version": version, "reason": "another"});
    assert_eq!(again("approve", &another).head.status, 409);
    assert_eq!(again("reject", &json!({"version": version})).head.status, 409);
    let shown = house.place.run(&["session", "show", &session]).stdout;
    assert!(shown.contains("approved by approver with a token"), "{shown}");
}

/// A session that began where users are asked is asked about no more by a strict server, and a question that another server
/// has asked is not settled by it.
#[test]
fn a_strict_server_takes_no_word_of_a_client() {
    let house = House::open("strict");
    let loose = Listening::spawn(house.place.command(&House::serving("asking")));
    let asks = json!({"elicitation": {}});
    for era in [Era::Modern, Era::Legacy] {
        let owner = house.client_of(loose.address, Some("owner"), era, json!({}));
        let session = owner.begun();
        let at = |address| house.client_of(address, Some("owner"), era, asks.clone());
        let (asked, strict) = (at(loose.address), at(house.server.address));
        let arguments = advance(&session, 1, "send-it", "by post");
        let mut params = json!({"name": "workflow_advance", "arguments": arguments});
        let before = house.audit().len();
        let mut stream = Connection::open(asked.address).unwrap();
        let head = stream.begin(&asked.written("tools/call", &params)).unwrap();
        if head.is_stream() {
            let question = next(&mut stream);
            // The answer reaches the strict one.
            let mut answering =
                house.client_of(house.server.address, Some("owner"), era, asks.clone());
            answering.carry(&asked);
            assert_eq!(answering.approve(&question["id"]).head.status, 202);
        } else {
            let question: Value = serde_json::from_slice(&stream.body().unwrap()).unwrap();
            assert_eq!(question["result"]["resultType"], "input_required");
            let approve = json!({"action": "accept", "content": {"decision": "approve"}});
            params["inputResponses"] = json!({"gate": approve});
            params["requestState"] = question["result"]["requestState"].clone();
            assert_eq!(said(&strict.ask("tools/call", &params)), "it waits");
        }
        let stands = owner.told("workflow_status", &json!({"sessionId": session}));
        assert!(stands["waiting"].is_object(), "{stands}");
        let lines = house.audit().split_off(before);
        let refused = lines.iter().find(|line| line["event"] == "refused").unwrap();
        assert_eq!(
            (&refused["principal"], &refused["session"]),
            (&json!("owner"), &json!(session))
        );
        drop(stream);

        // It did not begin strict, so whoever sits at the server may decide; and a copy is what its server is.
        let rewind = json!({"sessionId": session, "revision": 1, "toStep": "write-it", "reason": "anew", "fork": true});
        let copy =
            strict.told("workflow_rewind", &rewind)["sessionId"].as_str().unwrap().to_owned();
        let is_strict = |id: &str| {
            house.place.run(&["session", "show", id, "--json"]).json()["isStrict"].clone()
        };
        assert_eq!((is_strict(&session), is_strict(&copy)), (json!(false), json!(true)));
        let seen = stands["waiting"]["version"].to_string();
        let approve =
            ["session", "approve", &session, "--version", &seen, "--audit-log", "audit.jsonl"];
        assert_eq!(house.place.run(&approve).status, 0);
        let line = house.audit().pop().unwrap();
        assert_eq!((&line["event"], &line["channel"]), (&json!("decided"), &json!("cli")));
    }
}

#[test]
fn a_copy_of_a_strict_session_is_strict_wherever_it_is_made() {
    let house = House::open("strict");
    let owner = house.client(Some("owner"), Era::Modern);
    let session = owner.begun();
    let loose = Listening::spawn(house.place.command(&House::serving("asking")));
    let client = house.client_of(loose.address, Some("colleague"), Era::Modern, json!({}));
    let rewind = json!({"sessionId": session, "revision": 1, "toStep": "write-it", "reason": "anew", "fork": true});
    let copy = client.told("workflow_rewind", &rewind)["sessionId"].as_str().unwrap().to_owned();
    let shown = house.place.run(&["session", "show", &copy, "--json"]).json();
    assert_eq!((&shown["isStrict"], &shown["owner"]), (&json!(true), &json!("colleague")));
    assert_eq!(shown["sharedWith"], json!([]));
    // What it was copied from is not the copier's to show, and the copy is nobody else's.
    let response = owner.call("workflow_status", &json!({"sessionId": copy}));
    assert_eq!(said(&response), "not found");
}

#[test]
fn strict_gates_need_somebody_who_can_decide() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    insta::assert_snapshot!(place.run(&["serve", "--http", "0", "--gates", "strict"]).shown(), @"
    exit 1
    --- stderr
    error: with strict gates only a token that may approve decides, and nobody has to show a token here
      try: make one with `workflowlookup token new NAME --right approve`, or name an issuer with `--oauth-issuer`
    ");
    let open = place.run(&["serve", "--http", "0", "--insecure", "--gates", "strict"]);
    assert!(open.stderr.contains("nobody has to show a token here"), "{}", open.shown());
    let alone = place.run(&["serve", "--gates", "strict"]);
    assert_eq!(alone.status, 1, "{}", alone.shown());
}

/// Without tokens nobody is asked who they are, and what waits is decided by whoever says so.
#[test]
fn without_tokens_anybody_decides() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let server = Listening::start(&place);
    let open = super::house::nobody(server.address);
    let (session, version) = open.waiting();
    let path = format!("/sessions/{session}/reject");
    let stale = open.endpoint("POST", &path, &json!({"version": version - 1}));
    assert_eq!(stale.head.status, 409);
    let rejected =
        open.endpoint("POST", &path, &json!({"version": version, "reason": "too short"}));
    assert_eq!(answer_of(&rejected)["currentStep"], "send-it");
    let shown = place.run(&["session", "show", &session]).stdout;
    assert!(shown.contains("rejected by somebody over HTTP"), "{shown}");
    assert!(shown.contains("too short"), "{shown}");
    // Tokens are managed by who has one.
    assert_eq!(open.endpoint("GET", "/tokens", &Value::Null).head.status, 403);
    let make = json!({"name": "me", "right": "admin"});
    assert_eq!(open.endpoint("POST", "/tokens", &make).head.status, 403);
    server.end();
}
