//! A call through the orchestrator, and the same by rmcp's client alone: the same server, a process each, the same runtime. Ours
//! has everything in it that a call has: the registry looked at, rules, counts, the breaker, arguments checked, a deadline.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use orchestrator::Orchestrator;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use tokio::process::Command;

use super::{TEXT, World, arguments, echo};
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 40;
const CALLS: usize = 400;

type Client = RunningService<RoleClient, ()>;

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let world = World::new(programs, &home.join("calls"), 1);
    let runtime = &world.runtime;
    let client = runtime.block_on(async {
        let child = TokioChildProcess::new(Command::new(&programs.echo_upstream));
        Arc::new(().serve(child.expect("a child")).await.expect("a handshake"))
    });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // The first round connects and warms up, and does not count.
    for round in 0..=ROUNDS {
        for turn in 0..2 {
            let (times, time) = if (round + turn) % 2 == 0 {
                let task = through_us(world.orchestrator.clone());
                (&mut ours, runtime.block_on(runtime.spawn(task)))
            } else {
                (&mut theirs, runtime.block_on(runtime.spawn(directly(client.clone()))))
            };
            if round > 0 {
                times.push(time.expect("calls"));
            }
        }
    }
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    details.upstreams.push(format!(
        "A call through the orchestrator takes {:.0} µs, and the same call by rmcp's client alone {:.0} µs.",
        median(ours),
        median(theirs)
    ));
    let client = Arc::into_inner(client).expect("nobody else has it");
    runtime.block_on(client.cancel()).expect("its end");
    world.end();
    vec![Row {
        what: "A call of another server through us, over stdio, time",
        yardstick: "by rmcp 3.8's client alone",
        figure: median(ratios),
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.25),
    }]
}

/// Microseconds for each.
async fn through_us(orchestrator: Orchestrator) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        echo(&orchestrator, 0).await;
    }
    start.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}

async fn directly(client: Arc<Client>) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        let call = CallToolRequestParams::new("echo").with_arguments(arguments());
        let result = client.call_tool(call).await.expect("an answer");
        let text = result.content.first().and_then(|block| block.as_text());
        assert_eq!(text.expect("a text").text, TEXT);
    }
    start.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}
