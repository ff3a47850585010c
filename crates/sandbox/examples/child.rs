//! What programs of tests run in where they run in processes of their own: nothing but that.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandbox::child::run_if_asked().unwrap_or(ExitCode::FAILURE)
}
