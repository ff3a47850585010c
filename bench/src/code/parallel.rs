//! A hundred calls at once, by one program and by the orchestrator itself: the same server, the same runtime, and the program's
//! whole life is in its time. Both have as many of them under way at a time as a program may.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use orchestrator::code::Tools;
use orchestrator::{AskedBy, Call, Orchestrator, Party};
use sandbox::{Limits, Mode, Program, Sandbox};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};
use crate::upstreams::{TEXT, World, entry, id};

const CALLS: usize = 100;
const ROUNDS: usize = 100;

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let mut real = entry(programs, &id(0));
    real["mcp"]["command"] = json!("node");
    real["mcp"]["args"] = json!([programs.everything, "stdio"]);
    let real = Echo { entry: real, argument: "message", prefix: "Echo: " };
    let none = Echo { entry: entry(programs, &id(0)), argument: "text", prefix: "" };
    let real = Times::of(&real, programs, &home.join("real"));
    let none = Times::of(&none, programs, &home.join("none"));
    for (times, server) in [(&real, "server-everything"), (&none, "a server that takes no time")] {
        details.code.push(times.told(server));
    }
    let row = |what, figure, limit| Row {
        what,
        yardstick: "the same calls by the orchestrator directly, as many at a time",
        figure,
        unit: Unit::Ratio,
        limit: Limit::AtMost(limit),
    };
    vec![
        row(
            "100 calls of server-everything by one program, in a process of its own",
            real.ratio(1),
            1.3,
        ),
        row("The same on a thread", real.ratio(2), 1.3),
    ]
}

/// A server with a tool that sends a text back.
struct Echo {
    entry: Value,
    argument: &'static str,
    /// What it puts before the text.
    prefix: &'static str,
}

impl Echo {
    fn arguments(&self) -> Map<String, Value> {
        Map::from_iter([(self.argument.to_owned(), Value::from(TEXT))])
    }
}

/// Milliseconds of each round: directly, by a program in a process, by one on a thread.
struct Times([Vec<f64>; 3]);

impl Times {
    fn of(echo: &Echo, programs: &Programs, folder: &Path) -> Self {
        let world = World::of(programs, folder, std::iter::once(echo.entry.clone()));
        let [process, thread] =
            [Mode::Process, Mode::Thread].map(|mode| Sandbox::new(mode, programs.product.clone()));
        let mut times = [const { Vec::new() }; 3];
        // The first round connects and warms up, and does not count.
        for round in 0..=ROUNDS {
            for turn in 0..times.len() {
                let at = (round + turn) % times.len();
                let orchestrator = world.orchestrator.clone();
                // In a task, as a server does it.
                let task = match at {
                    0 => world.runtime.spawn(directly(orchestrator, echo.arguments())),
                    1 => world.runtime.spawn(by_program(
                        process.clone(),
                        orchestrator,
                        echo.argument,
                    )),
                    _ => {
                        world.runtime.spawn(by_program(thread.clone(), orchestrator, echo.argument))
                    }
                };
                let (time, texts) = world.runtime.block_on(task).expect("calls");
                let expected = format!("{}{TEXT}", echo.prefix);
                assert!(
                    texts.len() == CALLS && texts.iter().all(|own| *own == expected),
                    "{texts:?}"
                );
                if round > 0 {
                    times[at].push(time);
                }
            }
        }
        world.end();
        Self(times)
    }

    fn ratio(&self, at: usize) -> f64 {
        let Self(times) = self;
        median(times[at].iter().zip(&times[0]).map(|(one, other)| one / other).collect())
    }

    fn told(&self, server: &str) -> String {
        let [direct, process, thread] = self.0.clone().map(median);
        format!(
            "{CALLS} calls at once of {server} take the orchestrator {direct:.2} ms, a program in a process {process:.2} ms \
             ({:.2} ×), and one on a thread {thread:.2} ms ({:.2} ×).",
            self.ratio(1),
            self.ratio(2)
        )
    }
}

/// Milliseconds, and what came back.
async fn by_program(
    sandbox: Sandbox,
    orchestrator: Orchestrator,
    argument: &'static str,
) -> (f64, Vec<String>) {
    let (server, text) = (id(0), TEXT);
    let code = format!(
        "import {{ echo }} from \"mcp-clients/{server}\";\n\
         export async function main(): Promise<string[]> {{\n\
         \treturn await Promise.all(Array.from({{ length: {CALLS} }}, () => echo({{ {argument}: \"{text}\" }})));\n\
         }}\n"
    );
    let start = Instant::now();
    let tools = Tools {
        orchestrator,
        allowed: vec![server],
        asked_by: AskedBy::Agent,
        party: Party::alone(),
        asker: None,
        own: None,
        renamed: None,
        listener: None,
    };
    let (limits, cancelled) = (Limits::default(), CancellationToken::new());
    let outcome = sandbox.run(Program::of(code), limits, Arc::new(tools), cancelled).await;
    let time = start.elapsed().as_secs_f64() * 1e3;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    let texts = outcome.result.expect("a result");
    (time, serde_json::from_str(texts.get()).expect("texts"))
}

/// Milliseconds, and what came back.
async fn directly(orchestrator: Orchestrator, arguments: Map<String, Value>) -> (f64, Vec<String>) {
    let start = Instant::now();
    let turns = Arc::new(Semaphore::new(Limits::default().calls_at_once));
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (orchestrator, turns) = (orchestrator.clone(), Arc::clone(&turns));
        let call = Call::new(id(0), "echo", arguments.clone());
        calls.spawn(async move {
            let _turn = turns.acquire_owned().await.expect("a turn");
            let result = orchestrator.call(call).await.expect("an answer");
            result.raw["content"][0]["text"].as_str().expect("a text").to_owned()
        });
    }
    let texts = calls.join_all().await;
    (start.elapsed().as_secs_f64() * 1e3, texts)
}
