//! From nothing to the answer to `initialize`, and the memory of a server that waits. The files of all
//! programs are in the system's cache; processes are new each time.

use std::time::Duration;

use crate::contestants::{Contestant, Contestants};
use crate::server::Server;
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 60;
const IDLE_ROUNDS: usize = 5;
/// How long after the handshake a server counts as idle.
const IDLE_AFTER: Duration = Duration::from_millis(300);

pub fn rows(contestants: &Contestants, details: &mut Details) -> Vec<Row> {
    let Contestants { ours, ours_with_files, bare, rmcp, rmcp_pipes, .. } = contestants;
    let started = [ours, bare, ours_with_files, rmcp, rmcp_pipes];
    let mut times: [Vec<f64>; 5] = Default::default();
    // The first round fills the system's cache, and does not count.
    for round in 0..=ROUNDS {
        for turn in 0..started.len() {
            let at = (round + turn) % started.len();
            let time = start(started[at]);
            if round > 0 {
                times[at].push(time.as_secs_f64());
            }
        }
    }
    for (contestant, times) in started.iter().zip(&times) {
        details.of(contestant.name).start = Some(median(times.clone()) * 1e3);
    }
    for contestant in started {
        details.of(contestant.name).idle = Some(idle_memory(contestant, "VmRSS"));
    }
    let [ours_times, bare_times, with_files, ..] = times;
    let ratio =
        |times: &[f64], yardstick: &[f64]| median(times.to_vec()) / median(yardstick.to_vec());
    vec![
        Row {
            what: "Start to the `initialize` answer, with the bundled workflows",
            yardstick: "a bare loop's",
            figure: ratio(&ours_times, &bare_times),
            unit: Unit::Ratio,
            limit: Limit::AtMost(3.0),
        },
        Row {
            what: "The same with 5,000 files in the catalogue",
            yardstick: "without them",
            figure: ratio(&with_files, &ours_times),
            unit: Unit::Ratio,
            limit: Limit::AtMost(2.0),
        },
        Row {
            what: "Idle memory of its own",
            yardstick: "",
            figure: idle_memory(ours, "RssAnon"),
            unit: Unit::Mebibytes,
            limit: Limit::AtMost(2.5),
        },
        Row {
            what: "Idle memory with the pages of its binary and of libraries that are there",
            yardstick: "",
            figure: details.of(ours.name).idle.unwrap_or(f64::NAN),
            unit: Unit::Mebibytes,
            limit: Limit::AtMost(16.0),
        },
    ]
}

fn start(contestant: &Contestant) -> Duration {
    let (mut server, start) = Server::start_timed(contestant);
    server.initialize();
    let time = start.elapsed();
    server.end();
    time
}

/// The largest of a few, by the name that the kernel has for it: all that is present, or what is of the process alone.
fn idle_memory(contestant: &Contestant, field: &str) -> f64 {
    let one = || {
        let mut server = Server::start(contestant);
        server.shake_hands();
        std::thread::sleep(IDLE_AFTER);
        let memory = server.memory(field);
        server.end();
        memory
    };
    (0..IDLE_ROUNDS).map(|_| one()).fold(0.0, f64::max)
}
