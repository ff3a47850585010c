//! Sessions, end to end: agents over stdio, a real store on a real disk. All of it is durable when it is answered, so
//! the yardstick is durable too: a loop that does nothing but the same insert.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::contestants::Contestant;
use crate::programs::Programs;
use crate::server::Server;
use crate::table::{Details, Limit, Row, Unit, median};

/// Advances in one turn.
const CALLS: u64 = 40;
const ROUNDS: usize = 30;
/// Sessions that are advanced at once.
const AT_ONCE: usize = 64;
/// Where a session is early, and where it is late.
const EARLY: u64 = 10;
const LATE: u64 = 1_000;
/// The rows that compare them walk on from there.
const STEPS: u64 = LATE + CALLS * (ROUNDS as u64 + 1) + 1;
/// Finished sessions in the store that is full.
const FINISHED: usize = 100_000;
/// How many of them are begun at once.
const BEGUN_AT_ONCE: usize = 200;
/// Of each call, in the rows that compare a full store with an empty one.
const FULL_ROUNDS: usize = 300;

const LONG: &str = "long-way";
const SHORT: &str = "short-way";
/// The same way, with variables that each step reports: declared, and not.
const DECLARED: &str = "declared-way";
const UNDECLARED: &str = "undeclared-way";
const OUTPUT: &str = "Both parts are in place. The first reads the file and hands on what it found; the second \
    writes the report. All tests pass, the new one among them, and nothing else has changed.";

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let workflows = home.join("session-workflows");
    write_workflows(&workflows);
    let mut rows =
        speed(&ours(programs, &workflows, home, "speed"), &home.join("bare.db"), details);
    rows.push(declared(&ours(programs, &workflows, home, "declared")));
    rows.extend(full(programs, &workflows, home));
    rows
}

/// Straight ways: whatever is done is remembered, and nothing is forgotten as it would be in a loop.
fn write_workflows(folder: &Path) {
    std::fs::create_dir_all(folder).expect("the folder of workflows");
    for (id, count) in [(LONG, STEPS), (SHORT, 1), (DECLARED, STEPS), (UNDECLARED, STEPS)] {
        let steps = (0..count).map(|number| {
            let mut step = json!({
                "id": step(number),
                "title": format!("Part {number}"),
                "prompt": "Do the next part of the work, look at what came of it, and write it down.",
                "validationCriteria": [{
                    "type": "regex", "pattern": "\\btests? pass", "message": "Say that the tests pass",
                }],
            });
            if id == DECLARED {
                step["reports"] = json!(["size", "passed", "files"]);
            }
            step
        });
        let mut definition = json!({
            "id": id, "name": "A way", "description": "For the bench", "version": "1.0.0",
            "steps": steps.collect::<Vec<_>>(),
        });
        if id == DECLARED {
            definition["variables"] = json!({
                "size": {"type": "string", "values": ["small", "medium", "large"]},
                "passed": {"type": "boolean", "description": "whether all tests pass"},
                "files": {"type": "list", "items": "string"},
            });
        }
        let path = folder.join(format!("{id}.json"));
        std::fs::write(path, definition.to_string()).expect("a workflow");
    }
}

fn step(number: u64) -> String {
    format!("part-{number:04}")
}

/// Our server with a home, and so a store, of its own.
fn ours(programs: &Programs, workflows: &Path, home: &Path, name: &'static str) -> Contestant {
    let folder = home.join(name);
    std::fs::create_dir_all(&folder).expect("a home");
    let arguments: [OsString; 4] =
        ["--no-bundled".into(), "--workflows".into(), workflows.into(), "serve".into()];
    Contestant::without_call(name, programs.product.clone(), arguments.into(), folder)
}

/// An agent with one server.
struct Agent {
    server: Server,
    id: u64,
}

/// A session that goes on.
struct Session {
    id: String,
    revision: u64,
    /// Reported with each output.
    context: Value,
}

impl Agent {
    fn new(contestant: &Contestant) -> Self {
        let mut server = Server::start(contestant);
        server.shake_hands();
        Self { server, id: 0 }
    }

