//! A sandbox, and somebody outside of it to call.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox::host::{Boxed, Call, Function, Host, Module};
use sandbox::{Kind, Limits, Mode, Outcome, Program, Sandbox, Thrown};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

pub(crate) const BOTH: [Mode; 2] = [Mode::Thread, Mode::Process];

/// To stop hangs only.
pub(crate) const BOUND: Duration = Duration::from_secs(120);

/// What the one server has that programs may call.
const TOOLS: [&str; 7] = ["echo", "fail", "json", "slow", "never", "ask", "panic"];

/// Two servers, and one that exists and is not for programs.
pub(crate) struct Tools;

impl Host for Tools {
    fn module<'a>(&'a self, specifier: &'a str) -> Boxed<'a, Result<Module, String>> {
        let module = |server: &str, names: &[&str]| {
            let function =
                |name: &&str| Function { name: (*name).to_owned(), tool: (*name).to_owned() };
            Module { server: server.to_owned(), functions: names.iter().map(function).collect() }
        };
        let is_late = specifier == "mcp-clients/late";
        let found = match specifier {
            "mcp-clients/late" => Ok(module("late", &[])),
            "mcp-clients/tools" => Ok(module("tools", &TOOLS)),
            "mcp-clients/other" => Ok(module("other", &["echo"])),
            "mcp-clients/secret" => {
                Err("`secret` may not be imported: `allowedMcpIds` does not have it".to_owned())
            }
            "mcp-clients/panic" => panic!("an import breaks"),
            other => Err(format!("there is no `{other}`")),
        };
        Box::pin(async move {
            if is_late {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            found
        })
    }

    fn call<'a>(&'a self, call: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        Box::pin(async move {
            let given: Value = serde_json::from_str(call.arguments.get()).unwrap();
            let text = |name: &str| given[name].as_str().unwrap_or("no").to_owned();
            let wait = Duration::from_millis(given["ms"].as_u64().unwrap_or(10));
            match call.tool.as_str() {
                "echo" => Ok(call.arguments),
                "fail" => {
                    let data = given.get("data").map(Value::to_string);
                    Err(Thrown { kind: Kind::Tool, message: text("message"), data })
                }
                // Whatever a server says is JSON.
                "json" => Ok(RawValue::from_string(text("text")).unwrap()),
                "slow" => {
                    tokio::time::sleep(wait).await;
                    Ok(call.arguments)
                }
                "never" => {
                    call.cancelled.cancelled().await;
                    Err(Thrown {
                        kind: Kind::Cancelled,
                        message: "cancelled".to_owned(),
                        data: None,
                    })
                }
                // A person, who takes their time.
                "ask" => {
                    let _hold = call.clock.hold();
                    tokio::time::sleep(wait).await;
                    Ok(call.arguments)
                }
                tool => panic!("`{tool}` breaks"),
            }
        })
    }
}

/// A module with one function, whatever is imported.
pub(crate) fn only(name: &str) -> Boxed<'static, Result<Module, String>> {
    let function = Function { name: name.to_owned(), tool: name.to_owned() };
    let module = Module { server: "any".to_owned(), functions: vec![function] };
    Box::pin(std::future::ready(Ok(module)))
}

pub(crate) fn sandbox(mode: Mode) -> Sandbox {
    // Not every system that runs the tests can confine a process.
    let mode = match mode {
        Mode::Process => Mode::UnconfinedProcess,
        mode => mode,
    };
    Sandbox::new(mode, child())
}

/// Cargo builds examples together with the tests, and puts them beside.
pub(crate) fn child() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let child = test.ancestors().nth(2).unwrap().join("examples/child");
    assert!(child.exists(), "{} is not there; run `cargo test` without `--test`", child.display());
    child
}

pub(crate) async fn run(sandbox: &Sandbox, program: Program, limits: Limits) -> Outcome {
    sandbox.run(program, limits, Arc::new(Tools), CancellationToken::new()).await
}

/// Until there are neither threads nor processes of programs.
pub(crate) async fn until_idle(sandbox: &Sandbox) {
    let began = Instant::now();
    while !sandbox.is_idle() || children() > 0 {
        assert!(began.elapsed() < BOUND, "it goes on; there are {} processes", children());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many processes we have started and that are there, dead ones that nobody has looked at included.
pub(crate) fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let children = tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).ok());
    children.map(|children| children.split_whitespace().count()).sum()
}
