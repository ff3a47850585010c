//! What an agent reads and writes to use one tool of 2,000, against reading the list of all of them. The server is ours, and
//! it has 50 others below it, each a process with 40 tools.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::generated::{Generated, QUESTIONS};
use super::{trust, write_registry};
use crate::agent::Agent;
use crate::contestants::Contestant;
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit};
use crate::vocabularies::Vocabularies;

/// What the agent looks for, and what it should find.
const QUESTION: &str = "refund a payment";
const WANTED: (&str, &str) = ("stripe", "create_refund");
/// Tools that an agent uses others' tools with.
const OURS: [&str; 3] = ["list_mcp_capabilities", "describe_mcp", "call_mcp_tool"];
/// How long all servers may take to be known.
const KNOWN_MAX: Duration = Duration::from_secs(60);

pub fn rows(
    programs: &Programs,
    home: &Path,
    servers: &[Generated],
    details: &mut Details,
) -> Vec<Row> {
    let folder = home.join("tokens");
    std::fs::create_dir_all(&folder).expect("a folder");
    write_registry(&folder, servers.iter().map(|server| entry(programs, &folder, server)));
    trust(programs, &folder);
    let vocabularies = Vocabularies::new();
    let arguments = vec![OsString::from("serve")];
    let product = programs.product.clone();
    let mut agent = Agent::start(&Contestant::without_call("serve", product, arguments, folder));
    wait_for_all(&mut agent);

    let answers = QUESTIONS.iter().map(|question| {
        let call = json!({"name": OURS[0], "arguments": {"query": question}});
        (vocabularies.count(&agent.call(&call)), *question)
    });
    let mut answers: Vec<(usize, &str)> = answers.collect();
    answers.sort_unstable();
    let (longest, asked) = *answers.last().expect("questions");
    let middle = answers[answers.len() / 2].0;

    let (server, tool) = WANTED;
    let found = json!({"name": OURS[0], "arguments": {"query": QUESTION}});
    let schema = json!({"id": server, "detail": "schema", "tool": tool});
    let inspected = json!({"name": OURS[1], "arguments": schema});
    let given = json!({"name": "Refund of order 1042", "description": "It came broken"});
    let called = json!({"server": server, "tool": tool, "arguments": given});
    let called = json!({"name": OURS[2], "arguments": called});
    let parts = [found, inspected, called].map(|call| {
        let answer = agent.call(&call);
        let is_there = [tool, "done"].iter().any(|word| answer.contains(word));
        assert!(is_there, "{answer}");
        vocabularies.count(&call.to_string()) + vocabularies.count(&answer)
    });
    let defined = vocabularies.count_definitions(&mut agent, &OURS);
    agent.server.end();

    let spent = parts.iter().sum::<usize>() + defined;
    let all: usize = servers.iter().map(|server| vocabularies.count(&server.tools)).sum();
    let [find, inspect, call] = parts;
    details.upstreams.push(format!(
        "Of 2,000 tools an agent finds one for {find} tokens, inspects it for {inspect} and calls it for {call}; what it does that \
         with is described in {defined}. All 2,000 are listed in {all}. An answer of `list_mcp_capabilities` has {middle} \
         tokens, the median of {}, and {longest} at most (`{}`).",
        QUESTIONS.len(),
        asked.chars().take(60).collect::<String>(),
    ));
    vec![
        Row {
            what: "An answer of `list_mcp_capabilities` about them, the longest",
            yardstick: "",
            figure: longest as f64,
            unit: Unit::Tokens,
            limit: Limit::AtMost(1500.0),
        },
        Row {
            what: "Tokens of the list of all 2,000",
            yardstick: "of finding, inspecting and calling one, with what describes that",
            figure: all as f64 / spent as f64,
            unit: Unit::Ratio,
            limit: Limit::AtLeast(50.0),
        },
    ]
}

fn entry(programs: &Programs, folder: &Path, server: &Generated) -> Value {
    let tools = folder.join(format!("{}.json", server.id));
    std::fs::write(&tools, &server.tools).expect("tools");
    json!({
        "id": server.id,
        "title": server.title,
        "summary": server.summary,
        "tags": server.tags,
        "sensitivity": "low",
        "autoDiscoverTools": true,
        "mcp": {"transport": "stdio", "command": programs.echo_upstream, "args": [tools]},
    })
}

/// Until the tools of all servers have been listed.
fn wait_for_all(agent: &mut Agent) {
    let start = Instant::now();
    let call = json!({"name": OURS[0], "arguments": {"query": "tools"}});
    while agent.call(&call).contains("notSearched") {
        assert!(start.elapsed() < KNOWN_MAX, "not all servers are known");
        std::thread::sleep(Duration::from_millis(100));
    }
}
