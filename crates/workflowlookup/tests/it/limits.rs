//! Every limit of `docs/sessions.md`, on every channel that takes such a value: the longest value is accepted, and one byte
//! more is refused.

use serde_json::{Value, json};

use crate::Place;
use crate::agent::{Agent, LETTER, advance, refused, structured};

const OUTPUT_BYTES_MAX: usize = 256 * 1024;
const CONTEXT_BYTES_MAX: usize = 256 * 1024;
const GOAL_BYTES_MAX: usize = 16 * 1024;
const REASON_BYTES_MAX: usize = 4 * 1024;
const KEY_BYTES_MAX: usize = 256;
const SHARES_MAX: usize = 100;
const PRINCIPAL_BYTES_MAX: usize = 2 * 1024;

/// A call with a value of the given size: a tool and its arguments.
type Call = fn(&mut Agent, usize) -> (&'static str, Value);

/// Builds what a limit is about, with the largest value, and a call that carries it.
const LIMITS: [(&str, usize, Call); 9] = [
    ("output", OUTPUT_BYTES_MAX, |agent, size| {
        let output = format!("Dear{}", "x".repeat(size - "Dear".len()));
        ("workflow_advance", advance(&agent.start_session("letter"), 0, "write-it", &output))
    }),
    ("context of an advance", CONTEXT_BYTES_MAX, |agent, size| {
        let mut call = advance(&agent.start_session("letter"), 0, "write-it", "Dear Ada");
        call["context"] = context(size);
        ("workflow_advance", call)
    }),
    ("context of a start", CONTEXT_BYTES_MAX, |_, size| start("context", context(size))),
    ("goal", GOAL_BYTES_MAX, |_, size| start("goal", json!("x".repeat(size)))),
    ("key", KEY_BYTES_MAX, |_, size| start("key", json!("x".repeat(size)))),
    ("names in sharedWith", SHARES_MAX, |_, size| {
        start("sharedWith", (0..size).map(|number| json!(format!("name-{number}"))).collect())
    }),
    ("name in sharedWith", PRINCIPAL_BYTES_MAX, |_, size| {
        start("sharedWith", json!(["x".repeat(size)]))
    }),
    ("reason of a rewind", REASON_BYTES_MAX, |agent, size| rewind(agent, size, false)),
    ("reason of a fork", REASON_BYTES_MAX, |agent, size| rewind(agent, size, true)),
];

#[test]
fn documented_limits_of_tool_arguments_hold() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&place);
    for (what, max, call) in LIMITS {
        let (tool, arguments) = call(&mut agent, max);
        structured(&agent.call(tool, &arguments));
        let (tool, arguments) = call(&mut agent, max + 1);
        let result = agent.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{what}: {} bytes were accepted", max + 1);
        let (message, code) = refused(&result);
        let names_limit = message.contains(&max.to_string());
        // The session is as it was; only the arguments were wrong.
        assert!(names_limit || code == -32602, "{what}: {code} {message}");
    }
    agent.end();
}

#[test]
fn documented_limit_of_reasons_holds_on_the_command_line() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&place);
    for verb in ["approve", "reject"] {
        let session = agent.start_session("letter");
        agent.call("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
        agent.call("workflow_advance", &advance(&session, 1, "send-it", "by post"));
        let decide = |size: usize| {
            let reason = "x".repeat(size);
            place.run(&["session", verb, &session, "--version", "3", "--reason", &reason])
        };
        let refused = decide(REASON_BYTES_MAX + 1);
        assert_eq!(refused.status, 1, "{}", refused.shown());
        assert!(refused.stderr.contains("4096"), "{}", refused.shown());
        assert_eq!(decide(REASON_BYTES_MAX).status, 0);
    }
    agent.end();
}

fn start(field: &str, value: Value) -> (&'static str, Value) {
    ("workflow_start", json!({"workflowId": "letter", field: value}))
}

/// One variable that has this size as JSON.
fn context(size: usize) -> Value {
    let empty = json!({"notes": ""}).to_string().len();
    json!({"notes": "x".repeat(size - empty)})
}

fn rewind(agent: &mut Agent, size: usize, fork: bool) -> (&'static str, Value) {
    let session = agent.start_session("letter");
    let reason = "x".repeat(size);
    let arguments = json!({
        "sessionId": session, "revision": 0, "toStep": "write-it", "reason": reason, "fork": fork,
    });
    ("workflow_rewind", arguments)
}
