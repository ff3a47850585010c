//! Traces of the real server, over stdio and over HTTP: which spans a collector gets, and that nobody notices where it
//! does not take them.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Place;
use super::agent::{Agent, Era, Heard, LETTER, advance, structured};
use super::http_agent::{answer_of, modern};
use super::http_server::Listening;
use super::transcripts::Process;

mod collector;

use collector::{Collector, Manner, Span};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn parent(flags: &str) -> Value {
    json!({"traceparent": format!("00-{TRACE}-{PARENT}-{flags}"), "tracestate": "rojo=1,congo=2"})
}

fn place() -> Place {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    place
}

/// An agent over stdio whose server sends its spans there.
fn agent(place: &Place, collector: &Collector, capabilities: Value) -> Agent {
    let url = collector.url();
    let mut command = place.command(&["serve", "--otlp", &url]);
    command.stderr(Stdio::null());
    Agent::connect(Process::spawn(command), Era::Legacy, capabilities)
}

fn call(agent: &mut Agent, tool: &str, arguments: &Value, meta: Value) -> Value {
    agent.request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

/// What every span has.
fn assert_sound(span: &Span) {
    for (field, digits) in [("traceId", 32), ("spanId", 16)] {
        let text = span.text(field);
        let is_id =
            text.len() == digits && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        assert!(is_id && text.bytes().any(|byte| byte != b'0'), "{span:?}");
    }
    assert_eq!(span.0["kind"], 2, "{span:?}");
    let nanos = |field: &str| Duration::from_nanos(span.text(field).parse().unwrap());
    let (begun, ended) = (nanos("startTimeUnixNano"), nanos("endTimeUnixNano"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    assert!(begun <= ended && ended <= now, "{span:?}");
    assert!(now - begun < Duration::from_secs(600), "{span:?}");
}

fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.text("name") == name).collect()
}

#[test]
fn calls_over_stdio_are_spans_in_their_clients_trace() {
    let place = place();
    let collector = Collector::start(Manner::Takes);
    let mut agent = agent(&place, &collector, json!({}));
    let start = json!({"workflowId": "letter", "goal": "a secret goal"});
    let started = call(&mut agent, "workflow_start", &start, parent("01"));
    let session = structured(&started)["sessionId"].as_str().unwrap().to_owned();
    // Nobody records this one.
    call(&mut agent, "workflow_status", &json!({"sessionId": session}), parent("00"));
    // Refused, by a result.
    let late = advance(&session, 7, "write-it", "Dear secret");
    call(&mut agent, "workflow_advance", &late, json!({"progressToken": 1}));
    // What is malformed begins a new trace.
    for odd in [json!("nonsense"), json!(7), json!(format!("00-{}-{PARENT}-01", "0".repeat(32)))] {
        call(&mut agent, "workflow_list", &json!({}), json!({"traceparent": odd}));
    }
    agent.request("resources/read", json!({"uri": format!("session://{session}")}));
    // Answered without the host: nobody carries it out.
    agent.request("tools/list", json!({}));
    // A tool as a method of its own.
    agent.request(
        "workflow_next",
        json!({"workflowId": "letter", "completedSteps": [], "_meta": parent("01")}),
    );
    agent.end();

    let spans = collector.spans(7);
    spans.iter().for_each(assert_sound);
    let started = named(&spans, "tools/call workflow_start")[0];
    assert_eq!((started.text("traceId"), started.text("parentSpanId")), (TRACE, PARENT));
    assert_eq!(started.text("traceState"), "rojo=1,congo=2");
    assert_eq!(started.0["flags"], 0x301, "sampled, and from elsewhere");
    assert!(!started.is_error());
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "workflow_start"),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", "2025-11-25"),
        ("jsonrpc.request.id", "2"),
        ("network.transport", "pipe"),
        ("workflowlookup.session", &session),
        ("workflowlookup.outcome", "ok"),
    ] {
        assert_eq!(started.attribute(key), Some(value), "{key}");
    }
    for key in ["error.type", "workflowlookup.principal", "network.protocol.name"] {
        assert_eq!(started.attribute(key), None, "{key}");
    }

    let refused = named(&spans, "tools/call workflow_advance")[0];
    assert_eq!(refused.0.get("parentSpanId"), None);
    for (key, value) in [
        ("error.type", "tool_error"),
        ("workflowlookup.code", "-32005"),
        ("workflowlookup.outcome", "refused"),
        ("workflowlookup.session", &session),
    ] {
        assert_eq!(refused.attribute(key), Some(value), "{key}");
    }
    assert!(!refused.is_error(), "it is the agent's");

    let listed = named(&spans, "tools/call workflow_list");
    let mut traces: Vec<&str> = listed.iter().map(|span| span.text("traceId")).collect();
    traces.sort_unstable();
    traces.dedup();
    assert_eq!((listed.len(), traces.len()), (3, 3), "each has one of its own");
    assert!(listed.iter().all(|span| span.0.get("parentSpanId").is_none()));

    let read = named(&spans, "resources/read")[0];
    assert_eq!(read.attribute("mcp.resource.uri"), Some(&*format!("session://{session}")));
    assert_eq!(read.attribute("workflowlookup.session"), Some(&*session));
    let method = named(&spans, "workflow_next")[0];
    assert_eq!(method.attribute("mcp.method.name"), Some("workflow_next"));
    assert_eq!(method.text("traceId"), TRACE);

    let all = format!("{spans:?}");
    assert!(!all.contains("secret"), "what agents write is nobody's business: {all}");
    assert_eq!(collector.rest().len(), 0);
}

