//! `serve --tools sessions`: no text that an agent reads names a hidden tool, and no program imports one.

use std::process::Stdio;

use serde_json::{Value, json};

use super::Place;
use super::agent::{Agent, Era};
use super::transcripts::Process;

const REGISTRY: &str =
    r#"{"servers": [{"id": "other", "mcp": {"transport": "stdio", "command": "false"}}]}"#;

fn start(place: &Place, options: &[&str]) -> Agent {
    let mut command = place.command(&[&["serve"], options].concat());
    command.stderr(Stdio::null());
    Agent::connect(Process::spawn(command), Era::Modern, json!({}))
}

/// Everything that an agent reads before its first call, and what programs can import.
fn texts(agent: &mut Agent) -> String {
    let mut texts = String::new();
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "investigate-bug"})),
        ("tools/call", json!({"name": "workflow_list", "arguments": {}})),
        (
            "tools/call",
            json!({"name": "describe_mcp", "arguments": {"id": "workflowlookup", "detail": "types"}}),
        ),
    ] {
        let answer: Value = agent.request(method, params);
        texts.push_str(&answer.to_string());
    }
    texts
}

#[test]
fn hidden_tools_are_not_mentioned() {
    let place = Place::new();
    place.write_trusted("mcp.registry.json", REGISTRY);
    let names = ["workflow_next", "workflow_validate"];
    let mut agent = start(&place, &["--tools", "sessions"]);
    let sessions = texts(&mut agent);
    agent.end();
    assert!(sessions.contains("workflow_start") && sessions.contains("workflow_status"));
    assert!(!names.iter().any(|name| sessions.contains(name)), "{sessions}");
    let mut agent = start(&place, &[]);
    let all = texts(&mut agent);
    agent.end();
    assert!(names.iter().all(|name| all.contains(name)), "{all}");
}

#[test]
fn program_cannot_import_hidden_tools() {
    let place = Place::new();
    place.write_trusted("mcp.registry.json", REGISTRY);
    let mut agent = start(&place, &["--tools", "sessions"]);
    let code = r#"
        import * as workflows from "workflowlookup";
        export async function main() { return Object.keys(workflows).sort(); }
    "#;
    let arguments = json!({"code": code, "allowedMcpIds": []});
    let result = agent.call("execute_mcp_code", &arguments);
    let answer: Value =
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    insta::assert_snapshot!(answer["result"], @r#"["default","workflow_get","workflow_lint","workflow_list","workflow_status"]"#);
    agent.end();
}
