//! A finding: something wrong in a definition, with a stable code, a place, and what to try.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

mod code;
mod render;

pub use code::Code;
pub use render::render;

/// An error keeps a definition, or the check of one step, from being used. A warning does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// Line and column count from 1, in characters; `length` is how far the culprit reaches on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
    pub length: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    /// The file as the reader knows it; absent where a text was read that is no file.
    pub file: Option<Box<str>>,
    /// Absent where the finding is about the file as a whole.
    pub place: Option<Place>,
    /// A JSON pointer into the definition; empty for the whole of it.
    pub pointer: Box<str>,
    pub message: Box<str>,
    pub hint: Option<Box<str>>,
}

impl Finding {
    /// A finding about a file as a whole.
    pub fn on_file(code: Code, message: impl Into<Box<str>>, hint: impl Into<Box<str>>) -> Self {
        Self {
            code,
            file: None,
            place: None,
            pointer: "".into(),
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    pub fn is_error(&self) -> bool {
        self.severity() == Severity::Error
    }

    /// Whether this is inside some step's criteria: then the workflow stays usable, and only checking
    /// that step's output is not possible.
    pub fn is_in_criteria(&self) -> bool {
        is_in_criteria(self.code, &self.pointer)
    }

    /// Whether this keeps the whole workflow from being used.
    pub fn blocks(&self) -> bool {
        blocks(self.code, &self.pointer)
    }
}

pub(crate) fn blocks(code: Code, pointer: &str) -> bool {
    code.severity() == Severity::Error && !is_in_criteria(code, pointer)
}

/// A way through steps and bodies to criteria that a step may have.
fn is_in_criteria(code: Code, pointer: &str) -> bool {
    let mut way = crate::pointer::segments(pointer);
    while let Some(segment) = way.next() {
        match segment.as_str() {
            "steps" | "body" => drop(way.next()),
            "validationCriteria" => return code != Code::UnknownField || way.next().is_some(),
            _ => return false,
        }
    }
    false
}

/// `code`, `severity`, `file`, `line`, `column`, `pointer`, `message`, `hint`; what is not known is
/// left out.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Finding", 8)?;
        fields.serialize_field("code", self.code.name())?;
        fields.serialize_field("severity", &self.severity())?;
        match &self.file {
            Some(file) => fields.serialize_field("file", file)?,
            None => fields.skip_field("file")?,
        }
        match &self.place {
            Some(place) => {
                fields.serialize_field("line", &place.line)?;
                fields.serialize_field("column", &place.column)?;
            }
            None => {
                fields.skip_field("line")?;
                fields.skip_field("column")?;
            }
        }
        fields.serialize_field("pointer", &self.pointer)?;
        fields.serialize_field("message", &self.message)?;
        match &self.hint {
            Some(hint) => fields.serialize_field("hint", hint)?,
            None => fields.skip_field("hint")?,
        }
        fields.end()
    }
}
