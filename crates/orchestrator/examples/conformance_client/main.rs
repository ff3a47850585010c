//! The client that the official conformance suite drives: an [`Orchestrator`] with one upstream, the suite's server, and
//! somebody at its keyboard who says yes to everything. The suite starts it with the server's address as its last argument;
//! a variable says what else belongs to a scenario.

mod context;
mod drive;
mod headless;
mod person;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use orchestrator::oauth::Logins;
use orchestrator::{Options, Orchestrator};
use registry::{Places, Variables, Watched};
use serde_json::json;

use context::Context;
use headless::Headless;

/// The only upstream.
const SERVER: &str = "suite";
/// The suite gives us thirty seconds.
const CALL_LIMIT: Duration = Duration::from_secs(20);

#[tokio::main]
#[expect(clippy::print_stderr, reason = "the suite shows what we say when something fails")]
async fn main() -> std::process::ExitCode {
    match run().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().ok_or("the last argument is the address of a server")?;
    let context = Context::read()?;
    let folder = tempfile::tempdir()?;
    let registry = folder.path().join("mcp.registry.json");
    let mut entry = json!({
        "id": SERVER,
        "mcp": {"transport": "http", "url": url},
        "sensitivity": "low",
        "timeoutMs": CALL_LIMIT.as_millis(),
        "maxCallsPerMinute": 1000,
    });
    if let Some(auth) = context.auth() {
        entry["mcp"]["auth"] = auth;
    }
    std::fs::write(&registry, json!({"servers": [entry]}).to_string())?;
    let places = Places {
        named: Some(registry),
        variables: Variables::given(context.variables()),
        ..Places::default()
    };
    let watched = Arc::new(Watched::new(places));
    if let Some(finding) = watched.current().findings.first() {
        return Err(format!("{finding:?}").into());
    }
    let logins = Logins::new(folder.path().join("logins/logins.json"));
    let tokens = Arc::new(Headless::new(logins));
    let orchestrator =
        Orchestrator::new(watched, Options { tokens: Some(tokens), ..Options::default() });
    let driven = drive::drive(&orchestrator, &context).await;
    orchestrator.close().await;
    driven
}
