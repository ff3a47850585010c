//! What is wrong with a program, in words for who wrote it.

use std::fmt;

use crate::places;

/// The first thing that is wrong, and where in the source. Lines and columns begin at 1; columns are in code points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    pub line: u32,
    pub column: u32,
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn at(
        source: &str,
        offset: usize,
        message: impl Into<String>,
        help: Option<&str>,
    ) -> Problem {
        let (line, column) = places::place(source, offset);
        Problem { message: message.into(), line, column, help: help.map(str::to_owned) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}: {}", self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(formatter, "\n{help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}
