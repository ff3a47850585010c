//! How large a stack a program's thread needs.

use crate::border::Job;
use crate::outcome::{Failure, Kind, Place};

/// For what the engine does beside the program's own calls.
const BESIDE: usize = 1024 * 1024;

/// For reading its files, and then for running: these do not come together.
pub(crate) fn bytes(job: &Job) -> Result<usize, Failure> {
    let mut most = job.limits.stack;
    for file in &job.program.files {
        let needed = typescript::stack_bytes(&file.text).map_err(|problem| {
            let (line, column) = (problem.line, problem.column);
            let place = Place { file: file.name.clone(), line, column };
            Failure::new(Kind::Syntax, problem.message).at(Some(place))
        })?;
        most = most.max(needed);
    }
    Ok(most + BESIDE)
}
