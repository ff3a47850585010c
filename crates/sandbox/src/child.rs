//! The process that a program runs in: our own binary, called with one word. It takes its bounds upon itself before it looks at
//! the program, and speaks by lines over its standard input and output.

mod bounds;
mod lines;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::border::{Ended, Job, Out};
use crate::engine;
use crate::limits::Limits;
use crate::outcome::{Failure, Kind};
use crate::stack;
use lines::Lines;

/// The word that makes our binary such a process.
pub(crate) const WORD: &str = "__sandbox";

/// To be called first in `main`: runs a program where we were started for that.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == WORD && words.next().is_none()).then(run)
}

fn run() -> ExitCode {
    let mut lines = Lines::new();
    let Some(job) = lines.job() else { return ExitCode::FAILURE };
    let ended = match bounded(job, lines) {
        Ok(ended) => ended,
        Err(why) => Err(Failure::new(Kind::Memory, why)),
    };
    match say(&[Out::Done(ended)]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn bounded(job: Job, lines: Lines) -> Result<Ended, String> {
    let stack = match stack::bytes(&job) {
        Ok(stack) => stack,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut missing = bounds::before(&job.limits, stack);
    let thread = std::thread::Builder::new().name("program".to_owned()).stack_size(stack);
    let running = thread.spawn(move || {
        missing.extend(bounds::after());
        if !missing.is_empty() && say(&[Out::Unbounded(missing.join(", "))]).is_err() {
            return Err(Failure::new(Kind::Cancelled, "nobody listens"));
        }
        engine::run(job, Box::new(lines), Arc::new(AtomicBool::new(false)))
    });
    let running =
        running.map_err(|error| format!("there is no thread for the program: {error}"))?;
    running.join().map_err(|_| "the program broke its engine".to_owned())
}

/// For tests of what is left to a process: its limits and its files are given up.
#[doc(hidden)]
pub fn give_up_files(limits: &Limits, stack: usize) -> Vec<&'static str> {
    bounds::before(limits, stack)
}

/// For tests as well: nearly all that the system offers is given up.
#[doc(hidden)]
pub fn give_up_calls() -> Vec<&'static str> {
    bounds::after()
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