    fn line(&mut self, tool: &str, arguments: &Value) -> String {
        self.id += 1;
        let params = json!({"name": tool, "arguments": arguments});
        let call =
            json!({"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params});
        format!("{call}\n")
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let line = self.line(tool, arguments);
        let answers = self.server.ask_many(line.as_bytes(), 1);
        result(&answers[0])
    }

    fn start(&mut self, workflow: &str) -> Session {
        let answer = self.call("workflow_start", &json!({"workflowId": workflow}));
        let id = answer["sessionId"].as_str().expect("a session").to_owned();
        Session { id, revision: 0, context: json!({}) }
    }

    fn advance_line(&mut self, session: &mut Session) -> String {
        let Session { id, revision, context } = session;
        let mut arguments = json!({
            "sessionId": id, "revision": *revision, "stepId": step(*revision), "output": OUTPUT,
        });
        if context != &json!({}) {
            arguments["context"] = context.clone();
        }
        *revision += 1;
        self.line("workflow_advance", &arguments)
    }

    /// Advances so often, one after the other. The requests are made before the clock runs.
    fn advance(&mut self, session: &mut Session, count: u64) -> f64 {
        let lines: Vec<String> = (0..count).map(|_| self.advance_line(session)).collect();
        let start = Instant::now();
        for line in &lines {
            let answers = self.server.ask_many(line.as_bytes(), 1);
            assert!(is_accepted(&answers[0]), "{}", String::from_utf8_lossy(&answers[0]));
        }
        start.elapsed().as_secs_f64()
    }

    /// Advances each of them so often, all at once.
    fn advance_all(&mut self, sessions: &mut [Session], count: u64) -> f64 {
        let mut time = 0.0;
        for _ in 0..count {
            let lines: String = sessions.iter_mut().map(|one| self.advance_line(one)).collect();
            let start = Instant::now();
            let answers = self.server.ask_many(lines.as_bytes(), sessions.len());
            time += start.elapsed().as_secs_f64();
            assert!(answers.iter().all(|answer| is_accepted(answer)));
        }
        time
    }
}

fn is_accepted(answer: &[u8]) -> bool {
    let accepted = br#""accepted":true"#;
    answer.windows(accepted.len()).any(|window| window == accepted)
}

fn result(answer: &[u8]) -> Value {
    let mut answer: Value = serde_json::from_slice(answer).expect("JSON");
    assert!(answer["result"]["structuredContent"].is_object(), "{answer}");
    answer["result"]["structuredContent"].take()
}

/// A loop that does only the insert, as durably: the same bytes in a row that is found by session and version.
struct Bare {
    connection: Connection,
    body: String,
    version: i64,
}

impl Bare {
    fn new(path: &PathBuf) -> Self {
        let connection = Connection::open(path).expect("a database");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                CREATE TABLE events (session INTEGER, version INTEGER, body TEXT,
                    PRIMARY KEY (session, version)) STRICT;",
            )
            .expect("a table");
        let submission = json!({"step": step(0), "output": OUTPUT});
        let place = json!({"step": step(1), "completed": [step(0)]});
        let body = json!({"type": "accepted", "submission": submission, "place": place});
        Self { connection, body: body.to_string(), version: 0 }
    }

    fn insert(&mut self, count: u64) -> f64 {
        let sql = "INSERT INTO events VALUES (1, ?1, ?2)";
        let start = Instant::now();
        for _ in 0..count {
            self.version += 1;
            let mut statement = self.connection.prepare_cached(sql).expect("a statement");
            statement.execute((self.version, &self.body)).expect("an insert");
        }
        start.elapsed().as_secs_f64()
    }
}

/// One at a time, many at once, early and late: all in turns on one server and one disk.
fn speed(contestant: &Contestant, bare: &PathBuf, details: &mut Details) -> Vec<Row> {
    let mut agent = Agent::new(contestant);
    let mut bare = Bare::new(bare);
    let mut many: Vec<Session> = (0..AT_ONCE).map(|_| agent.start(LONG)).collect();
    let mut late = agent.start(LONG);
    agent.advance(&mut late, LATE);
    let mut times: [Vec<f64>; 4] = Default::default();
    // The first round warms up, and does not count.
    for round in 0..=ROUNDS {
        let mut early = agent.start(LONG);
        agent.advance(&mut early, EARLY);
        for turn in 0..times.len() {
            let at = (round + turn) % times.len();
            let (time, calls) = match at {
                0 => (agent.advance(&mut early, CALLS), CALLS),
                1 => (bare.insert(CALLS), CALLS),
                2 => (agent.advance_all(&mut many, 4), 4 * AT_ONCE as u64),
                _ => (agent.advance(&mut late, CALLS), CALLS),
            };
            if round > 0 {
                times[at].push(time / calls as f64);
            }
        }
    }
    agent.server.end();
    let [one, bare, at_once, late] = &times;
    details.sessions = [one, bare, at_once, late].map(|times| median(times.clone()) * 1e6);
    let ratio = |times: &[f64], yardstick: &[f64]| {
        median(times.iter().zip(yardstick).map(|(time, other)| other / time).collect())
    };
    vec![
        Row {
            what: "`workflow_advance`, one after the other, calls per second",
            yardstick: "a loop that does only the same durable insert",
            figure: ratio(one, bare),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(0.6),
        },
        Row {
            what: "`workflow_advance` of 64 sessions at once, calls per second",
            yardstick: "one after the other",
            figure: ratio(at_once, one),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(2.0),
        },
        Row {
            what: "`workflow_advance` from step 1,000 on, time",
            yardstick: "from step 10 on",
            figure: ratio(one, late),
            unit: Unit::Ratio,
            limit: Limit::AtMost(1.5),
        },
    ]
}

/// Measures the cost of checking declared variables in an advance.
fn declared(contestant: &Contestant) -> Row {
    let mut agent = Agent::new(contestant);
    let context = json!({"size": "medium", "passed": true, "files": ["src/one.rs", "src/two.rs"]});
    let mut sessions = [UNDECLARED, DECLARED].map(|workflow| {
        let session = agent.start(workflow);
        Session { context: context.clone(), ..session }
    });
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..=ROUNDS {
        for turn in 0..2 {
            let at = (round + turn) % 2;
            let time = agent.advance(&mut sessions[at], CALLS);
            if round > 0 {
                times[at].push(time);
            }
        }
    }
    agent.server.end();
    let [undeclared, declared] = times;
    Row {
        what: "`workflow_advance` with three declared variables, time",
        yardstick: "the same reports, undeclared",
        figure: median(
            declared.iter().zip(&undeclared).map(|(time, other)| time / other).collect(),
        ),
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.05),
    }
}

