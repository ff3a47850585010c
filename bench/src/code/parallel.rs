//! A hundred calls at once, by one program and by the orchestrator itself: the same server, the same runtime, and the program is read,
//! run and ended in its time. Both have as many of them under way at a time as a program may, and each comes after a pause, as from an
//! agent that reads what it got: in it our server gets the process or the thread of the next program ready.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use code_mode::Tools;
use orchestrator::{AskedBy, Call, Orchestrator, Party};
use sandbox::{Limits, Mode, Program, Sandbox};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};
use crate::upstreams::{TEXT, World, entry, id};

const CALLS: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let mut real = entry(programs, &id(0));
    real["mcp"]["command"] = json!("node");
    real["mcp"]["args"] = json!([programs.everything, "stdio"]);
    let takes_time = Tool {
        server: "server-everything",
        entry: real.clone(),
        name: "trigger-long-running-operation",
        function: "trigger_long_running_operation",
        arguments: json!({"duration": 0.01, "steps": 1}),
        said: "Long running operation completed. Duration: 0.01 seconds, Steps: 1.".to_owned(),
        rounds: 20,
    };
    let at_once = Tool {
        name: "echo",
        function: "echo",
        arguments: json!({"message": TEXT}),
        said: format!("Echo: {TEXT}"),
        rounds: 200,
        ..takes_time.clone()
    };
    let none = Tool {
        server: "a server that takes no time",
        entry: entry(programs, &id(0)),
        arguments: json!({"text": TEXT}),
        said: TEXT.to_owned(),
        ..at_once.clone()
    };
    let [takes_time, at_once, _] = [takes_time, at_once, none].map(|tool| {
        let times = Times::of(&tool, programs, &home.join(tool.server).join(tool.name));
        details.code.push(times.told(&tool));
        times
    });
    let row = |what, figure| Row {
        what,
        yardstick: "the same calls by the orchestrator directly, as many at a time",
        figure,
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.3),
    };
    vec![
        row(
            "100 calls by one program of a tool that takes 10 ms, in a process of its own",
            takes_time.ratio(1),
        ),
        row("The same on a thread", takes_time.ratio(2)),
        row("100 calls of a tool that answers at once, in a process of its own", at_once.ratio(1)),
        row("The same on a thread", at_once.ratio(2)),
    ]
}

/// What is called, and what it says.
#[derive(Clone)]
struct Tool {
    server: &'static str,
    entry: Value,
    name: &'static str,
    /// What it is called in a program.
    function: &'static str,
    arguments: Value,
    said: String,
    rounds: usize,
}

/// Milliseconds of each round: directly, by a program in a process, by one on a thread.
struct Times([Vec<f64>; 3]);

impl Times {
    fn of(tool: &Tool, programs: &Programs, folder: &Path) -> Self {
        let world = World::of(programs, folder, std::iter::once(tool.entry.clone()));
        let [process, thread] = [Mode::Process, Mode::Thread]
            .map(|mode| Sandbox::ready(mode, programs.product.clone()));
        let mut times = [const { Vec::new() }; 3];
        // The first round connects and warms up, and does not count.
        for round in 0..=tool.rounds {
            for turn in 0..times.len() {
                let at = (round + turn) % times.len();
                let orchestrator = world.orchestrator.clone();
                std::thread::sleep(PAUSE);
                // In a task, as a server does it.
                let tool_of_it = tool.clone();
                let task = match at {
                    0 => world.runtime.spawn(directly(orchestrator, tool_of_it)),
                    1 => world.runtime.spawn(by_program(process.clone(), orchestrator, tool_of_it)),
                    _ => world.runtime.spawn(by_program(thread.clone(), orchestrator, tool_of_it)),
                };
                let (time, texts) = world.runtime.block_on(task).expect("calls");
                assert!(
                    texts.len() == CALLS && texts.iter().all(|own| *own == tool.said),
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

    fn told(&self, tool: &Tool) -> String {
        let [direct, process, thread] = self.0.clone().map(median);
        format!(
            "{CALLS} calls at once of `{}` of {} take the orchestrator {direct:.2} ms, a program in a process {process:.2} ms \
             ({:.2} ×), and one on a thread {thread:.2} ms ({:.2} ×).",
            tool.name,
            tool.server,
            self.ratio(1),
            self.ratio(2)
        )
    }
}

/// Milliseconds, and what came back.
async fn by_program(
    sandbox: Sandbox,
    orchestrator: Orchestrator,
    tool: Tool,
) -> (f64, Vec<String>) {
    let (server, Tool { function, arguments, .. }) = (id(0), tool);
    let code = format!(
        "import {{ {function} }} from \"mcp-clients/{server}\";\n\
         export async function main(): Promise<string[]> {{\n\
         \treturn await Promise.all(Array.from({{ length: {CALLS} }}, () => {function}({arguments})));\n\
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
async fn directly(orchestrator: Orchestrator, tool: Tool) -> (f64, Vec<String>) {
    let arguments = tool.arguments.as_object().expect("an object");
    let start = Instant::now();
    let turns = Arc::new(Semaphore::new(Limits::default().calls_at_once));
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (orchestrator, turns) = (orchestrator.clone(), Arc::clone(&turns));
        let call = Call::new(id(0), tool.name, arguments.clone());
        calls.spawn(async move {
            let _turn = turns.acquire_owned().await.expect("a turn");
            let result = orchestrator.call(call).await.expect("an answer");
            result.raw["content"][0]["text"].as_str().expect("a text").to_owned()
        });
    }
    let texts = calls.join_all().await;
    (start.elapsed().as_secs_f64() * 1e3, texts)
}
