//! Many calls at once: all requests are written without waiting for an answer. Every round starts new
//! servers, so that the most memory that one ever had is that of one run.

use std::time::Instant;

use crate::contestants::Contestants;
use crate::server::Server;
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 9;
const CALLS: usize = 20_000;

pub fn rows(contestants: &Contestants, details: &mut Details) -> Vec<Row> {
    let called = contestants.called();
    let mut turns = called.map(|contestant| {
        let lines = contestant.requests(CALLS).concat();
        (lines, contestant.answer_length(), Vec::new(), 0.0_f64)
    });
    for round in 0..ROUNDS {
        for turn in 0..called.len() {
            let at = (round + turn) % called.len();
            let (lines, length, rates, peak) = &mut turns[at];
            let mut server = Server::start(called[at]);
            server.shake_hands();
            let start = Instant::now();
            server.pipeline(lines.as_bytes(), *length * CALLS);
            rates.push(CALLS as f64 / start.elapsed().as_secs_f64());
            *peak = peak.max(server.memory("VmHWM"));
            server.end();
        }
    }
    for (contestant, (_, _, rates, peak)) in called.iter().zip(&turns) {
        let detail = details.of(contestant.name);
        detail.pipelined = Some(median(rates.clone()));
        detail.peak = Some(*peak);
    }
    let [(_, _, ours, peak), (_, _, bare, _), ..] = turns;
    vec![
        Row {
            what: "`workflow_next`, 20,000 calls pipelined, calls per second",
            yardstick: "echo calls of a bare loop, which writes each answer at once",
            figure: median(ours.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect()),
            unit: Unit::Ratio,
            limit: Limit::AtLeast(0.35),
        },
        Row {
            what: "The most memory while they are pipelined",
            yardstick: "",
            figure: peak,
            unit: Unit::Mebibytes,
            limit: Limit::AtMost(18.0),
        },
    ]
}
