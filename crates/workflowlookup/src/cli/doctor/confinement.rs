//! Whether the system can confine what agents make us run: programs, and upstreams as child processes.

use process_guard::{GuardProgram, Isolation, best_isolation};
use sandbox::{Mode, Sandbox};

use super::{Check, Level};

const SANDBOX: &str = "sandbox";
const GUARD: &str = "guard";

pub(super) fn look() -> Vec<Check> {
    vec![sandbox(), guard()]
}

fn sandbox() -> Check {
    let GuardProgram(program) = GuardProgram::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let message = format!("cannot try to run a program: {error}");
            return Check::new(SANDBOX, Level::Problem, message);
        }
    };
    match runtime.block_on(Sandbox::new(Mode::Process, program).probe()) {
        Ok(()) => Check::new(SANDBOX, Level::Ok, "programs are confined by Landlock and seccomp"),
        Err(failure) => Check::new(SANDBOX, Level::Warning, failure.message),
    }
}

fn guard() -> Check {
    match best_isolation() {
        Isolation::OutOfReach => {
            Check::new(GUARD, Level::Ok, "other MCP servers cannot reach their guard processes")
        }
        Isolation::Watched => Check::new(
            GUARD,
            Level::Note,
            "other MCP servers could kill their guard processes; what they leave is killed as long as this program runs",
        )
        .hint("Linux 6.12 or later with Landlock and seccomp keeps guards out of reach"),
    }
}
