//! A thousand calls in flight over ten servers: what the allocator has handed out for them while all of them wait, and what is
//! left of that when they are answered.

use std::path::Path;
use std::time::{Duration, Instant};

use orchestrator::{CallResult, Error};
use tokio::task::JoinSet;

use super::{World, call, echo};
use crate::memory::live;
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit};

const SERVERS: usize = 10;
const CALLS_EACH: usize = 100;
const ROUNDS: usize = 5;
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// Until all calls are on their way, and until what was answered is let go of.
const SETTLED_AFTER: Duration = Duration::from_millis(300);

type Calls = JoinSet<Result<CallResult, Error>>;

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let world = World::new(programs, &home.join("crowd"), SERVERS);
    let runtime = &world.runtime;
    runtime.block_on(async {
        for server in 0..SERVERS {
            echo(&world.orchestrator, server).await;
        }
    });
    let (mut most, mut left, mut time) = (0.0, 0.0, f64::INFINITY);
    // What is made once is made in the first round.
    for round in 0..=ROUNDS {
        let before = live();
        let mut calls = Calls::new();
        let begin = |calls: &mut Calls, server, tool| {
            let orchestrator = world.orchestrator.clone();
            let call = call(server, tool);
            calls.spawn_on(async move { orchestrator.call(call).await }, runtime.handle());
        };
        let start = Instant::now();
        for _ in 0..CALLS_EACH {
            (0..SERVERS).for_each(|server| begin(&mut calls, server, "park"));
        }
        let begun = start.elapsed();
        std::thread::sleep(SETTLED_AFTER);
        assert!(calls.try_join_next().is_none(), "all of them wait");
        let waiting = live().saturating_sub(before) as f64 / MEBIBYTE;
        let start = Instant::now();
        (0..SERVERS).for_each(|server| begin(&mut calls, server, "release"));
        let answered = runtime.block_on(calls.join_all());
        let took = (begun + start.elapsed()).as_secs_f64() * 1e3;
        assert_eq!(answered.len(), SERVERS * (CALLS_EACH + 1));
        assert!(answered.iter().all(Result::is_ok), "all of them are answered");
        drop(answered);
        std::thread::sleep(SETTLED_AFTER);
        if round > 0 {
            most = f64::max(most, waiting);
            left = f64::max(left, live().saturating_sub(before) as f64 / MEBIBYTE);
            time = f64::min(time, took);
        }
    }
    world.end();
    details.upstreams.push(format!(
        "A thousand calls in flight take {:.1} KiB each, and {:.0} KiB of all are left when they are answered, which takes \
         {time:.0} ms without the waiting.",
        most * 1024.0 / (SERVERS * CALLS_EACH) as f64,
        left * 1024.0,
    ));
    vec![Row {
        what: "1,000 calls in flight over 10 servers: memory more than before",
        yardstick: "",
        figure: most,
        unit: Unit::Mebibytes,
        limit: Limit::AtMost(10.0),
    }]
}
