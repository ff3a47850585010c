//! TypeScript made JavaScript, beside what parsing the same text takes that alone. The text is about as large as a program may be:
//! the programs in `typescript/`, which are as agents write them, several times over.

use std::time::Instant;

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;
use typescript::{Language, Role, stack_bytes, strip};

use crate::table::{Details, Limit, Row, Unit, median};

const PROGRAMS: [&str; 4] = [
    include_str!("typescript/invoices.ts"),
    include_str!("typescript/queue.ts"),
    include_str!("typescript/report.ts"),
    include_str!("typescript/triage.ts"),
];
/// What stands in their names for the number of the copy.
const NUMBER: &str = "__";
/// With more, it would have more words and signs than a program may have.
const BYTES: usize = 160 * 1024;
const ROUNDS: usize = 60;

pub fn rows(details: &mut Details) -> Vec<Row> {
    let source = source();
    let stack = stack_bytes(&source).expect("a program within bounds");
    let measuring = std::thread::Builder::new().stack_size(stack);
    let (rates, length) = std::thread::scope(|scope| {
        let rates = measuring.spawn_scoped(scope, || (measured(&source), source.len()));
        rates.expect("a thread").join().expect("rates")
    });
    let [stripped, parsed] = rates.map(median);
    details.code.push(format!(
        "TypeScript is stripped at {stripped:.0} MB/s, in a program of {} KiB, and only parsed by oxc at {parsed:.0} MB/s.",
        length / 1024
    ));
    vec![Row {
        what: "Stripping TypeScript",
        yardstick: "",
        figure: stripped,
        unit: Unit::MegabytesPerSecond,
        limit: Limit::AtLeast(20.0),
    }]
}

/// Megabytes per second of stripping, and of parsing alone.
fn measured(source: &str) -> [Vec<f64>; 2] {
    let mut rates = [const { Vec::new() }; 2];
    // The first round warms up, and does not count.
    for round in 0..=ROUNDS {
        for turn in 0..2 {
            let at = (round + turn) % 2;
            let start = Instant::now();
            if at == 0 {
                let script = strip(source, Language::TypeScript, Role::Module);
                assert!(!script.expect("a good program").code.is_empty());
            } else {
                let allocator = Allocator::default();
                let parsed = Parser::new(&allocator, source, SourceType::ts()).parse();
                assert!(!parsed.program.body.is_empty());
            }
            let time = start.elapsed().as_secs_f64();
            if round > 0 {
                rates[at].push(source.len() as f64 / 1e6 / time);
            }
        }
    }
    rates
}

fn source() -> String {
    let mut source = String::new();
    for number in 0.. {
        let copy = PROGRAMS[number % PROGRAMS.len()].replace(NUMBER, &number.to_string());
        if source.len() + copy.len() > BYTES {
            break;
        }
        source.push_str(&copy);
    }
    source
}
