//! What every tool and method costs with hostile requests, definitions and sessions: work in steps, memory in bytes, never
//! seconds. The engine's test (`engine/tests/cost.rs`) has what conditions, rules and templates cost. This one goes from the
//! line of a client to the reply, and covers what the engine does not see: reading the arguments, finding what is asked
//! for, and writing the answer.
//!
//! Steps are those that budgets spend, and as many as the memory takes that is asked for. The baseline is linear: a step
//! for each byte that the call reads, and the memory of the same bytes read as JSON.
//!
//! `cargo test -p service cost -- --nocapture` prints all cases; `WORKFLOWLOOKUP_LONG` takes requests of the full size.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use catalog::{Kind, Source};
use counting_allocator::{CountingAllocator, Requested, peak_bytes, requested};
use mcp::{Action, Connection, Transport};
use registry::{Places, Variables};
use sandbox::{Limits, Mode, Sandbox};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tool_schema::arguments::Checker;
use tool_schema::tool::Json;
use transport::block_on;

use super::*;
use crate::audit::Audit;
use crate::server::Toolset;
use crate::server::tools::TOOLS;
use crate::sessions::{KeyPlace, Place, StoreUrl};
use crate::trust::WorkspaceTrust;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How much more than the baseline a call may take.
const WORK_MAX: u64 = 50;
const MEMORY_MAX: usize = 20;
/// What a check against the schema of an upstream may take, whatever the size of the arguments.
const CHECK_STEPS_MAX: u64 = 2_000_000;
/// What one allocation takes, and how many bytes of it are written in one step.
const ALLOCATION_STEPS: u64 = 5;
const COPIED_BYTES_PER_STEP: u64 = 16;
/// Less than this counts as this much: what a call reads, and the memory of the baseline.
const READ_BYTES_MIN: usize = 40 * 1024;
const BASELINE_BYTES_MIN: usize = 512 * 1024;

/// How many bytes a request has in the short form, and at most.
const SHORT_BYTES: usize = 32 * 1024;
const LONG_BYTES: usize = 1000 * 1024;
const DEFINITION_BYTES: usize = 128 * 1024;
/// Small workflows beside the hostile ones, and their descriptions.
const WORKFLOWS: usize = 300;
const DESCRIPTION_BYTES: usize = 1000;
/// Rejected outputs in the log that `workflow_status` looks through.
const ATTEMPTS: u64 = 40;
const ATTEMPT_BYTES: usize = 16 * 1024;

/// The part of `docs/cost.md` that this test writes begins here.
const HEADING: &str = "## Tools and methods\n";
const TEXT: &str = "
From the line of a client to the reply, with hostile requests, definitions and sessions: unknown, nested and oversized
arguments for every tool, and the largest answers. The test behind it is `crates/service/src/server/host/cost.rs`.
Memory that is asked for counts as work: five steps for an allocation, and one for 16 bytes of it. The numbers are those of
the dearest case, rounded up to a power of two, for each byte that the call reads (40 KiB at least): the request, the
definitions, and the log of the session. Work is at most 50 times the input, and memory at most 20 times; but checking
arguments against the schema of an upstream takes up to two million steps whatever the size of the arguments.

| call | cases | × input | × memory |
|---|---:|---:|---:|
";

