//! A project with a registry, and an agent that works there.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::Place;
use crate::agent::{Agent, Era, Heard};
use crate::transcripts::Process;

pub(super) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A place whose registry names these.
pub(crate) fn place(entries: &[Value]) -> Place {
    let place = Place::new();
    write(&place, entries);
    place
}

pub(super) fn write(place: &Place, entries: &[Value]) {
    place.write_trusted("mcp.registry.json", json!({"servers": entries}).to_string());
}

/// An agent whose client can ask its user, or not.
pub(super) fn agent(place: &Place, era: Era, can_ask: bool) -> Agent {
    let mut command = place.command(&["serve"]);
    command.stderr(Stdio::null());
    let capabilities = if can_ask { json!({"elicitation": {}}) } else { json!({}) };
    Agent::connect(Process::spawn(command), era, capabilities)
}

pub(super) fn arguments(server: &str, tool: &str, arguments: Value) -> Value {
    json!({"server": server, "tool": tool, "arguments": arguments})
}

/// Calls a tool of another server, and lets the user answer whatever they are asked.
pub(super) fn call(
    agent: &mut Agent,
    era: Era,
    called: &Value,
    answer: impl FnMut(&str) -> Value,
) -> Value {
    call_own(agent, era, "call_mcp_tool", called, answer)
}

/// Calls one of our tools, and lets the user answer whatever they are asked.
pub(super) fn call_own(
    agent: &mut Agent,
    era: Era,
    name: &str,
    called: &Value,
    mut answer: impl FnMut(&str) -> Value,
) -> Value {
    let mut params = json!({"name": name, "arguments": called});
    let sent = agent.begin("tools/call", params.clone());
    let mut awaited = sent;
    loop {
        match agent.hear().unwrap() {
            Heard::Told { .. } => {}
            Heard::Asked { id, message } => {
                assert!(era == Era::Legacy);
                let said = answer(&message);
                agent.reply(&id, &said);
            }
            Heard::Answer { id, result } => {
                assert_eq!(id, awaited, "{result}");
                if result["resultType"] != "input_required" {
                    return result;
                }
                assert!(era == Era::Modern);
                let question = &result["inputRequests"]["answer"]["params"];
                let said = answer(question["message"].as_str().unwrap());
                params["inputResponses"] = json!({"answer": said});
                params["requestState"] = result["requestState"].clone();
                awaited = agent.begin("tools/call", params.clone());
            }
        }
    }
}

/// A call that asks nobody.
pub(super) fn simply(agent: &mut Agent, era: Era, called: &Value) -> Value {
    call(agent, era, called, |message| panic!("somebody is asked: {message}"))
}

/// The only text of a result.
pub(super) fn text(result: &Value) -> &str {
    assert!(result.get("isError").is_none(), "{result}");
    result["content"][0]["text"].as_str().unwrap()
}

/// What a tool answers as JSON.
pub(super) fn parsed(result: &Value) -> Value {
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
    serde_json::from_str(text(result)).unwrap()
}

/// What a refusal says, and its error.
pub(super) fn refused(result: &Value) -> (&str, Value) {
    assert_eq!(result["isError"], true, "{result}");
    let text = |at: usize| result["content"][at]["text"].as_str().unwrap();
    (text(0), serde_json::from_str(text(1)).unwrap())
}

/// Waits for something to be told, and gives what is told with it.
pub(super) fn told(agent: &mut Agent, method: &str) -> Value {
    loop {
        match agent.hear().unwrap() {
            Heard::Told { method: own, params } if own == method => return params,
            Heard::Told { .. } => {}
            Heard::Answer { result, .. } => panic!("an answer instead: {result}"),
            Heard::Asked { message, .. } => panic!("a question instead: {message}"),
        }
    }
}