#[test]
fn calls_over_http_are_spans_of_their_principals() {
    let place = place();
    let token = place.run(&["token", "new", "ann"]).stdout;
    let token = format!("Bearer {}", token.trim());
    let collector = Collector::start(Manner::Takes);
    let url = collector.url();
    let command = place.command(&["serve", "--http", "127.0.0.1:0", "--otlp", &url]);
    let server = Listening::spawn(command);
    let send = |params: Value| {
        let request = modern("tools/call", params, &json!({})).header("Authorization", &token);
        let traced = parent("01");
        let text = |key: &str| traced[key].as_str().unwrap().to_owned();
        let request = request.with_meta("traceparent", &text("traceparent"));
        answer_of(&request.send(server.address).unwrap())
    };
    let started = send(json!({"name": "workflow_start", "arguments": {"workflowId": "letter"}}));
    let session = structured(&started["result"])["sessionId"].as_str().unwrap().to_owned();
    send(json!({"name": "workflow_get", "arguments": {}}));

    let spans = collector.spans(2);
    spans.iter().for_each(assert_sound);
    let started = named(&spans, "tools/call workflow_start")[0];
    assert_eq!((started.text("traceId"), started.text("parentSpanId")), (TRACE, PARENT));
    for (key, value) in [
        ("mcp.protocol.version", "2026-07-28"),
        ("jsonrpc.request.id", "1"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("workflowlookup.principal", "ann"),
        ("workflowlookup.session", &session),
    ] {
        assert_eq!(started.attribute(key), Some(value), "{key}");
    }
    let bad = named(&spans, "tools/call workflow_get")[0];
    assert_eq!(bad.attribute("error.type"), Some("tool_error"));
    assert_eq!(bad.attribute("workflowlookup.code"), Some("-32602"));
    let all = format!("{spans:?}");
    assert!(!all.contains(token.trim_start_matches("Bearer ")), "a token is never sent");
    server.end();
}

/// While the client's user is asked the request goes on, and so does its span.
#[test]
fn a_call_that_asks_is_one_span() {
    let place = place();
    let collector = Collector::start(Manner::Takes);
    let mut agent = agent(&place, &collector, json!({"elicitation": {}}));
    let session = agent.start_session("letter");
    agent.call("workflow_advance", &advance(&session, 0, "write-it", "Dear Ada"));
    agent.begin_call("workflow_advance", &advance(&session, 1, "send-it", "by post"));
    let Some(Heard::Asked { id, .. }) = agent.hear() else { panic!("nobody is asked") };
    let content = json!({"decision": "approve"});
    agent.reply(&id, &json!({"action": "accept", "content": content}));
    let (_, answer) = agent.answer();
    assert_eq!(structured(&answer)["accepted"], true, "{answer}");
    agent.end();
    let spans = collector.spans(3);
    let advanced = named(&spans, "tools/call workflow_advance");
    let asked: Vec<_> =
        advanced.iter().map(|span| span.attribute("workflowlookup.asked")).collect();
    assert_eq!(asked, [None, Some("true")]);
    assert_eq!(advanced[1].attribute("workflowlookup.outcome"), Some("ok"));
}

/// What we could not do is an error; a store that is a folder cannot be opened.
#[test]
fn what_goes_wrong_with_us_is_an_error() {
    let place = place();
    fs::create_dir_all(place.home().join(".local/state/workflowlookup/sessions.db")).unwrap();
    let collector = Collector::start(Manner::Takes);
    let mut agent = agent(&place, &collector, json!({}));
    agent.call("workflow_start", &json!({"workflowId": "letter"}));
    let read = json!({"uri": "session://00000000000000000000"});
    let request = json!({"jsonrpc": "2.0", "id": 9, "method": "resources/read", "params": read});
    agent.process.send(request.to_string());
    assert_eq!(agent.process.receive().unwrap()["error"]["code"], -32006);
    agent.end();
    let spans = collector.spans(2);
    let started = named(&spans, "tools/call workflow_start")[0];
    assert_eq!(started.0["status"], json!({"code": 2, "message": "Storage error"}));
    assert_eq!(started.attribute("workflowlookup.code"), Some("-32006"));
    let read = named(&spans, "resources/read")[0];
    assert_eq!(read.0["status"], json!({"code": 2, "message": "Storage error"}));
    assert_eq!(read.attribute("rpc.response.status_code"), Some("-32006"));
    assert_eq!(read.attribute("error.type"), Some("-32006"));
    assert_eq!(read.attribute("workflowlookup.outcome"), Some("fault"));
}

#[test]
fn nothing_is_sent_that_nobody_asked_for() {
    let place = place();
    let collector = Collector::start(Manner::Takes);
    let mut command = place.command(&["serve"]);
    command.stderr(Stdio::null()).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, json!({}));
    call(&mut agent, "workflow_list", &json!({}), parent("01"));
    agent.end();
    assert_eq!(collector.connections.load(Ordering::SeqCst), 0);
}