/// A store with many finished sessions, and an empty one.
fn full(programs: &Programs, workflows: &Path, home: &Path) -> Vec<Row> {
    let names = ["empty-store", "full-store"];
    let mut agents = names.map(|name| Agent::new(&ours(programs, workflows, home, name)));
    finish_many(&mut agents[1]);
    // By store, and then by what is called.
    let mut times: [[Vec<f64>; 3]; 2] = Default::default();
    for round in 0..=FULL_ROUNDS {
        for turn in 0..2 {
            let at = (round + turn) % 2;
            let agent = &mut agents[at];
            let timed = |call: &mut dyn FnMut()| {
                let start = Instant::now();
                call();
                start.elapsed().as_secs_f64()
            };
            let mut session = None;
            let start = timed(&mut || session = Some(agent.start(LONG)));
            let mut session = session.expect("a session");
            let advance = agent.advance(&mut session, 1);
            let arguments = json!({"sessionId": session.id});
            let status = timed(&mut || drop(agent.call("workflow_status", &arguments)));
            if round > 0 {
                for (times, time) in times[at].iter_mut().zip([start, advance, status]) {
                    times.push(time);
                }
            }
        }
    }
    for agent in agents {
        agent.server.end();
    }
    let [empty, full] = times;
    let whats = [
        "`workflow_start` with 100,000 finished sessions in the store",
        "`workflow_advance` with them",
        "`workflow_status` with them",
    ];
    let rows =
        whats.into_iter().zip(empty.into_iter().zip(full)).map(|(what, (empty, full))| Row {
            what,
            yardstick: "the same in an empty store",
            figure: median(full) / median(empty),
            unit: Unit::Ratio,
            limit: Limit::AtMost(1.2),
        });
    rows.collect()
}

fn finish_many(agent: &mut Agent) {
    eprintln!("bench: {FINISHED} sessions are walked to their end");
    for _ in 0..FINISHED / BEGUN_AT_ONCE {
        let arguments = json!({"workflowId": SHORT, "goal": "one of many"});
        let lines = (0..BEGUN_AT_ONCE).map(|_| agent.line("workflow_start", &arguments));
        let lines: String = lines.collect();
        let begun = agent.server.ask_many(lines.as_bytes(), BEGUN_AT_ONCE);
        let sessions = begun.iter().map(|answer| {
            let id = result(answer)["sessionId"].as_str().expect("a session").to_owned();
            Session { id, revision: 0, context: json!({}) }
        });
        let mut sessions: Vec<Session> = sessions.collect();
        agent.advance_all(&mut sessions, 1);
    }
}
