//! A hundred calls at once, by one program and by the orchestrator itself: the same server, the same runtime, and the program's
//! whole life is in its time. A program has 16 calls under way at a time, the orchestrator all of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use orchestrator::code::Tools;
use orchestrator::{AskedBy, Orchestrator, Party};
use sandbox::{Limits, Mode, Program, Sandbox};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};
use crate::upstreams::{TEXT, World, echo, id};

const CALLS: usize = 100;
const ROUNDS: usize = 200;

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let world = World::new(programs, &home.join("parallel"), 1);
    let runtime = &world.runtime;
    let orchestrator = &world.orchestrator;
    let sandbox = Sandbox::new(Mode::Thread, programs.product.clone());
    let at_once = Limits::default().calls_at_once;
    let mut times = [const { Vec::new() }; 3];
    // The first round connects and warms up, and does not count.
    for round in 0..=ROUNDS {
        for turn in 0..times.len() {
            let at = (round + turn) % times.len();
            let orchestrator = orchestrator.clone();
            let task = match at {
                0 => runtime.spawn(by_program(sandbox.clone(), orchestrator)),
                1 => runtime.spawn(directly(orchestrator, CALLS)),
                _ => runtime.spawn(directly(orchestrator, at_once)),
            };
            let time = runtime.block_on(task).expect("calls");
            if round > 0 {
                times[at].push(time);
            }
        }
    }
    world.end();
    let ratio = |at: usize| {
        median(times[0].iter().zip(&times[at]).map(|(one, other)| one / other).collect())
    };
    let (figure, few) = (ratio(1), ratio(2));
    let [program, all, some] = times.map(median);
    details.code.push(format!(
        "A program that makes {CALLS} calls at once takes {program:.2} ms, the orchestrator {all:.2} ms, and with {at_once} of them \
         under way at a time, as the program has them, {some:.2} ms (the program takes {few:.2} × as long)."
    ));
    vec![Row {
        what: "100 calls at once by one program, from its start to its end, time",
        yardstick: "the same calls by the orchestrator directly",
        figure,
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.3),
    }]
}

/// Milliseconds.
async fn by_program(sandbox: Sandbox, orchestrator: Orchestrator) -> f64 {
    let (server, text) = (id(0), TEXT);
    let code = format!(
        "import {{ echo }} from \"mcp-clients/{server}\";\n\
         export async function main(): Promise<string[]> {{\n\
         \treturn await Promise.all(Array.from({{ length: {CALLS} }}, () => echo({{ text: \"{text}\" }})));\n\
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
        over: None,
        renamed: None,
        progress: None,
        lines: None,
    };
    let (limits, cancelled) = (Limits::default(), CancellationToken::new());
    let outcome = sandbox.run(Program::of(code), limits, Arc::new(tools), cancelled).await;
    let time = start.elapsed().as_secs_f64() * 1e3;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    let texts = outcome.result.expect("a result");
    let texts: Vec<String> = serde_json::from_str(texts.get()).expect("texts");
    assert!(texts.len() == CALLS && texts.iter().all(|own| own == text), "{texts:?}");
    time
}

/// Milliseconds, with so many under way at a time.
async fn directly(orchestrator: Orchestrator, at_once: usize) -> f64 {
    let start = Instant::now();
    let turns = Arc::new(Semaphore::new(at_once));
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (orchestrator, turns) = (orchestrator.clone(), Arc::clone(&turns));
        calls.spawn(async move {
            let _turn = turns.acquire_owned().await.expect("a turn");
            echo(&orchestrator, 0).await;
        });
    }
    assert_eq!(calls.join_all().await.len(), CALLS);
    start.elapsed().as_secs_f64() * 1e3
}
