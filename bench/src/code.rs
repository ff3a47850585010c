//! Programs of agents: what one costs beside a call, what it adds to its calls, what it saves whoever reads the answers, and
//! what it leaves behind.

mod aggregation;
mod empty;
mod parallel;
mod residue;
mod stripping;

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::contestants::Contestant;
use crate::programs::Programs;
use crate::table::{Details, Row};
use crate::upstreams::{TEXT, entry, id, trust, write_registry};

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let home = home.join("code");
    let mut rows = empty::rows(programs, &home, details);
    rows.extend(parallel::rows(programs, &home, details));
    rows.extend(stripping::rows(details));
    rows.extend(aggregation::rows(programs, &home, details));
    rows.extend(residue::rows(programs, &home, details));
    rows
}

/// Our server with one other below it, which is connected to. Programs run at `place`.
fn agent(programs: &Programs, folder: &Path, place: &'static str) -> Agent {
    write_registry(folder, std::iter::once(entry(programs, &id(0))));
    trust(programs, folder);
    let words = ["serve", "--sandbox", place, "--sandbox-unconfined"].map(OsString::from).to_vec();
    let product = programs.product.clone();
    let contestant = Contestant::without_call(place, product, words, folder.to_path_buf());
    let mut agent = Agent::start(&contestant);
    assert_eq!(agent.call(&call("echo", &json!({"text": TEXT}))), TEXT);
    agent
}

/// A call of a tool of the one server below ours.
fn call(tool: &str, arguments: &Value) -> Value {
    let arguments = json!({"server": id(0), "tool": tool, "arguments": arguments});
    json!({"name": "call_mcp_tool", "arguments": arguments})
}

/// A program that may use that server.
fn program(code: &str) -> Value {
    json!({"name": "execute_mcp_code", "arguments": {"code": code, "allowedMcpIds": [id(0)]}})
}
