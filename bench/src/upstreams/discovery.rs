//! Finding a tool among 2,000 of 50 servers, in this process: what a question takes of the processor, and how long it takes to
//! make the index.

use std::time::Instant;

use discovery::{Card, Filter, Index, Said};
use registry::entry::Visibility;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use serde_json::value::RawValue;
use tool_schema::tool::{Tool, Tools};

use super::generated::{Generated, QUESTIONS};
use crate::table::{Details, Limit, Row, Unit, median};

const ROUNDS: usize = 30;
/// How many tools and servers are asked for, as `list_mcp_capabilities` does.
const HITS: usize = 8;
const PRIORITY: u8 = 5;

pub fn rows(servers: &[Generated], details: &mut Details) -> Vec<Row> {
    let lists: Vec<Vec<Tool>> = servers.iter().map(read).collect();
    let (mut built, mut parsed, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let start = Instant::now();
        for server in servers {
            let list: Value = serde_json::from_str(&server.tools).expect("a list");
            std::hint::black_box(list);
        }
        let parsing = start.elapsed().as_secs_f64();
        let start = Instant::now();
        std::hint::black_box(index(servers, &lists));
        let building = start.elapsed().as_secs_f64();
        let start = Instant::now();
        servers.iter().for_each(|server| drop(std::hint::black_box(read(server))));
        let reading = start.elapsed().as_secs_f64();
        if round > 0 {
            parsed.push(parsing);
            built.push(building);
            reads.push(reading);
        }
    }
    let ratios = built.iter().zip(&parsed).map(|(built, parsed)| built / parsed).collect();
    let index = index(servers, &lists);
    let mut costs: Vec<(f64, &str)> =
        QUESTIONS.iter().map(|question| (cost(&index, question), *question)).collect();
    costs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (worst, asked) = *costs.last().expect("questions");
    let middle = costs[costs.len() / 2].0;
    let bytes: usize = servers.iter().map(|server| server.tools.len()).sum();
    details.upstreams.push(format!(
        "A question among 2,000 tools, whose lists have {:.1} MB, takes {:.0} µs of the processor, the median of {}, and \
         {:.0} µs at most (`{}`). The lists are parsed in {:.1} ms, read as tools in {:.1} ms, and the index is made in \
         {:.1} ms.",
        bytes as f64 / 1e6,
        middle * 1e3,
        costs.len(),
        worst * 1e3,
        shown(asked),
        median(parsed) * 1e3,
        median(reads) * 1e3,
        median(built) * 1e3,
    ));
    vec![
        Row {
            what: "A question among 2,000 tools of 50 servers, processor time, the slowest",
            yardstick: "",
            figure: worst,
            unit: Unit::Milliseconds,
            limit: Limit::AtMost(1.0),
        },
        Row {
            what: "The index of them made",
            yardstick: "`serde_json`-parsing the lists of tools",
            figure: median(ratios),
            unit: Unit::Ratio,
            limit: Limit::AtMost(3.0),
        },
    ]
}

fn read(server: &Generated) -> Vec<Tool> {
    let page: &RawValue = serde_json::from_str(&server.tools).expect("a list");
    let mut tools = Tools::default();
    tools.add_page(page);
    assert!(tools.notes.is_empty(), "{:?}", tools.notes);
    tools.tools
}

fn index(servers: &[Generated], lists: &[Vec<Tool>]) -> Index {
    let mut index = Index::default();
    for (server, tools) in servers.iter().zip(lists) {
        index.put_server(Card {
            id: &server.id,
            title: Some(&server.title),
            summary: Some(&server.summary),
            domains: &[],
            tags: &server.tags,
            examples: &[],
            visibility: Visibility::Default,
            priority: PRIORITY,
            said: Said::default(),
        });
        index.put_tools(&server.id, tools);
    }
    index
}

/// Milliseconds of the processor, the median of a few.
fn cost(index: &Index, question: &str) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let one = || {
        let before = now();
        std::hint::black_box(index.search(question, &Filter::default(), HITS));
        now() - before
    };
    median((0..ROUNDS).map(|_| one()).collect())
}

/// A question that fits into a line.
fn shown(question: &str) -> String {
    const CHARS: usize = 60;
    match question.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}…", &question[..at]),
        None => question.to_owned(),
    }
}
