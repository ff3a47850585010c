//! How large a stack a program's thread needs.

use crate::limits::Limits;
use crate::outcome::{Failure, Kind, Place};
use crate::program::Program;

/// For what the engine does beside the program's own calls.
const BESIDE: usize = 1024 * 1024;
/// What does for nearly all programs, so that one room is like the other. It is no memory before it is used.
const USUAL: usize = 16 * 1024 * 1024;

/// For reading its files, and then for running: these do not come together.
pub(crate) fn bytes(program: &Program, limits: &Limits) -> Result<usize, Failure> {
    let mut most = limits.stack;
    for file in &program.files {
        let needed = typescript::stack_bytes(&file.text).map_err(|problem| {
            let (line, column) = (problem.line, problem.column);
            let place = Place { file: file.name.clone(), line, column };
            Failure::new(Kind::Syntax, problem.message).at(Some(place))
        })?;
        most = most.max(needed);
    }
    Ok(USUAL.max(most + BESIDE))
}
