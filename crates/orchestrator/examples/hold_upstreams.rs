//! Connects to every server of a registry, says `ready`, and calls all of them again and again, a line for each round, until
//! its input is closed. For tests that kill it instead. It is its own guard.
//!
//! cargo run -p orchestrator --example hold_upstreams -- mcp.registry.json

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use orchestrator::{Call, Options, Orchestrator};
use registry::{Places, Watched};
use serde_json::{Map, Value};
use tokio::task::JoinSet;

/// The tool that every server here has.
const TOOL: &str = "echo";

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    if let Some(status) = process_guard::run_if_asked() {
        return status;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map_err(Failed::from).and_then(|runtime| runtime.block_on(hold())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stdout(), "failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn hold() -> Result<(), Failed> {
    let named = std::env::args_os().nth(1).map(Into::into);
    let places = Places { named, ..Places::default() };
    let watched = Watched::looking_every(places, Duration::from_secs(1));
    let orchestrator = Orchestrator::new(Arc::new(watched), Options::default());
    round(&orchestrator).await?;
    writeln!(std::io::stdout(), "ready")?;
    let mut closed = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let calls = async {
        loop {
            round(&orchestrator).await?;
            writeln!(std::io::stdout(), "called")?;
        }
    };
    tokio::select! {
        _ = &mut closed => {}
        failed = calls => return failed,
    }
    orchestrator.close().await;
    Ok(())
}

/// Calls each of them once, all at the same time.
async fn round(orchestrator: &Orchestrator) -> Result<(), Failed> {
    let mut calls = JoinSet::new();
    for entry in &orchestrator.registry().entries {
        let (orchestrator, id) = (orchestrator.clone(), entry.id.clone());
        calls.spawn(async move { call(&orchestrator, &id).await });
    }
    while let Some(called) = calls.join_next().await {
        called??;
    }
    Ok(())
}

async fn call(orchestrator: &Orchestrator, id: &str) -> Result<(), Failed> {
    let tools = orchestrator.tools(id).await?;
    let tool = tools.get(TOOL).ok_or_else(|| format!("`{id}` has no `{TOOL}`"))?;
    // Servers call the text differently.
    let schema = tool.input_schema.value()?;
    let name = schema["required"][0].as_str().ok_or("it wants nothing")?.to_owned();
    let arguments = Map::from_iter([(name, Value::from("hello"))]);
    let result = orchestrator.call(Call::new(id, TOOL, arguments)).await?;
    let text = orchestrator::text::of(&result.raw);
    if !text.contains("hello") {
        return Err(format!("`{id}` answers: {text}").into());
    }
    Ok(())
}
