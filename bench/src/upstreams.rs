//! Other servers, called through the orchestrator, beside what the same costs without it. The servers do next to nothing, so
//! that they are not what is measured.

mod calls;
mod crowd;
mod discovery;
mod generated;
mod hung;
mod tokens;
mod whole_call;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use orchestrator::{Call, Options, Orchestrator};
use process_guard::GuardProgram;
use registry::{Places, Watched};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::programs::Programs;
use crate::table::{Details, Row};

/// As many threads as a server of ours has for its upstreams.
const THREADS: usize = 2;
/// More than are ever made in a minute here.
const CALLS_PER_MINUTE: u64 = 1_000_000;
/// Longer than any measurement: what does not answer is waited for.
const TIMEOUT_MS: u64 = 300_000;
/// What is sent, and comes back.
pub const TEXT: &str = "a short text that comes back";

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let home = home.join("upstreams");
    let mut rows = calls::rows(programs, &home, details);
    rows.extend(hung::rows(programs, &home, details));
    rows.extend(crowd::rows(programs, &home, details));
    rows.extend(whole_call::rows(programs, &home, details));
    let servers = generated::servers();
    rows.extend(discovery::rows(&servers, details));
    rows.extend(tokens::rows(programs, &home, &servers, details));
    rows
}

/// An orchestrator for servers `server-0`, `server-1`…, all of them the same.
pub struct World {
    pub runtime: Runtime,
    pub orchestrator: Orchestrator,
}

impl World {
    pub fn new(programs: &Programs, folder: &Path, servers: usize) -> Self {
        Self::of(programs, folder, (0..servers).map(|at| entry(programs, &id(at))))
    }

    pub fn of(programs: &Programs, folder: &Path, entries: impl Iterator<Item = Value>) -> Self {
        let registry = write_registry(folder, entries);
        let runtime = runtime();
        let inside = runtime.enter();
        let places = Places { named: Some(registry), ..Places::default() };
        let watched = Watched::new(places);
        let found = watched.current();
        assert!(found.findings.is_empty(), "{:#?}", found.findings);
        let guard = GuardProgram(programs.product.clone());
        let orchestrator =
            Orchestrator::new(Arc::new(watched), Options { guard, ..Options::default() });
        drop(inside);
        Self { runtime, orchestrator }
    }

    pub fn end(self) {
        self.runtime.block_on(self.orchestrator.close());
    }
}

/// As a server has it for its upstreams.
fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(THREADS).enable_all().build().expect("a runtime")
}

pub fn id(at: usize) -> String {
    format!("server-{at}")
}

pub fn entry(programs: &Programs, id: &str) -> Value {
    json!({
        "id": id,
        "mcp": {"transport": "stdio", "command": programs.echo_upstream},
        "maxCallsPerMinute": CALLS_PER_MINUTE,
        "timeoutMs": TIMEOUT_MS,
    })
}

pub fn write_registry(folder: &Path, entries: impl Iterator<Item = Value>) -> PathBuf {
    std::fs::create_dir_all(folder).expect("a folder");
    let path = folder.join("mcp.registry.json");
    let registry = json!({"servers": entries.collect::<Vec<_>>()});
    std::fs::write(&path, registry.to_string()).expect("a registry");
    path
}

/// Trusts the registry of a folder, for a server that is started there with that folder as its home.
pub fn trust(programs: &Programs, folder: &Path) {
    let mut command = std::process::Command::new(&programs.product);
    command.args(["trust", "--yes"]).current_dir(folder).env_clear().env("HOME", folder);
    let done = command.output().expect("the product");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn arguments() -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), Value::from(TEXT))])
}

fn call(server: usize, tool: &str) -> Call {
    let is_with_text = matches!(tool, "echo" | "park");
    Call::new(id(server), tool, if is_with_text { arguments() } else { Map::new() })
}

/// One call of `echo`, whose answer is seen to be the right one.
pub async fn echo(orchestrator: &Orchestrator, server: usize) {
    let result = orchestrator.call(call(server, "echo")).await.expect("an answer");
    assert_eq!(result.raw["content"][0]["text"], TEXT);
}
