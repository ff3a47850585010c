//! Starts a child for each argument, a script for `sh`, says `ready`, and ends them when its input is closed. For tests
//! that kill it instead. It is its own guard, unless `HOLD_GUARD` names another program. With
//! `HOLD_UNCONFINED` they can reach their guards.
//!
//! cargo run -p process_guard --example hold_children -- 'sleep 1000 & sleep 1000' 'exec sleep 1000'

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use process_guard::{Child, GuardProgram, Guarded, Spawn, stderr};

/// What the children get as `MARK`, so that a test finds all that comes of them.
const MARK: &str = "HOLD_MARK";

/// How long a thread stays after it has its child.
const LINGER: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    if let Some(status) = process_guard::run_if_asked() {
        return status;
    }
    match hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn hold() -> Result<(), Box<dyn std::error::Error>> {
    let program = std::env::var_os("HOLD_GUARD").map(|guard| GuardProgram(guard.into()));
    let program = program.unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut asking = Vec::new();
    for script in std::env::args().skip(1) {
        let spawn = Spawn {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script],
            env: std::env::var(MARK).map(|mark| ("MARK".to_owned(), mark)).into_iter().collect(),
            cwd: None,
            unconfined: std::env::var_os("HOLD_UNCONFINED").is_some(),
        };
        let (handle, program) = (runtime.handle().clone(), program.clone());
        // Threads that end when their child is there: the child must not.
        asking.push(std::thread::spawn(move || {
            let child = handle.block_on(process_guard::spawn(&spawn, &program));
            std::thread::sleep(LINGER);
            child
        }));
    }
    let mut children = Vec::new();
    for thread in asking {
        let child = thread.join().map_err(|_| "a thread panicked")??;
        let Child { stdin, stdout, stderr, guarded } = child;
        runtime.spawn(stderr::drain(stderr, stderr::LastWords::default(), |_| {}));
        children.push((stdin, stdout, guarded));
    }
    writeln!(std::io::stdout(), "ready")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let end = |(stdin, stdout, guarded): (_, _, Guarded)| {
        drop((stdin, stdout));
        runtime.spawn(guarded.end())
    };
    for ending in children.into_iter().map(end).collect::<Vec<_>>() {
        writeln!(std::io::stdout(), "{:?}", runtime.block_on(ending)?)?;
    }
    Ok(())
}