/// More calls than spans may wait: each is answered although nobody takes any of them, and the process ends.
#[test]
fn a_collector_that_hangs_keeps_nobody_waiting() {
    const CALLS: usize = 5_000;
    let place = place();
    let collector = Collector::start(Manner::Hangs);
    let url = collector.url();
    let arguments = json!({"workflowId": "letter", "completedSteps": []});
    let next = json!({"name": "workflow_next", "arguments": arguments});
    let mut input = String::new();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    for (id, method, params) in std::iter::once((0, "initialize", hello))
        .chain((1..=CALLS).map(|id| (id, "tools/call", next.clone())))
    {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        input.push_str(&format!("{request}\n"));
    }
    // Read and written at once, so that neither side has to wait for the other.
    let file = place.project().join("input");
    fs::write(&file, input).unwrap();
    let mut command = place.command(&["serve", "--otlp", &url]);
    command.stdin(fs::File::open(file).unwrap()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    let answers = str::from_utf8(&done.stdout).unwrap().lines().count();
    assert_eq!(answers, CALLS + 1);
    let log = str::from_utf8(&done.stderr).unwrap();
    assert!(log.contains("the last spans could not be sent in time"), "{log}");
    // Who waits for a place loses none for want of one, but only those that the collector did not take in its time.
    assert!(!log.contains("full=0"), "{log}");
    assert!(collector.requests.load(Ordering::SeqCst) >= 1, "it was tried");
}

#[test]
fn a_collector_that_is_away_keeps_nobody_waiting() {
    let place = place();
    // Nobody listens where somebody has just been.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = place.project().join("log");
    let mut command = place.command(&["serve", "--otlp", &format!("http://{address}")]);
    command.stderr(fs::File::create(&log).unwrap());
    let mut agent = Agent::connect(Process::spawn(command), Era::Legacy, json!({}));
    (0..3).for_each(|_| drop(agent.call("workflow_list", &json!({}))));
    agent.end();
    let log = fs::read_to_string(log).unwrap();
    let complaints: Vec<&str> =
        log.lines().filter(|line| line.contains("spans were lost")).collect();
    assert_eq!(complaints.len(), 1, "{log}");
    assert!(complaints[0].contains("failed=3"), "{log}");
}

/// A collector that has too much to do is tried again; one that will never take it is not.
#[test]
fn what_a_collector_does_not_take_now_is_sent_again() {
    for (status, arrive) in [(503, 1), (400, 0)] {
        let place = place();
        let collector = Collector::start(Manner::Refuses(status, 1));
        let mut agent = agent(&place, &collector, json!({}));
        agent.call("workflow_list", &json!({}));
        agent.end();
        assert_eq!(collector.rest().len(), arrive, "after {status}");
        assert_eq!(collector.requests.load(Ordering::SeqCst), 1 + arrive);
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    let done = Place::new().run(&["serve", "--otlp", "collector:4318"]);
    insta::assert_snapshot!(done.shown(), @r"
    exit 1
    --- stderr
    error: invalid value 'collector:4318' for '--otlp <URL>': an address begins with `http://` or `https://`

    For more information, try '--help'.
    ");
}
