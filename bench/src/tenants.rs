//! What one tenant feels while another does its worst: the 99th percentile of its calls, by turns with nothing else going
//! on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Listening, modern};
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 5;
/// How long one side of a round takes.
const TURN: Duration = Duration::from_secs(2);
/// What an attack has before it is measured.
const HEAD_START: Duration = Duration::from_millis(500);
/// How long a running server may take to know a new token.
const TOKEN_DELAY: Duration = Duration::from_millis(1_500);
/// The other tenant's pace.
const PAUSE: Duration = Duration::from_millis(2);
/// Three times the undisturbed percentile is allowed, or this, whichever is larger.
const ALLOWED_TIMES: f64 = 3.0;
const ALLOWED_MS: f64 = 20.0;
/// Descriptors of the server, as on many systems at first.
const DESCRIPTORS: usize = 1_024;
const ATTACKERS: usize = 8;
const ATTACK_CONNECTIONS: usize = 900;
const PROGRAMS: usize = 40;
/// Rejected outputs in the log that is rewound.
const REJECTED: u64 = 400;
const OUTPUT_BYTES: usize = 255 * 1024;
const CHECKED_BYTES: usize = 900 * 1024;
const PATTERN_BYTES: usize = 80 * 1024;

/// How deep the output for a recursive schema is, and how many texts a large context holds.
const OUTPUT_DEPTH: usize = 100;
const CONTEXT_TEXTS: usize = 60_000;
/// Steps with a condition on that context.
const CONDITIONS: usize = 50;
/// Names that a schema looks up in every object, and the objects of an output.
const DEPENDENT_NAMES: usize = 20_000;
const OBJECTS: usize = 2_000;
/// How often a prompt repeats a variable, and the control characters in it: JSON writes each of them six times as long.
const REPETITIONS: usize = 1_000;
const VARIABLE_BYTES: usize = 4_000;
/// Connections whose answers nobody reads.
const UNREAD: usize = 40;

/// A workflow of one step, whose rule costs much or little.
fn workflow(id: &str, rule: Value) -> String {
    let step =
        json!({"id": "write", "title": "Write", "prompt": "Write", "validationCriteria": rule});
    definition(id, vec![step])
}

fn definition(id: &str, steps: Vec<Value>) -> String {
    let about = "For the bench";
    json!({"id": id, "name": id, "version": "1.0.0", "description": about, "steps": steps})
        .to_string()
}

/// Evaluated naively it takes time exponential in the depth of the output.
fn recursive_rule() -> Value {
    json!({"type": "schema", "message": "Nest it", "schema": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {"oneOf": [{"$ref": "#/$defs/inner"}, {"$ref": "#/$defs/inner"}]},
            "inner": {"properties": {"a": {"$ref": "#/$defs/node"}}},
        },
    }})
}

/// Steps whose conditions search a large list.
fn searching_steps() -> Vec<Value> {
    let step = |number| {
        json!({"id": format!("search-{number}"), "title": "Search", "prompt": "Search",
            "runCondition": {"var": "texts", "contains": "needle"}})
    };
    (0..CONDITIONS).map(step).collect()
}

/// Looks every name up in every object of the output.
fn dependent_rule() -> Value {
    let names: serde_json::Map<String, Value> =
        (0..DEPENDENT_NAMES).map(|number| (format!("name-{number}"), json!(["other"]))).collect();
    json!({"type": "schema", "message": "List them",
        "schema": {"items": {"dependentRequired": names}}})
}

/// A step whose prompt is much longer than the variable that fills it.
fn repeating_step() -> Value {
    json!({"id": "repeat", "title": "Repeat", "prompt": "{{text}}".repeat(REPETITIONS)})
}

