//! The log of calls, as an operator reads it: one line for each, with who, what and which session, for machines and for
//! people, and nothing that is none of the operator's business.

use std::fs;

use serde_json::{Value, json};

use super::Place;
use super::agent::{Agent, Era, LETTER, advance, structured};
use super::http_agent::{answer_of, modern};
use super::http_server::Listening;
use super::transcripts::Process;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn place() -> Place {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    place
}

/// The lines about calls, without what is another each time.
fn calls(lines: impl Iterator<Item = String>) -> Vec<Value> {
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let calls = lines.filter(|line| line["message"] == "carried out").map(|mut line| {
        assert_eq!(line["level"], "INFO");
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("timestamp").is_some_and(|time| time.is_string()));
        assert!(fields.remove("micros").is_some_and(|micros| micros.is_u64()));
        fields.remove("level");
        fields.remove("message");
        line
    });
    calls.collect()
}

/// What an agent does in both tests: a start, an output that is refused, a session that is none, and a resource.
fn walk(mut call: impl FnMut(&str, Value) -> Value) -> String {
    let tool = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let start = json!({"workflowId": "letter", "goal": "a secret goal"});
    let started = call("tools/call", tool("workflow_start", start));
    let session = structured(&started)["sessionId"].as_str().unwrap().to_owned();
    let late = advance(&session, 7, "write-it", "Dear secret");
    call("tools/call", tool("workflow_advance", late));
    let odd = json!({"sessionId": "no id\u{1b}[31m, but a secret"});
    call("tools/call", tool("workflow_status", odd));
    call("resources/read", json!({"uri": format!("session://{session}")}));
    session
}

fn expected(session: &str, principal: Option<&str>) -> Vec<Value> {
    let mut lines = vec![
        json!({"tool": "workflow_start", "session": session, "outcome": "ok"}),
        json!({"tool": "workflow_advance", "session": session, "outcome": "refused", "code": -32005}),
        json!({"tool": "workflow_status", "outcome": "refused", "code": -32005}),
        json!({"method": "resources/read", "session": session, "outcome": "ok"}),
    ];
    for line in &mut lines {
        let fields = line.as_object_mut().unwrap();
        fields.entry("method").or_insert(json!("tools/call"));
        fields.insert("trace".to_owned(), json!(TRACE));
        fields.extend(principal.map(|name| ("principal".to_owned(), json!(name))));
    }
    lines
}

fn traced(mut params: Value) -> Value {
    params["_meta"]["traceparent"] = json!(format!("00-{TRACE}-00f067aa0ba902b7-00"));
    params
}

#[test]
fn calls_over_stdio_are_logged() {
    let place = place();
    let log = place.project().join("log");
    let mut command = place.command(&["serve", "--log-level", "info", "--log-format", "json"]);
    command.stderr(fs::File::create(&log).unwrap());
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, json!({}));
    let session = walk(|method, params| agent.request(method, traced(params)));
    agent.end();
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(calls(log.lines().map(str::to_owned)), expected(&session, None), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn calls_over_http_are_logged_with_who_made_them() {
    let place = place();
    let token = place.run(&["token", "new", "ann"]).stdout.trim().to_owned();
    let mut command = place.command(&["serve", "--http", "127.0.0.1:0"]);
    command.args(["--log-level", "info", "--log-format", "json"]);
    let server = Listening::spawn(command);
    let session = walk(|method, params| {
        let request = modern(method, params, &json!({}));
        let request = request.header("Authorization", &format!("Bearer {token}"));
        let request = request.with_meta("traceparent", &format!("00-{TRACE}-00f067aa0ba902b7-00"));
        answer_of(&request.send(server.address).unwrap())["result"].clone()
    });
    let log = server.end();
    assert_eq!(calls(log.iter().cloned()), expected(&session, Some("ann")), "{log:?}");
    let all = log.join("\n");
    assert!(!all.contains("secret") && !all.contains(&token), "{all}");
}

#[test]
fn the_same_is_there_for_people() {
    let place = place();
    let log = place.project().join("log");
    let mut command = place.command(&["serve", "--log-level", "info"]);
    command.stderr(fs::File::create(&log).unwrap());
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, json!({}));
    let session = agent.start_session("letter");
    agent.end();
    let log = fs::read_to_string(log).unwrap();
    let line = log.lines().find(|line| line.contains("carried out")).unwrap();
    let wanted =
        format!(r#"method="tools/call" tool="workflow_start" session="{session}" outcome="ok""#);
    assert!(line.contains(&wanted), "{log}");
}
