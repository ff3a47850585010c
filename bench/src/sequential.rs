//! One call after the other: a request, its answer, the next request. All servers live through the whole
//! of it and take turns of a few hundred calls; a ratio is the median over the rounds.

use std::time::Instant;

use crate::contestants::Contestants;
use crate::server::Server;
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 60;
const CALLS: usize = 400;

pub fn rows(contestants: &Contestants, details: &mut Details) -> Vec<Row> {
    let called = contestants.called();
    let mut turns = called.map(|contestant| {
        let mut server = Server::start(contestant);
        server.shake_hands();
        let requests = contestant.requests(CALLS);
        let length = contestant.answer_length();
        (server, requests, length, Vec::new())
    });
    // The first round warms up, and does not count.
    for round in 0..=ROUNDS {
        for turn in 0..called.len() {
            let at = (round + turn) % called.len();
            let (server, requests, length, rates) = &mut turns[at];
            let start = Instant::now();
            for request in &*requests {
                let answer = server.ask(request.as_bytes());
                assert_eq!(answer.len(), *length, "an answer of {}", called[at].name);
            }
            let rate = CALLS as f64 / start.elapsed().as_secs_f64();
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let rates = turns.map(|(server, _, _, rates)| {
        server.end();
        rates
    });
    for (contestant, rates) in called.iter().zip(&rates) {
        details.of(contestant.name).sequential = Some(median(rates.clone()));
    }
    let [ours, bare, _, canned, rmcp, rmcp_pipes, _] = rates;
    let faster: Vec<f64> = rmcp.iter().zip(&rmcp_pipes).map(|(one, two)| one.max(*two)).collect();
    let what = "`workflow_next`, one call after the other, calls per second";
    let row = |yardstick, rates: &[f64], least| Row {
        what,
        yardstick,
        figure: median(ours.iter().zip(rates).map(|(ours, rate)| ours / rate).collect()),
        unit: Unit::Ratio,
        limit: Limit::AtLeast(least),
    };
    vec![
        row("echo calls of a bare loop", &bare, 0.5),
        row("a bare loop with a canned answer of the same size", &canned, 0.65),
        row("echo calls of rmcp 3.8, its faster variant", &faster, 1.5),
    ]
}
