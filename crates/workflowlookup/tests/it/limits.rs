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
const FILTER_BYTES_MAX: usize = 1024;
const ID_MAX: usize = 64;
const SESSION_ID_BYTES_MAX: usize = 128;

/// The most memory that the server may take while it refuses arguments: the line, and little besides.
#[cfg(target_os = "linux")]
const PEAK_KIB_MAX: usize = 128 * 1024;

/// A call with a value of the given size: a tool and its arguments.
type Call = fn(&mut Agent, usize) -> (&'static str, Value);

/// Builds what a limit is about, with the largest value, and a call that carries it.
const LIMITS: [(&str, usize, Call); 12] = [
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
    ("query of a list", FILTER_BYTES_MAX, |_, size| {
        ("workflow_list", json!({"query": "x".repeat(size)}))
    }),
    ("category of a list", FILTER_BYTES_MAX, |_, size| {
        ("workflow_list", json!({"category": "x".repeat(size)}))
    }),
    ("query of a status", FILTER_BYTES_MAX, |_, size| {
        ("workflow_status", json!({"query": "x".repeat(size)}))
    }),
];

/// Arguments that name something: its tool, its name, its largest size, and what else the call needs.
const IDS: [(&str, &str, usize, &str); 11] = [
    ("workflow_get", "id", ID_MAX, "{}"),
    ("workflow_next", "workflowId", ID_MAX, r#"{"completedSteps": []}"#),
    ("workflow_next", "currentStep", ID_MAX, r#"{"workflowId": "letter", "completedSteps": []}"#),
    ("workflow_validate", "workflowId", ID_MAX, r#"{"stepId": "write-it", "output": "Dear"}"#),
    ("workflow_validate", "stepId", ID_MAX, r#"{"workflowId": "letter", "output": "Dear"}"#),
    ("workflow_start", "workflowId", ID_MAX, "{}"),
    ("workflow_status", "sessionId", SESSION_ID_BYTES_MAX, "{}"),
    ("workflow_advance", "sessionId", SESSION_ID_BYTES_MAX, ADVANCE),
    ("workflow_advance", "stepId", ID_MAX, ADVANCE),
    ("workflow_rewind", "sessionId", SESSION_ID_BYTES_MAX, REWIND),
    ("workflow_rewind", "toStep", ID_MAX, REWIND),
];
const ADVANCE: &str =
    r#"{"sessionId": "none", "revision": 0, "stepId": "write-it", "output": "Dear"}"#;
const REWIND: &str =
    r#"{"sessionId": "none", "revision": 0, "toStep": "write-it", "reason": "Wrong"}"#;
/// Far beyond every limit.
const HUGE: usize = 4 * 1024 * 1024;
/// How long a refusal may be.
const REFUSAL_BYTES_MAX: usize = 1024;

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
        // The session is as it was; only the arguments were wrong.
        assert_eq!(code, -32602, "{what}: {message}");
        assert!(message.contains(&max.to_string()), "{what}: {message}");
    }
    for (tool, name, max, others) in IDS {
        let mut code_for = |size: usize| {
            let mut arguments: Value = serde_json::from_str(others).unwrap();
            arguments[name] = json!("x".repeat(size));
            let result = agent.call(tool, &arguments);
            let length = result.to_string().len();
            assert!(length <= REFUSAL_BYTES_MAX, "{tool}, {name}: {length} bytes");
            refused(&result).1
        };
        assert_ne!(code_for(max), -32602, "{tool}: {name} can have this size, and is unknown");
        assert_eq!([max + 1, HUGE].map(code_for), [-32602; 2], "{tool}: {name}");
    }
    agent.end();
}

#[test]
fn refused_arguments_take_little_memory_and_short_answers() {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    let mut agent = Agent::start(&place);
    let huge = "x".repeat(HUGE);
    for (tool, arguments) in [
        ("workflow_start", json!({"workflowId": "letter", "sharedWith": vec![""; HUGE]})),
        ("workflow_start", json!({"workflowId": "letter", "sharedWith": [huge]})),
        ("workflow_next", json!({"workflowId": "letter", "completedSteps": [huge]})),
        ("workflow_next", json!({"workflowId": "letter", "completedSteps": vec![""; HUGE]})),
        (
            "workflow_next",
            json!({"workflowId": "letter", "completedSteps": ["x".repeat(ID_MAX + 1)]}),
        ),
        ("workflow_list", json!({"cursor": huge})),
        ("workflow_get", json!({(&*huge): 1})),
        (
            "workflow_advance",
            json!({"sessionId": "none", "revision": vec![0; HUGE], "stepId": "write-it", "output": "Dear"}),
        ),
    ] {
        let result = agent.call(tool, &arguments);
        let (message, code) = refused(&result);
        assert_eq!(code, -32602, "{tool}: {}", &message[..message.floor_char_boundary(200)]);
        let length = result.to_string().len();
        assert!(length <= 4 * REFUSAL_BYTES_MAX, "{tool}: {length} bytes");
    }
    #[cfg(target_os = "linux")]
    {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", agent.process.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
    }
    agent.end();
}

#[test]
fn arguments_of_another_type_are_named() {
    let place = Place::new();
    let mut agent = Agent::start(&place);
    let output = json!({"sessionId": "none", "stepId": "write-it"});
    let with = |name: &str, value: Value| {
        let mut arguments = output.clone();
        arguments[name] = value;
        arguments
    };
    for (tool, arguments, said) in [
        ("workflow_status", with("attempt", json!("1")), "attempt must be a whole number"),
        ("workflow_status", with("iteration", json!(1.5)), "iteration must be a whole number"),
        ("workflow_status", with("offset", json!(-1)), "offset must be a whole number"),
        (
            "workflow_validate",
            json!({"workflowId": "letter", "stepId": "write-it", "output": {"text": "Dear"}}),
            "output must be a text",
        ),
        (
            "workflow_advance",
            json!({"sessionId": "none", "revision": 0, "stepId": "write-it", "output": ["Dear"]}),
            "output must be a text",
        ),
    ] {
        let result = agent.call(tool, &arguments);
        let (message, code) = refused(&result);
        assert_eq!(code, -32602, "{message}");
        assert!(message.contains(said), "{message}");
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