pub fn rows(programs: &Programs, home: &Path, _: &mut Details) -> Vec<Row> {
    let folder = home.join("tenants");
    std::fs::create_dir_all(folder.join("definitions")).expect("a folder");
    // Look-around cannot run in linear time.
    let pattern = "(?=.*Cause)(?=.*Fix).+";
    for (id, rule) in [
        ("hostile", json!({"type": "regex", "pattern": pattern, "message": "Say why"})),
        ("plain", json!({"type": "contains", "value": "Fix", "message": "Say how"})),
        ("recursive", recursive_rule()),
        ("dependent", dependent_rule()),
    ] {
        let file = folder.join(format!("definitions/{id}.json"));
        std::fs::write(file, workflow(id, rule)).expect("a workflow");
    }
    let searching = definition("searching", searching_steps());
    std::fs::write(folder.join("definitions/searching.json"), searching).expect("a workflow");
    let repeating = definition("repeating", vec![repeating_step()]);
    std::fs::write(folder.join("definitions/repeating.json"), repeating).expect("a workflow");
    let entry =
        json!({"id": "none", "mcp": {"transport": "http", "url": "http://127.0.0.1:1/mcp"}});
    // Outside of the project, where a file that is named on the command line is trusted.
    let registry = home.join("tenants-registry.json");
    std::fs::write(&registry, json!({"servers": [entry]}).to_string()).expect("a registry");
    let house = House::start(programs, &folder, &registry);
    let large = json!({"workflowId": "handle-incident", "stepId": "agree-actions",
        "output": format!("[{}{{}}]", "{},".repeat(CHECKED_BYTES / 3))});
    let slow = json!({"workflowId": "hostile", "stepId": "write",
        "output": "x".repeat(PATTERN_BYTES)});
    let deep = format!("{}1{}", r#"{"a":"#.repeat(OUTPUT_DEPTH), "}".repeat(OUTPUT_DEPTH));
    let deep = json!({"workflowId": "recursive", "stepId": "write", "output": deep});
    let texts: Vec<&str> = (0..CONTEXT_TEXTS).map(|_| "hay and hay").collect();
    let searching =
        json!({"workflowId": "searching", "completedSteps": [], "context": {"texts": texts}});
    let objects: Vec<Value> = (0..OBJECTS).map(|_| json!({"other-name": 1})).collect();
    let dependent = json!({"workflowId": "dependent", "stepId": "write",
        "output": json!(objects).to_string()});
    let repeating = json!({"workflowId": "repeating", "completedSteps": [],
        "context": {"text": "\u{1}".repeat(VARIABLE_BYTES)}});
    let endless = json!({"code": "for (;;);", "allowedMcpIds": [], "maxRuntimeMs": 2_000});
    // Each attack has a principal, so that what one has used up does not throttle the next.
    let rewinding = house.token("rewinder");
    let session = house.session_with_large_log(&rewinding);
    let rewind = json!({"sessionId": session, "revision": 0, "toStep": "write", "reason": "No"});
    let share = json!({"workflowId": "plain", "sharedWith": ["bob"]});
    let call = |name: &str, tool, arguments, connections| Attack::Calls {
        token: house.token(name),
        tool,
        arguments,
        connections,
    };
    let attacks: [(&'static str, Victim, Attack); 10] = [
        (
            "checks of large outputs",
            Victim::Session,
            call("checker", "workflow_validate", large, ATTACKERS),
        ),
        (
            "patterns with look-around",
            Victim::Session,
            call("matcher", "workflow_validate", slow, ATTACKERS),
        ),
        (
            "recursive schemas",
            Victim::Session,
            call("nester", "workflow_validate", deep, ATTACKERS),
        ),
        (
            "conditions on large contexts",
            Victim::Session,
            call("searcher", "workflow_next", searching, ATTACKERS),
        ),
        (
            "schemas with many dependent names",
            Victim::Session,
            call("depender", "workflow_validate", dependent, ATTACKERS),
        ),
        (
            "long answers that are not read",
            Victim::Session,
            Attack::Unread {
                token: house.token("deaf"),
                tool: "workflow_next",
                arguments: repeating,
            },
        ),
        (
            "rewinds of a session with a large log",
            Victim::Session,
            Attack::Calls {
                token: rewinding,
                tool: "workflow_rewind",
                arguments: rewind,
                connections: ATTACKERS,
            },
        ),
        (
            "sessions shared with it",
            Victim::Session,
            call("sharer", "workflow_start", share, ATTACKERS),
        ),
        ("900 connections without a token", Victim::Newcomer, Attack::Connections),
        (
            "40 programs that never end",
            Victim::Session,
            call("looper", "execute_mcp_code", endless, PROGRAMS),
        ),
    ];
    attacks.map(|(what, victim, attack)| house.measure(what, victim, &attack)).into()
}

/// How the other tenant calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// Over one connection: the step that comes next, a step of a session submitted and stored, and how the session stands.
    Session,
    /// The same, with a new connection for each call.
    Newcomer,
}

enum Attack {
    /// A tool and its arguments, on this many connections at once.
    Calls { token: String, tool: &'static str, arguments: Value, connections: usize },
    /// The same on connections that never read their answers.
    Unread { token: String, tool: &'static str, arguments: Value },
    /// Keep-alive connections that ask for `/healthz`.
    Connections,
}

/// A server with several tenants. One of them is measured.
struct House<'a> {
    programs: &'a Programs,
    folder: &'a Path,
    server: Listening,
    bob: String,
}

impl<'a> House<'a> {
    fn start(programs: &'a Programs, folder: &'a Path, registry: &Path) -> Self {
        let bob = new_token(programs, folder, "bob");
        let script = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
        let product = programs.product.to_str().expect("a path");
        let words = ["-c", &script, product, "serve", "--http", "127.0.0.1:0"];
        let registry = registry.to_str().expect("a path");
        let more = ["--workflows", "definitions", "--registry", registry];
        let server = Listening::start(Path::new("/bin/sh"), &[&words[..], &more].concat(), folder);
        Self { programs, folder, server, bob }
    }

    fn token(&self, name: &str) -> String {
        new_token(self.programs, self.folder, name)
    }

    /// A session with many outputs that were rejected.
    fn session_with_large_log(&self, token: &str) -> String {
        // A running server knows a new token within a second.
        std::thread::sleep(TOKEN_DELAY);
        let mut owner = Tenant::connect(self.server.address, token);
        let begun = owner.call("workflow_start", &json!({"workflowId": "plain"}));
        let session = begun["result"]["structuredContent"]["sessionId"].as_str().expect("an id");
        for revision in 0..REJECTED {
            let output = format!("{revision} {}", "y ".repeat(OUTPUT_BYTES / 2));
            let arguments = json!({"sessionId": session, "revision": revision,
                "stepId": "write", "output": output});
            owner.call("workflow_advance", &arguments);
        }
        session.to_owned()
    }

    fn measure(&self, what: &'static str, victim: Victim, attack: &Attack) -> Row {
        std::thread::sleep(TOKEN_DELAY);
        let mut bob = Tenant::connect(self.server.address, &self.bob);
        let ratios = (0..ROUNDS).map(|_| {
            let undisturbed = bob.percentile(victim);
            let is_over = AtomicBool::new(false);
            let disturbed = std::thread::scope(|scope| {
                match attack {
                    Attack::Calls { token, tool, arguments, connections } => {
                        for _ in 0..*connections {
                            scope.spawn(|| self.keep_calling(token, tool, arguments, &is_over));
                        }
                    }
                    Attack::Unread { token, tool, arguments } => {
                        scope.spawn(|| self.keep_sending(token, tool, arguments, &is_over));
                    }
                    Attack::Connections => {
                        scope.spawn(|| self.keep_connecting(&is_over));
                    }
                }
                std::thread::sleep(HEAD_START);
                // A new connection, as an agent that has just started makes.
                let mut bob = Tenant::connect(self.server.address, &self.bob);
                let disturbed = bob.percentile(victim);
                is_over.store(true, Ordering::Relaxed);
                disturbed
            });
            disturbed / undisturbed.max(ALLOWED_MS / ALLOWED_TIMES)
        });
        Row {
            what: Box::leak(format!("99th percentile of a tenant's calls during {what}").into()),
            yardstick: "its undisturbed one, or 6.7 ms if that is less",
            figure: median(ratios.collect()),
            unit: Unit::Ratio,
            limit: Limit::AtMost(ALLOWED_TIMES),
        }
    }

    fn keep_calling(&self, token: &str, tool: &str, arguments: &Value, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let mut attacker = Tenant::connect(self.server.address, token);
            attacker.try_call(tool, arguments);
        }
    }

    /// Holds connections whose answers are waiting to be read.
    fn keep_sending(&self, token: &str, tool: &str, arguments: &Value, is_over: &AtomicBool) {
        let mut unread: Vec<Tenant> =
            (0..UNREAD).map(|_| Tenant::connect(self.server.address, token)).collect();
        for tenant in &mut unread {
            tenant.send(tool, arguments);
        }
        while !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(PAUSE);
        }
    }

    fn keep_connecting(&self, is_over: &AtomicBool) {
        let address = self.server.address;
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let mut open: Vec<Option<TcpStream>> = (0..ATTACK_CONNECTIONS).map(|_| None).collect();
        while !is_over.load(Ordering::Relaxed) {
            for connection in &mut open {
                let asked = connection.take().or_else(|| {
                    let new = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
                    new.set_nonblocking(true).ok().map(|()| new)
                });
                *connection = asked.filter(|mut asked| {
                    let would_block = |error: std::io::Error| {
                        (error.kind() == std::io::ErrorKind::WouldBlock).then_some(1)
                    };
                    let read = asked.read(&mut [0; 4096]).map_or_else(would_block, Some);
                    read.is_some_and(|count| count > 0)
                        && asked.write_all(request.as_bytes()).is_ok()
                });
            }
        }
    }
}

