//! What came of a program.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub struct Outcome {
    /// The value of `main`, or what stands for it; none where the program failed or has no value.
    pub result: Option<Box<RawValue>>,
    /// What it wrote to its console.
    pub logs: Vec<String>,
    /// The calls that it made, in the order in which they began.
    pub calls: Vec<Called>,
    pub error: Option<Failure>,
}

/// One call, as it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Called {
    pub server: String,
    pub tool: String,
    pub ms: u64,
    pub ok: bool,
}

/// Why a program did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    /// Where, in the agent's own files.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// The way there, one line for each step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Timeout,
    Memory,
    Stack,
    Calls,
    Logs,
    Result,
    Import,
    Syntax,
    Arguments,
    Tool,
    Exception,
    Cancelled,
    Busy,
    /// The system cannot confine programs, and nobody has allowed it to run them all the same.
    Unconfined,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, stack: None }
    }

    pub(crate) fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }
}

impl Kind {
    pub const ALL: [Self; 14] = [
        Self::Timeout,
        Self::Memory,
        Self::Stack,
        Self::Calls,
        Self::Logs,
        Self::Result,
        Self::Import,
        Self::Syntax,
        Self::Arguments,
        Self::Tool,
        Self::Exception,
        Self::Cancelled,
        Self::Busy,
        Self::Unconfined,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Calls => "calls",
            Self::Logs => "logs",
            Self::Result => "result",
            Self::Import => "import",
            Self::Syntax => "syntax",
            Self::Arguments => "arguments",
            Self::Tool => "tool",
            Self::Exception => "exception",
            Self::Cancelled => "cancelled",
            Self::Busy => "busy",
            Self::Unconfined => "unconfined",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}
