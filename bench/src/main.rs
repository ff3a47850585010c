//! Speed, as ratios inside one interleaved run: what we do and the yardstick take turns, so that
//! whatever else the machine does hits both. Each row is a claim of the documents.

mod agent;
mod agents;
mod baseline;
mod code;
mod contestants;
mod definitions;
mod http;
mod in_process;
mod memory;
mod pipelined;
mod postgres;
mod programs;
mod sequential;
mod server;
mod session_tokens;
mod sessions;
mod size;
mod start;
mod table;
mod tenants;
mod upstreams;
mod vocabularies;

use std::path::Path;

use contestants::Contestants;
use programs::Programs;
use table::{Report, Row};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const FILES: usize = 5_000;
const FEW: usize = 5;

/// What is measured of a deployment, with all cores.
type Part = fn(&Programs, &Path, &mut table::Details) -> Vec<Row>;

fn main() {
    let programs = Programs::build();
    let home = tempfile::tempdir().expect("a temporary folder");
    // For whoever works on one of these parts.
    let is_asked = |name: &str| std::env::args().any(|argument| argument == name);
    let parts: [(&str, Part); 7] = [
        ("--only-stdio", stdio),
        ("--only-http", http::rows),
        ("--only-postgres", postgres::rows),
        ("--only-upstreams", upstreams::rows),
        ("--only-code", code::rows),
        ("--only-tenants", tenants::rows),
        ("--only-session-tokens", session_tokens::rows),
    ];
    let mut arguments = std::env::args().skip_while(|argument| argument != "--baseline");
    if let Some(baseline) = arguments.nth(1) {
        let rows = baseline::rows(&programs, home.path(), Path::new(&baseline));
        let report = Report { files: 0, bytes: 0, rows, details: table::Details::default() };
        println!("{}", report.render());
        std::process::exit(i32::from(!report.holds()));
    }
    if let Some((_, part)) = parts.into_iter().find(|(name, _)| is_asked(name)) {
        let mut details = table::Details::default();
        let rows = part(&programs, home.path(), &mut details);
        let report = Report { files: 0, bytes: 0, rows, details };
        println!("{}", report.render());
        std::process::exit(i32::from(!report.holds()));
    }
    let many = home.path().join("many");
    let few = home.path().join("few");
    let bytes = definitions::write(&many, FILES);
    definitions::write(&few, FEW);

    let mut rows = in_process::rows(&many, bytes, &few);
    // On a thread of its own, because a thread that is bound to one core stays so.
    let served = std::thread::scope(|scope| {
        let served = scope.spawn(|| {
            server::pin_to_one_core();
            let contestants = Contestants::new(&programs, home.path(), &many);
            serving(&programs, &contestants, home.path())
        });
        served.join().expect("the servers' part")
    });
    let (served, mut details) = served;
    rows.extend(served);
    // With all cores: a hosted server has them, and so has whoever loads it.
    rows.extend(http::rows(&programs, home.path(), &mut details));
    rows.extend(postgres::rows(&programs, home.path(), &mut details));
    rows.extend(upstreams::rows(&programs, home.path(), &mut details));
    rows.extend(code::rows(&programs, home.path(), &mut details));
    rows.extend(tenants::rows(&programs, home.path(), &mut details));
    rows.extend(session_tokens::rows(&programs, home.path(), &mut details));
    let report = Report { files: FILES, bytes, rows, details };
    let text = report.render();
    println!("{text}");
    if std::env::args().any(|argument| argument == "--write") {
        table::write(&text);
    }
    if !report.holds() {
        std::process::exit(1);
    }
}

/// The calls alone, without sessions.
fn stdio(programs: &Programs, home: &Path, details: &mut table::Details) -> Vec<Row> {
    let many = home.join("many");
    definitions::write(&many, FILES);
    server::pin_to_one_core();
    let contestants = Contestants::new(programs, home, &many);
    let mut rows = sequential::rows(&contestants, details);
    rows.extend(pipelined::rows(&contestants, details));
    rows.extend(start::rows(&contestants, details));
    rows.extend(size::rows(programs, &contestants, home));
    rows
}

/// Everything that is measured on running servers, and what lies behind the ratios.
fn serving(
    programs: &Programs,
    contestants: &Contestants,
    home: &Path,
) -> (Vec<Row>, table::Details) {
    let mut details = table::Details::default();
    let mut rows = sequential::rows(contestants, &mut details);
    rows.extend(pipelined::rows(contestants, &mut details));
    rows.extend(start::rows(contestants, &mut details));
    rows.extend(sessions::rows(programs, home, &mut details));
    rows.extend(size::rows(programs, contestants, home));
    (rows, details)
}
