//! Ten servers, of which one hangs with calls that it does not even read. The other nine are called in turns, beside ten of which
//! none hangs.

use std::path::Path;
use std::time::{Duration, Instant};

use orchestrator::Orchestrator;
use tokio::task::JoinSet;

use super::{World, call, echo};
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};

const SERVERS: usize = 10;
/// The one that hangs.
const HUNG: usize = SERVERS - 1;
/// Calls that wait there.
const WAITING: usize = 64;
const ROUNDS: usize = 40;
/// Of each of the nine in a round.
const CALLS: usize = 30;
/// Until the calls that hang have been sent.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let well = World::new(programs, &home.join("well"), SERVERS);
    let ill = World::new(programs, &home.join("ill"), SERVERS);
    for world in [&well, &ill] {
        let connected = world.runtime.block_on(connect(&world.orchestrator));
        assert_eq!(connected, SERVERS);
    }
    let mut waiting = JoinSet::new();
    for _ in 0..WAITING {
        let orchestrator = ill.orchestrator.clone();
        let hang = async move { orchestrator.call(call(HUNG, "hang")).await };
        waiting.spawn_on(hang, ill.runtime.handle());
    }
    std::thread::sleep(SETTLED_AFTER);
    let mut times = [const { Vec::new() }; 2];
    let mut slow = [const { Vec::new() }; 2];
    for round in 0..=ROUNDS {
        for turn in 0..2 {
            let at = (round + turn) % 2;
            let world = [&well, &ill][at];
            let task = world.runtime.spawn(round_of_calls(world.orchestrator.clone()));
            let mut calls = world.runtime.block_on(task).expect("calls");
            if round > 0 {
                calls.sort_by(f64::total_cmp);
                slow[at].push(calls[calls.len() * 99 / 100]);
                times[at].push(median(calls));
            }
        }
    }
    assert!(waiting.try_join_next().is_none(), "the calls that hang are still there");
    ill.runtime.block_on(waiting.shutdown());
    well.end();
    ill.end();
    let ratio = |[well, ill]: &[Vec<f64>; 2]| {
        median(ill.iter().zip(well).map(|(ill, well)| ill / well).collect())
    };
    let (middle, late) = (ratio(&times), ratio(&slow));
    let [well, ill] = times.map(median);
    details.upstreams.push(format!(
        "Nine servers beside one that hangs answer in {ill:.0} µs, and in {well:.0} µs beside one that does not; of the 99th \
         percentiles the ratio is {late:.2}."
    ));
    vec![Row {
        what: "A call of nine servers while a tenth hangs with 64 calls, time",
        yardstick: "while it does not hang",
        figure: middle,
        unit: Unit::Ratio,
        limit: Limit::AtMost(1.1),
    }]
}

async fn connect(orchestrator: &Orchestrator) -> usize {
    for server in 0..SERVERS {
        echo(orchestrator, server).await;
    }
    (0..SERVERS).filter(|at| orchestrator.is_connected(&super::id(*at))).count()
}

/// The nine in turns; microseconds for each call.
async fn round_of_calls(orchestrator: Orchestrator) -> Vec<f64> {
    let mut times = Vec::with_capacity(HUNG * CALLS);
    for _ in 0..CALLS {
        for server in 0..HUNG {
            let start = Instant::now();
            echo(&orchestrator, server).await;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    times
}