fn new_token(programs: &Programs, folder: &Path, name: &str) -> String {
    let mut command = Command::new(&programs.product);
    command.args(["token", "new", name]).current_dir(folder).env_clear();
    let made = command.env("HOME", folder).output().expect("a token");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).expect("a token").trim().to_owned()
}

/// A client with a token and one connection.
struct Tenant {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    token: String,
}

impl Tenant {
    fn connect(address: SocketAddr, token: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a deadline");
        stream.set_nodelay(true).expect("no delay");
        Self { stream: BufReader::new(stream), address, token: token.to_owned() }
    }

    /// Milliseconds, over one turn. Each call must succeed: a rejection is no latency.
    fn percentile(&mut self, victim: Victim) -> f64 {
        let begun = self.call("workflow_start", &json!({"workflowId": "plain"}));
        let session = begun["result"]["structuredContent"]["sessionId"].as_str().expect("an id");
        let (start, mut times, mut revision) = (Instant::now(), Vec::new(), 0);
        while start.elapsed() < TURN {
            // Rejected, and so stored, as often as one likes.
            let submission = json!({"sessionId": session, "revision": revision,
                "stepId": "write", "output": format!("Attempt {revision}")});
            revision += 1;
            for (tool, arguments) in [
                ("workflow_next", json!({"workflowId": "plain", "completedSteps": []})),
                ("workflow_advance", submission),
                ("workflow_status", json!({"sessionId": session})),
            ] {
                let call = Instant::now();
                if victim == Victim::Newcomer {
                    *self = Self::connect(self.address, &self.token);
                }
                let answer = self.call(tool, &arguments);
                times.push(call.elapsed().as_secs_f64() * 1e3);
                let is_error = answer["result"]["isError"].as_bool().unwrap_or_default();
                assert!(answer["result"].is_object() && !is_error, "{tool}: {answer}");
                std::thread::sleep(PAUSE);
            }
        }
        times.sort_by(f64::total_cmp);
        times[times.len() * 99 / 100]
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.try_call(tool, arguments).expect("an answer with a length")
    }

    fn send(&mut self, tool: &str, arguments: &Value) -> Option<()> {
        let body = modern("tools/call", json!({"name": tool, "arguments": arguments}));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {}\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes()).ok()
    }

    /// None if the server answers with a stream, or not at all.
    fn try_call(&mut self, tool: &str, arguments: &Value) -> Option<Value> {
        self.send(tool, arguments)?;
        let mut length = None;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let Some(length) = length else {
            // A stream: its answer comes at its end.
            let mut rest = String::new();
            while !rest.contains("data: {") && self.stream.read_line(&mut rest).ok()? > 0 {}
            return None;
        };
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        serde_json::from_slice(&body).ok()
    }
}
