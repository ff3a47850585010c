//! Runs a program that never ends, with a prewarmed process beside it, and prints its console. For a test
//! that kills it. It is the sandbox process of its programs as well.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sandbox::host::{Boxed, Call, Host, Module};
use sandbox::{Limits, Mode, Program, Sandbox, Thrown};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

/// A timer ends the turn, which sends the line.
const ENDLESS: &str =
    "console.log('begun'); await new Promise((go) => setTimeout(go, 0)); for (;;) {}";
/// Longer than any test waits.
const TIME: Duration = Duration::from_secs(3_600);

fn main() -> ExitCode {
    if let Some(status) = sandbox::child::run_if_asked() {
        return status;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (Ok(runtime), Ok(program)) = (runtime, std::env::current_exe()) else {
        return ExitCode::FAILURE;
    };
    let sandbox = Sandbox::ready(Mode::Process, program);
    let limits = Limits { time: TIME, ..Limits::default() };
    let run = |text: &str| {
        sandbox.run(Program::of(text), limits, Arc::new(Console), CancellationToken::new())
    };
    // When the short program ends, the sandbox prewarms a process.
    runtime.block_on(async { tokio::join!(run(ENDLESS), run("1")) });
    ExitCode::SUCCESS
}

struct Console;

impl Host for Console {
    fn module<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<Module, String>> {
        Box::pin(async { Err("there is none".to_owned()) })
    }

    fn call<'a>(&'a self, _: Call) -> Boxed<'a, Result<Box<RawValue>, Thrown>> {
        Box::pin(std::future::pending())
    }

    fn line(&self, line: &str) {
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}
