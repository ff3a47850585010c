//! Texts of others never reach a person with characters that reorder or hide what is read.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::Place;
use crate::agent::{Agent, Era, Heard, LETTER, advance, refused, structured};
use crate::transcripts::Process;

/// Everything that Unicode has to turn the direction of writing around, and a zero-width space.
const DECEPTIVE: &str = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200b}";

#[track_caller]
fn assert_honest(text: &str) {
    assert!(!text.contains(|letter| DECEPTIVE.contains(letter)), "{text:?}");
}

/// A session that waits, with deceptive texts wherever an agent may write some.
fn waiting(agent: &mut Agent) -> String {
    let start = json!({"workflowId": "letter", "goal": format!("farewell{DECEPTIVE}")});
    let started = agent.call("workflow_start", &start);
    let session = structured(&started)["sessionId"].as_str().unwrap().to_owned();
    agent.call("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    session
}

fn last_step(session: &str) -> Value {
    let mut last = advance(session, 1, "send-it", &format!("by post{DECEPTIVE}"));
    last["context"] = json!({format!("na{DECEPTIVE}me"): format!("va{DECEPTIVE}lue")});
    last
}

#[test]
fn commands_show_no_deceptive_characters() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER.replace("Writes", &format!("Writes{DECEPTIVE}")));
    let mut agent = Agent::start(&place);
    let session = waiting(&mut agent);
    agent.call("workflow_advance", &last_step(&session));
    // What the agent gets back is what it handed in.
    let status = agent.status(&session);
    assert_eq!(status["waitingOutput"], format!("by post{DECEPTIVE}"));
    agent.end();
    for words in [
        &["list"][..],
        &["show", "letter"],
        &["session", "list"],
        &["session", "list", "--json"],
        &["session", "show", &session],
        &["session", "show", &session, "--json"],
        &["session", "show", &session, "--markdown"],
    ] {
        let done = place.run(words);
        assert_eq!(done.status, 0, "{}", done.shown());
        assert_honest(&done.shown());
    }
}

#[test]
fn listings_and_prompts_show_no_deceptive_characters() {
    let place = Place::new();
    let mut workflow: Value = serde_json::from_str(LETTER).unwrap();
    for field in ["name", "description"] {
        workflow[field] = json!(format!("A letter{DECEPTIVE}"));
    }
    for field in ["preconditions", "clarificationPrompts", "metaGuidance"] {
        workflow[field] = json!([format!("To whom{DECEPTIVE}?")]);
    }
    place.write("workflows/letter.json", workflow.to_string());
    let mut agent = Agent::start(&place);
    let listing = agent.call("workflow_list", &json!({}));
    let text = listing["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("A letter\u{fffd}"), "{text}");
    assert_honest(text);
    let arguments = json!({"q1": format!("Ada{DECEPTIVE}")});
    for (method, params) in [
        ("resources/list", json!({})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "letter", "arguments": arguments})),
    ] {
        let result = agent.request(method, params).to_string();
        assert!(result.contains("letter\u{fffd}"), "{method}: {result}");
        assert_honest(&result);
    }
    agent.end();
}

#[test]
fn errors_show_no_deceptive_characters() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&place);
    let session = agent.start_session("letter");
    let odd = format!("odd{DECEPTIVE}");
    for (tool, arguments) in [
        ("workflow_get", json!({"id": "letter", odd.as_str(): 1})),
        ("workflow_next", json!({"workflowId": "letter", "completedSteps": [odd.as_str()]})),
        ("workflow_start", json!({"workflowId": odd.as_str()})),
        ("workflow_advance", advance(&session, 0, &odd, "Dear Ada")),
        ("workflow_status", json!({"sessionId": odd.as_str()})),
    ] {
        let result = agent.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{tool}");
        assert_honest(result["content"][0]["text"].as_str().unwrap());
    }
    agent.end();
}

#[test]
fn gate_question_spells_out_deceptive_characters() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut command = place.command(&["serve"]);
    command.stderr(Stdio::null());
    let capabilities = json!({"elicitation": {}});
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, capabilities);
    let session = waiting(&mut agent);
    agent.begin_call("workflow_advance", &last_step(&session));
    let (id, message) = loop {
        if let Heard::Asked { id, message } = agent.hear().unwrap() {
            break (id, message);
        }
    };
    assert_honest(&message);
    for text in ["by post\\u061c", "farewell\\u061c", "na\\u061c", "va\\u061c", "\\u202e"] {
        assert!(message.contains(text), "{text}: {message}");
    }
    agent.reply(&id, &json!({"action": "accept", "content": {"decision": "approve"}}));
    let (_, result) = agent.answer();
    assert_eq!(structured(&result)["isComplete"], false);
    agent.end();
}

#[test]
fn logs_escape_deceptive_characters() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut lines = String::new();
    for (id, method) in [(1, "initialize"), (2, "tools/call")] {
        let params = match method {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
            _ => json!({"name": "workflow_start", "arguments": {"workflowId": "let\u{202e}ter"}}),
        };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        lines.push_str(&format!("{request}\n"));
    }
    for format in ["text", "json"] {
        let serve = ["serve", "--workflows", "no\u{202e}where"];
        let log = ["--log-level", "debug", "--log-format", format, "--log-wire", "wire"];
        let done = place.run_with_input(&[&serve[..], &log].concat(), &lines);
        assert!(done.stderr.contains("no\\u202ewhere"), "{}", done.stderr);
        assert_honest(&done.stderr);
    }
    let wire = std::fs::read_to_string(place.project().join("wire")).unwrap();
    assert_honest(&wire);
    // Nothing is lost.
    let sent = wire.lines().find_map(|line| {
        line.split_once(" > ").filter(|(_, message)| message.contains("tools/call"))
    });
    let sent: Value = serde_json::from_str(sent.unwrap().1).unwrap();
    assert_eq!(sent["params"]["arguments"]["workflowId"], "let\u{202e}ter");
}

#[test]
fn session_is_shared_with_no_name_that_deceives() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&place);
    let session = agent.start_session("letter");
    for letter in DECEPTIVE.chars().chain(['\u{1b}', '\u{200d}', '\u{e0041}']) {
        let name = format!("an{letter}na");
        let result =
            agent.call("workflow_start", &json!({"workflowId": "letter", "sharedWith": [name]}));
        assert_eq!(refused(&result).1, -32602, "{name:?}");
        let shared = place.run(&["session", "share", &session, &name]);
        assert_eq!(shared.status, 1, "{}", shared.shown());
        assert_honest(&shared.shown());
    }
    let shown = place.run(&["session", "share", &session, "anna", "Zoë 名"]);
    assert_eq!(shown.status, 0, "{}", shown.shown());
    agent.end();
}
