//! The command line: arguments in, an exit status out. What a command does is in `cli/`, one file each; what
//! an answer is, in `service`.

mod cli;

use std::process::ExitCode;

/// All that the binary does.
pub fn main() -> ExitCode {
    // Before all else: a guard is started with every upstream, and does nothing but wait.
    if let Some(status) = process_guard::run_if_asked() {
        return status;
    }
    // The process of an agent's program.
    if let Some(status) = sandbox::child::run_if_asked() {
        return status;
    }
    cli::run()
}
