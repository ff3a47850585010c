//! What goes over the border between a program and who runs it. The same messages whether the program runs on a thread of ours or
//! in a process of its own, where each is one line of JSON.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::Limits;
use crate::outcome::{Failure, Kind};

/// How many modules of the other side a program may ask for.
pub(crate) const IMPORTS_MAX: usize = 100;
/// The longest specifier that is asked for.
pub(crate) const SPECIFIER_BYTES_MAX: usize = 300;

/// What a program runs in, which can be there before the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Room {
    pub(crate) limits: Limits,
    /// Bytes of its thread's stack.
    pub(crate) stack: usize,
    /// Whether a process refuses its program if the system cannot confine it.
    pub(crate) is_confinement_required: bool,
    /// Whether a process gives way to everything else.
    pub(crate) has_lowest_priority: bool,
}

impl Room {
    /// Whether a program can have it that needs `other`.
    pub(crate) fn does_for(&self, other: &Self) -> bool {
        self.limits == other.limits
            && self.stack >= other.stack
            && self.has_lowest_priority == other.has_lowest_priority
    }
}

/// From the program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Out {
    /// It wants to import this, and waits for what it is.
    Import { specifier: String },
    /// It calls a function of a module.
    Call { id: u64, module: String, function: String, arguments: Box<RawValue> },
    /// A line of its console.
    Line(String),
    /// It has ended, with this value.
    Done(Ended),
    /// Protections that this machine does not offer. Comes first, from a process of its own.
    Unprotected(String),
}

/// To the program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum In {
    Module(Module),
    Answer {
        id: u64,
        answer: Answer,
    },
    /// A person is asked: time stands still.
    Hold,
    GoOn,
}

/// What an import leads to: a function for each name, or why there is none.
pub(crate) type Module = Result<Vec<String>, String>;
pub(crate) type Answer = Result<Box<RawValue>, Thrown>;
pub(crate) type Ended = Result<Option<Box<RawValue>>, Failure>;

/// An error for the program to catch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    pub kind: Kind,
    pub message: String,
    /// What else is known, as a property `data` of the error.
    pub data: Option<String>,
}
