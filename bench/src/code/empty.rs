//! A program that does nothing, beside a call that does next to nothing: our server over stdio, one for each, with a server below
//! it. The kernel says what each has taken of the processor, with what its own children have taken.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::{agent, call, program};
use crate::agent::Agent;
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit, median};
use crate::upstreams::TEXT;

const EMPTY: &str = "export function main() {}";
const ROUNDS: usize = 40;
/// So many that the kernel's hundredths of a second come to little: of each in all rounds, it is off by 0.02 ms at most.
const ASKED: usize = 50;

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let [mut calls, mut on_threads, mut in_processes] = [
        ("empty-call", "thread", call("echo", &json!({"text": TEXT})), TEXT),
        ("empty-thread", "thread", program(EMPTY), "calls"),
        ("empty-process", "process", program(EMPTY), "calls"),
    ]
    .map(|(name, place, request, expected)| {
        let agent = agent(programs, &home.join(name), place);
        Turn { agent, request, expected, before: 0.0, times: Vec::new() }
    });
    // The first round warms up, and does not count.
    for round in 0..=ROUNDS {
        let turns = [&mut calls, &mut on_threads, &mut in_processes];
        for turn in 0..turns.len() {
            let at = (round + turn) % turns.len();
            turns[at].go();
        }
        if round == 0 {
            turns.into_iter().for_each(Turn::begin);
        }
    }
    let [(cpu, time), (cpu_thread, time_thread), (cpu_process, time_process)] =
        [calls, on_threads, in_processes].map(Turn::end);
    details.code.push(format!(
        "A direct `call_mcp_tool` takes {cpu:.2} ms of the processor and {time:.2} ms until its answer; an empty program on a thread \
         {cpu_thread:.2} ms and {time_thread:.2} ms, in a process of its own {cpu_process:.2} ms and {time_process:.2} ms."
    ));
    let row = |what, figure, limit| Row {
        what,
        yardstick: "a direct `call_mcp_tool` that echoes",
        figure,
        unit: Unit::Milliseconds,
        limit: Limit::AtMost(limit),
    };
    vec![
        row("An empty program on a thread, processor time more", cpu_thread - cpu, 2.0),
        row("The same in a process of its own, processor time more", cpu_process - cpu, 15.0),
    ]
}

/// One that is asked the same over and over.
struct Turn {
    agent: Agent,
    request: Value,
    /// What the answer has in it.
    expected: &'static str,
    /// Milliseconds of the processor before what counts.
    before: f64,
    /// Milliseconds until an answer, the median of each round.
    times: Vec<f64>,
}

impl Turn {
    fn go(&mut self) {
        let mut times = Vec::with_capacity(ASKED);
        for _ in 0..ASKED {
            let start = Instant::now();
            let answer = self.agent.call(&self.request);
            times.push(start.elapsed().as_secs_f64() * 1e3);
            assert!(answer.contains(self.expected) && !answer.contains("error"), "{answer}");
        }
        self.times.push(median(times));
    }

    fn begin(&mut self) {
        self.before = self.agent.server.processor_time();
        self.times.clear();
    }

    /// Milliseconds of the processor for each, and until an answer.
    fn end(self) -> (f64, f64) {
        let taken = self.agent.server.processor_time() - self.before;
        self.agent.server.end();
        (taken / (ROUNDS * ASKED) as f64, median(self.times))
    }
}
