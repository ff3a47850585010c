//! What the product costs whoever has it: the bytes of its binary, and the tokens of its list of tools.

use std::path::Path;

use serde_json::value::RawValue;

use crate::contestants::{Contestant, Contestants};
use crate::programs::Programs;
use crate::server::Server;
use crate::table::{Limit, Row, Unit};

const LIST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";

#[derive(serde::Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Listed<'a>,
}

#[derive(serde::Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
}

pub fn rows(programs: &Programs, contestants: &Contestants, home: &Path) -> Vec<Row> {
    let bytes = std::fs::metadata(&programs.product).expect("the product's binary").len();
    vec![
        Row {
            what: "The binary",
            yardstick: "",
            figure: bytes as f64 / (1024.0 * 1024.0),
            unit: Unit::Mebibytes,
            limit: Limit::AtMost(24.0),
        },
        Row {
            what: "`tools/list`, all tools, on 2025-11-25",
            yardstick: "",
            figure: tokens(&contestants.ours) as f64,
            unit: Unit::Tokens,
            limit: Limit::AtMost(3000.0),
        },
        Row {
            what: "The same with those for other servers, where a registry names one",
            yardstick: "",
            figure: tokens(&with_registry(contestants, home)) as f64,
            unit: Unit::Tokens,
            limit: Limit::AtMost(4200.0),
        },
    ]
}

/// Ours, with a registry. What it names is never started: nobody calls it.
fn with_registry(contestants: &Contestants, home: &Path) -> Contestant {
    let folder = home.join("registry");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text =
        r#"{"servers": [{"id": "other", "mcp": {"transport": "stdio", "command": "false"}}]}"#;
    std::fs::write(folder.join("mcp.registry.json"), text).expect("a registry");
    let mut ours = contestants.ours.clone();
    (ours.name, ours.folder) = ("workflowlookup, with a registry", folder);
    ours
}

/// The tools as JSON, as they come, counted with two public vocabularies: the larger count.
fn tokens(contestant: &Contestant) -> usize {
    let mut server = Server::start(contestant);
    server.shake_hands();
    let answer: Answer<'_> = serde_json::from_slice(server.ask(LIST)).expect("a list of tools");
    let tools = answer.result.tools.get();
    let vocabularies = [tiktoken_rs::o200k_base(), tiktoken_rs::cl100k_base()];
    let counts = vocabularies
        .map(|vocabulary| vocabulary.expect("a vocabulary").encode_ordinary(tools).len());
    server.end();
    counts.into_iter().max().expect("two counts")
}
