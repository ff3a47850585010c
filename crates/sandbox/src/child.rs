//! The process that a program runs in: our own binary, called with one word. It takes its bounds upon itself before it is given
//! the program, and speaks by lines over its standard input and output.

mod bounds;
mod lines;

use std::ffi::OsStr;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use crate::border::{Out, Room};
use crate::engine::{Engine, Fresh};
use crate::limits::Limits;
use crate::outcome::{Failure, Kind};
use crate::program::Program;
use lines::Lines;

/// What makes the priority the lowest that there is, whatever it is.
const NICENESS_MAX: i32 = 19;

/// The word that makes our binary such a process.
pub(crate) const WORD: &str = "__sandbox";

/// To be called first in `main`: runs a program where we were started for that.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let parent = words.next()?;
    words.next().is_none().then(|| run(&parent))
}

fn run(parent: &OsStr) -> ExitCode {
    // First of all: a program that never reads would not notice that its server is gone.
    if process_guard::tether(parent).is_err() {
        return ExitCode::FAILURE;
    }
    let mut lines = Lines::new();
    let Some(room) = lines.read::<Room>() else { return ExitCode::FAILURE };
    if room.has_lowest_priority {
        // Before there is another thread, which inherits it. A system that refuses loses nothing but that.
        let _ = rustix::process::nice(NICENESS_MAX);
    }
    let mut missing = bounds::before(&room.limits, room.stack);
    let thread = std::thread::Builder::new().name("program".to_owned()).stack_size(room.stack);
    let running = thread.spawn(move || {
        missing.extend(bounds::after());
        if let Some(failure) = bounds::refusal(&missing).filter(|_| room.is_confinement_required) {
            // The program is not even read.
            let _ = say(&[Out::Unprotected(bounds::names(&missing)), Out::Done(Err(failure))]);
            return;
        }
        if !missing.is_empty() && say(&[Out::Unprotected(bounds::names(&missing))]).is_err() {
            return;
        }
        // All that can be done before there is a program.
        let fresh = Fresh::new();
        // Whoever started us may have no program for us.
        let Some(program) = lines.read::<Program>() else { return };
        let cancelled = Arc::new(AtomicBool::new(false));
        let engine = Engine::new(fresh, program, room.limits, Box::new(lines), cancelled);
        // It is not tidied up: all of it goes with the process.
        let ended = engine.and_then(|engine| ManuallyDrop::new(engine).run());
        // Where nobody listens, it is over as well.
        let _ = say(&[Out::Done(ended)]);
    });
    let why = match running.map(JoinHandle::join) {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(_)) => "the program broke its engine".to_owned(),
        Err(error) => format!("there is no thread for the program: {error}"),
    };
    let _ = say(&[Out::Done(Err(Failure::new(Kind::Memory, why)))]);
    ExitCode::FAILURE
}

/// For tests of what is left to a process: its limits and its files are given up.
#[doc(hidden)]
pub fn give_up_files(limits: &Limits, stack: usize) -> String {
    bounds::names(&bounds::before(limits, stack))
}

/// For tests as well: nearly all that the system offers is given up.
#[doc(hidden)]
pub fn give_up_calls() -> String {
    bounds::names(&bounds::after())
}

/// A line of JSON for each.
fn say(all: &[Out]) -> std::io::Result<()> {
    let mut lines = Vec::new();
    for out in all {
        serde_json::to_writer(&mut lines, out)?;
        lines.push(b'\n');
    }
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&lines)?;
    stdout.flush()
}
