//! The binary: arguments in, an exit status out. What a command does is in `cli/`, one file each; what
//! an answer is, in `app`.

mod access;
mod app;
mod audit;
mod auth;
mod bundled;
mod cli;
mod error;
mod server;
mod sessions;
mod tls;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
