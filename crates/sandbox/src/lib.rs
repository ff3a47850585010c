//! Programs of agents, run where they can do no harm. Knows no protocol and no tools: what a program can import and call is what
//! its `Host` gives it.

mod border;
pub mod child;
mod engine;
pub mod host;
mod limits;
mod outcome;
mod process;
mod program;
mod run;
mod sandbox;
mod size;
mod stack;
mod thread;

pub use border::Thrown;
pub use host::Host;
pub use limits::Limits;
pub use outcome::{Called, Failure, Kind, Outcome, Place};
pub use program::{FILES_MAX, File, Program, TEXT_BYTES_MAX, UNNAMED, names_meant};
pub use sandbox::{Mode, Sandbox};

/// Reads a program without running it: the files that it imports and does not have, or what is wrong with it.
pub fn read(program: &Program) -> Result<Vec<String>, Failure> {
    let stack = stack::bytes(program, &Limits::default())?;
    let program = program.clone();
    let broken = || Failure::new(Kind::Memory, "there is no thread to read the program on");
    let thread = std::thread::Builder::new().name("program".to_owned()).stack_size(stack);
    let reading = thread.spawn(move || engine::read(&program)).map_err(|_| broken())?;
    reading.join().map_err(|_| broken())?
}
