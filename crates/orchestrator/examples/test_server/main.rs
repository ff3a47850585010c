//! An MCP server for tests, written by hand, so that it can do everything wrong that a server can do wrong: see
//! `behaviour.rs`. It also is the guard of the children that tests start, itself among them.
//!
//! cargo run -p orchestrator --example test_server -- --era legacy

mod behaviour;
mod lies;
mod mischief;
mod replay;
mod server;
mod tools;

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use server::{Options, Server};

fn main() -> ExitCode {
    if let Some(status) = process_guard::run_if_asked() {
        return status;
    }
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "{why}");
            return ExitCode::FAILURE;
        }
    };
    behaviour::begin(&options);
    if let Some(path) = &options.replay {
        return match replay::play(path) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                behaviour::complain(&why);
                ExitCode::FAILURE
            }
        };
    }
    let stdout = Mutex::new(std::io::stdout());
    let server = Server::new(options, move |text: &str| {
        let mut stdout = stdout.lock().unwrap_or_else(|error| error.into_inner());
        let _ = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(b"\n"))
            .and_then(|()| stdout.flush());
    });
    let server = Arc::new(server);
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        server.log(&line);
        server.hear(&line);
    }
    behaviour::end(&server.options);
    ExitCode::SUCCESS
}