#[test]
fn calls_cost_no_more_than_a_multiple_of_what_they_read() {
    let long;
    let rows = match std::env::var_os("WORKFLOWLOOKUP_LONG") {
        Some(_) => {
            long = measure_all(LONG_BYTES);
            &long
        }
        None => &*SHORT,
    };
    let mut wrong = Vec::new();
    for row in rows {
        let Row { call, case, read, work, memory_times, .. } = row;
        let line = format!(
            "{call}, {case}: {read} bytes, {} x work, {memory_times} x memory",
            row.work_times()
        );
        println!("{line}");
        let floor = if row.is_check { CHECK_STEPS_MAX } else { 0 };
        let limit = floor + WORK_MAX * (*read).max(READ_BYTES_MIN) as u64;
        if *work > limit || *memory_times > MEMORY_MAX {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `cargo xtask generate` writes the part of the page.
#[test]
fn generated_part_about_tools_and_methods() {
    let mut calls: BTreeMap<&str, (usize, u64, usize)> = BTreeMap::new();
    for row in &*SHORT {
        let (cases, work, memory) = calls.entry(&row.call).or_default();
        *cases += 1;
        *work = row.work_times().max(*work);
        *memory = row.memory_times.max(*memory);
    }
    let mut part = format!("{HEADING}{TEXT}");
    for (call, (cases, work, memory)) in calls {
        let (work, memory) = (work.next_power_of_two(), memory.next_power_of_two());
        writeln!(part, "| `{call}` | {cases} | {work} | {memory} |").unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cost.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let (before, found) = page.split_at(page.find(HEADING).unwrap_or(page.len()));
    if std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some() {
        std::fs::write(&path, format!("{before}{part}")).unwrap();
        return;
    }
    assert!(found == part, "docs/cost.md is not current: run `cargo xtask generate`");
}

static SHORT: LazyLock<Vec<Row>> = LazyLock::new(|| measure_all(SHORT_BYTES));

struct Row {
    call: String,
    case: String,
    /// It is only a check against the schema of an upstream.
    is_check: bool,
    /// How many bytes it reads.
    read: usize,
    work: u64,
    memory_times: usize,
}

impl Row {
    fn work_times(&self) -> u64 {
        self.work.div_ceil(self.read.max(READ_BYTES_MIN) as u64)
    }
}

/// What a call reads beside its request.
#[derive(Debug, Clone, Copy, Default)]
struct Reads {
    definitions: usize,
    log: usize,
}

struct Served {
    _home: TempDir,
    host: Host,
    connection: Connection,
    rows: Vec<Row>,
    /// All definitions together.
    catalog_bytes: usize,
}

fn measure_all(bytes: usize) -> Vec<Row> {
    let mut served = Served::start();
    served.measure_answers(bytes);
    served.measure_output();
    for tool in TOOLS {
        for (case, arguments) in hostile_arguments(&(tool.about)().input_schema, bytes) {
            served.call_tool(tool.name, &case, &arguments, Reads::default());
            if tool.is_method {
                served.call_method(tool.name, &case, &arguments, Reads::default());
            }
        }
    }
    served.measure_checks(bytes);
    served.rows
}

impl Served {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("workflows");
        std::fs::create_dir(&folder).unwrap();
        let mut catalog_bytes = 0;
        for definition in definitions() {
            let text = definition.to_string();
            catalog_bytes += text.len();
            let id = definition["id"].as_str().unwrap();
            std::fs::write(folder.join(format!("{id}.json")), text).unwrap();
        }
        let registry = home.path().join("registry.json");
        let entry =
            json!({"id": "none", "mcp": {"transport": "http", "url": "http://127.0.0.1:1"}});
        std::fs::write(&registry, json!({"servers": [entry]}).to_string()).unwrap();
        let place = Place {
            store: StoreUrl::Sqlite(home.path().join("sessions.db")),
            key: KeyPlace::File(home.path().join("key")),
            anchor: None,
        };
        let app = App::open(
            vec![Source::Folder { kind: Kind::Option, path: folder }],
            WorkspaceTrust::new(None, None),
            Some(place),
            Audit::choose(Some(&home.path().join("audit.jsonl"))),
        );
        let places = Places {
            named: Some(registry),
            project: None,
            user: None,
            variables: Variables::default(),
            trust: None,
        };
        let sandbox = Sandbox::new(Mode::Thread, "none".into());
        let code = upstreams::Code { sandbox, limits: Limits::default() };
        let upstreams = Upstreams::new(places, None, code);
        let host = Host::new(app, Observer::new(None, false), upstreams, Toolset::default());
        let connection = Connection::new(host.server(), Transport::Stdio);
        let mut served = Self { _home: home, host, connection, rows: Vec::new(), catalog_bytes };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        served.answer(&request("initialize", &params));
        // What is made once, whoever calls first, belongs to nobody's call.
        for tool in TOOLS {
            let call = json!({"name": tool.name, "arguments": {"unknown": 1}});
            served.answer(&request("tools/call", &call));
        }
        served
    }

    /// The calls that read definitions or make long answers of them.
    fn measure_answers(&mut self, bytes: usize) {
        let catalog = Reads { definitions: self.catalog_bytes, log: 0 };
        let words = json!({"query": "a ".repeat(512)});
        for (case, arguments) in [("all of many", json!({})), ("many words", words)] {
            self.call_tool("workflow_list", case, &arguments, catalog);
            self.call_method("workflow_list", case, &arguments, catalog);
        }
        let definition = Reads { definitions: DEFINITION_BYTES, log: 0 };
        for id in HOSTILE {
            let arguments = json!({"id": id});
            self.call_tool("workflow_get", id, &arguments, definition);
            self.call_method("workflow_get", id, &arguments, definition);
            let uri = json!({"uri": format!("workflow://{id}")});
            self.call_method("resources/read", id, &uri, definition);
            self.call_method("prompts/get", id, &json!({"name": id}), definition);
        }
        let answers: Map<String, Value> = (1..=100)
            .map(|at| (format!("q{at}"), json!("x".repeat(bytes.min(200 * 1024) / 100))))
            .collect();
        let prompt = json!({"name": "questions", "arguments": answers});
        self.call_method("prompts/get", "answers to a hundred questions", &prompt, definition);
        for (case, argument) in [
            ("every id", json!({"name": "id", "value": ""})),
            ("a long value", json!({"name": "id", "value": "x".repeat(bytes.min(200 * 1024))})),
        ] {
            let reference = json!({"type": "ref/resource", "uri": "workflow://{id}"});
            let params = json!({"ref": reference, "argument": argument});
            self.call_method("completion/complete", case, &params, catalog);
        }
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            self.call_method(method, "all of many", &json!({}), catalog);
        }
        let long = "x".repeat(bytes.min(200 * 1024));
        self.call_method("prompts/get", "a long name", &json!({"name": long}), Reads::default());
        for scheme in ["workflow://", "session://", "mcp+none:", ""] {
            let uri = json!({"uri": format!("{scheme}{long}")});
            let case = format!("a long URI `{scheme}…`");
            self.call_method("resources/read", &case, &uri, Reads::default());
        }
    }

    /// An output of a session, read back: the log is long, and JSON writes the output six times as long.
    fn measure_output(&mut self) {
        let call = json!({"name": "workflow_start", "arguments": {"workflowId": "output"}});
        let begun: Value =
            serde_json::from_str(&self.answer(&request("tools/call", &call))).unwrap();
        let session = begun["result"]["structuredContent"]["sessionId"].as_str().unwrap();
        let output = "\u{1}".repeat(ATTEMPT_BYTES);
        for revision in 0..ATTEMPTS {
            let arguments = json!({"sessionId": session, "revision": revision,
                "stepId": "work", "output": format!("{revision} {output}")});
            let call = json!({"name": "workflow_advance", "arguments": arguments});
            let answer = self.answer(&request("tools/call", &call));
            assert!(answer.contains("Not accepted"), "{answer}");
        }
        let log = usize::try_from(ATTEMPTS).unwrap() * 6 * ATTEMPT_BYTES;
        let reads = Reads { definitions: 0, log };
        for (case, more) in [
            ("the last attempt", json!({})),
            ("the first attempt", json!({"attempt": 1})),
            ("an attempt that never was", json!({"attempt": 1_000_000})),
            ("the end of an output", json!({"offset": ATTEMPT_BYTES})),
        ] {
            let mut arguments = json!({"sessionId": session, "stepId": "work"});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            self.call_tool("workflow_status", case, &arguments, reads);
        }
        for uri in [format!("session://{session}"), format!("session://{session}/work?attempt=1")] {
            let case = if uri.contains('?') { "an output" } else { "a session" };
            self.call_method("resources/read", case, &json!({"uri": uri}), reads);
        }
        let reference = json!({"type": "ref/resource", "uri": "session://{id}"});
        let params = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
        self.call_method("completion/complete", "sessions", &params, reads);
    }

    /// Arguments that are checked against the schema that an upstream has for them.
    fn measure_checks(&mut self, bytes: usize) {
        for (case, schema, value) in hostile_schemas(bytes) {
            let checker = Checker::default();
            let text = value.to_string();
            let schema = Json::from(&schema);
            let row = measure("call_mcp_tool", case, &text, Reads::default(), || {
                drop(checker.check(&schema, &value));
            });
            self.rows.push(Row { is_check: true, ..row });
        }
    }

    fn call_tool(&mut self, tool: &str, case: &str, arguments: &Value, reads: Reads) {
        let line = request("tools/call", &json!({"name": tool, "arguments": arguments}));
        self.call(tool, case, &line, reads);
    }

    fn call_method(&mut self, method: &str, case: &str, params: &Value, reads: Reads) {
        let name = match method.contains('/') {
            true => method.to_owned(),
            false => format!("{method} (method)"),
        };
        self.call(&name, case, &request(method, params), reads);
    }

    fn call(&mut self, call: &str, case: &str, line: &str, reads: Reads) {
        let row = measure(call, case, line, reads, || {
            let reply = self.answer(line);
            assert!(reply.contains("\"id\":1"), "{call}, {case}: {reply}");
        });
        self.rows.push(row);
    }

    /// The reply to a line, on this thread as far as the call is not made on another one anyway.
    fn answer(&mut self, line: &str) -> String {
        let Self { host, connection, .. } = self;
        let mut actions = Vec::new();
        connection.receive(line.as_bytes(), &mut actions);
        let mut reply = String::new();
        while !actions.is_empty() {
            for action in std::mem::take(&mut actions) {
                match action {
                    Action::Call { ticket, call, caller } => {
                        let outcome = waiting::too_large(&call).unwrap_or_else(|| {
                            let (app, upstreams) = (host.app.clone(), Arc::clone(&host.upstreams));
                            block_on(carry_out(app, upstreams, call, caller, Context::default()))
                        });
                        connection.finish(ticket, outcome, &mut actions);
                    }
                    Action::Reply(answer) => reply = answer.text,
                    _ => {}
                }
            }
        }
        reply
    }
}

fn measure(call: &str, case: &str, text: &str, reads: Reads, run: impl FnOnce()) -> Row {
    let spent = budget::spent_by_thread();
    let (((), memory), peak) = peak_bytes(|| requested(run));
    let work = budget::spent_by_thread() - spent + memory_steps(memory);
    let (_, baseline) = peak_bytes(|| drop(serde_json::from_str::<Value>(text)));
    let read = text.len() + reads.definitions + reads.log;
    let baseline = baseline.max(2 * read).max(BASELINE_BYTES_MIN);
    let memory_times = peak.div_ceil(baseline);
    let (call, case) = (call.to_owned(), case.to_owned());
    Row { call, case, is_check: false, read, work, memory_times }
}

fn memory_steps(requested: Requested) -> u64 {
    requested.count * ALLOCATION_STEPS + requested.bytes / COPIED_BYTES_PER_STEP
}

fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// The definitions that are read as a whole.
const HOSTILE: [&str; 4] = ["steps", "quotes", "questions", "conditions"];

fn definitions() -> Vec<Value> {
    let many = |item: &dyn Fn(usize) -> Value, each: usize| -> Value {
        (0..DEFINITION_BYTES / each).map(item).collect()
    };
    let step = json!([{"id": "work", "title": "Work", "prompt": "Work."}]);
    let steps = many(&|at| json!({"id": format!("step-{at}"), "title": "T", "prompt": "P"}), 45);
    let quotes = json!([{"id": "work", "title": "Work", "prompt": "Work.",
        "guidance": many(&|_| json!("\"\"\"\"\"\"\"\""), 20)}]);
    let conditions = json!([{"id": "work", "title": "Work", "prompt": "Work.",
        "runCondition": {"and": many(&|_| json!({"var": "a"}), 12)}}]);
    let checked = json!([{"id": "work", "title": "Work", "prompt": "Work.",
        "validationCriteria": {"type": "contains", "value": "Fix", "message": "Say how"}}]);
    let mut all = vec![
        definition("steps", json!({"steps": steps})),
        definition("quotes", json!({"steps": quotes})),
        definition("conditions", json!({"steps": conditions})),
        definition("output", json!({"steps": checked})),
        definition(
            "questions",
            json!({"clarificationPrompts": many(&|at| json!(format!("{at}?")), 9), "steps": step}),
        ),
    ];
    all.extend((0..WORKFLOWS).map(|at| {
        let description = "a ".repeat(DESCRIPTION_BYTES / 2);
        definition(&format!("small-{at}"), json!({"description": description, "steps": step}))
    }));
    all
}

fn definition(id: &str, more: Value) -> Value {
    let mut all = json!({"id": id, "name": id, "version": "1.0.0", "description": "Hostile"});
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

/// Arguments that no tool wants, of about so many bytes.
fn hostile_arguments(schema: &Value, bytes: usize) -> Vec<(String, Value)> {
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let each = |value: &dyn Fn(usize) -> Value| -> Value {
        let bytes = bytes / names.len().max(1);
        names.iter().map(|name| ((*name).clone(), value(bytes))).collect::<Map<_, _>>().into()
    };
    let numbers = |bytes: usize| format!("[{}0]", "0,".repeat(bytes / 2));
    let unknown: Map<String, Value> =
        (0..bytes / 12).map(|at| (format!("{at:07}"), json!(0))).collect();
    let deep = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    let mut cases = vec![
        ("one unknown argument".to_owned(), json!({"x".repeat(bytes): 1})),
        ("many unknown arguments".to_owned(), unknown.into()),
        ("lists for all arguments".to_owned(), each(&|bytes| vec![0; bytes / 2].into())),
        ("JSON in texts for all arguments".to_owned(), each(&|bytes| numbers(bytes).into())),
        ("long texts for all arguments".to_owned(), each(&|bytes| "x".repeat(bytes).into())),
        ("escapes for all arguments".to_owned(), each(&|bytes| "\u{1}".repeat(bytes / 6).into())),
        ("deep objects for all arguments".to_owned(), each(&|_| deep.clone())),
    ];
    // One argument after the other is good as far as its kind goes, and as large as possible.
    for name in names {
        let large = match schema["properties"][name]["type"].as_str() {
            Some("array") => vec!["x"; bytes / 4].into(),
            Some("object") => (0..bytes / 12)
                .map(|at| (format!("{at:07}"), json!(0)))
                .collect::<Map<_, _>>()
                .into(),
            Some("string") => "x".repeat(bytes).into(),
            _ => continue,
        };
        let mut arguments = sample(schema);
        arguments.insert(name.clone(), large);
        cases.push((format!("a large `{name}`"), arguments.into()));
    }
    cases
}

/// Small values for all required arguments.
fn sample(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("integer") => json!(0),
        _ if name.ends_with("orkflowId") => json!("output"),
        _ if name == "server" => json!("none"),
        _ => json!("work"),
    };
    required.map(|name| (name.to_owned(), value(name))).collect()
}

/// Schemas that cost much, with values of about so many bytes.
fn hostile_schemas(bytes: usize) -> Vec<(&'static str, Value, Value)> {
    let objects = || -> Value { (0..bytes / 3).map(|_| json!({})).collect() };
    let names: Vec<String> = (0..500).map(|at| format!("name{at}")).collect();
    let node = json!({"$ref": "#/$defs/node"});
    let recursive = json!({"$ref": "#/$defs/node", "$defs": {"node": {"oneOf": [
        {"properties": {"child": node, "kind": {"const": 1}}},
        {"properties": {"child": node, "kind": {"const": 2}}},
    ]}}});
    let deep = (0..60).fold(json!({}), |inner, _| json!({"child": inner}));
    let unknown: Map<String, Value> =
        (0..bytes / 13).map(|at| (format!("{at:06}"), json!(0))).collect();
    let text = json!("x".repeat(bytes));
    vec![
        ("many errors", json!({"items": {"required": ["a", "b", "c", "d"]}}), objects()),
        ("many required names", json!({"items": {"required": names}}), objects()),
        ("recursive alternatives", recursive, deep),
        (
            "names that nobody knows",
            json!({"allOf": vec![json!({"additionalProperties": false}); 20]}),
            unknown.into(),
        ),
        ("look-ahead", json!({"pattern": "(?=.*Cause)(?=.*Fix).+"}), text.clone()),
        (
            "many alternatives",
            json!({"anyOf": vec![json!({"minLength": 9_000_000_000_u64}); 500]}),
            text,
        ),
    ]
}
