//! A finding: something wrong in a registry, with a stable code, a place, and what to try. It has the shape of the
//! findings of workflows. No value of a file is ever part of one: it may be a secret.

use std::fmt;

use serde::{Serialize, Serializer};

/// An error keeps an entry, or a whole file, from being used. The others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    /// Good to know.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

macro_rules! codes {
    ($($variant:ident $name:literal $meaning:literal)*) => {
        /// What is wrong. A code never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name, such as `registry/unknown-field`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => concat!("registry/", $name),)* }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    Unreadable "unreadable" "the file cannot be read"
    TooLarge "too-large" "the file is too large, or has too many servers"
    Syntax "syntax" "the file is not JSON, or not TOML"
    Shape "shape" "there is no list and no map of servers in the file"
    Exposed "exposed" "others on this machine can change the file, and so what is started"
    DuplicateKey "duplicate-key" "a key stands twice in one object"
    DuplicateId "duplicate-id" "two servers have the same id"
    BadId "bad-id" "an id that is not in kebab-case"
    Renamed "renamed" "a server has another id here than its client calls it"
    UnknownField "unknown-field" "a field that does not exist"
    Missing "missing" "a field that is needed is not there"
    WrongType "wrong-type" "a value is of the wrong type"
    NotAllowed "not-allowed" "a value that is not one of those allowed"
    OutOfRange "out-of-range" "a number out of range"
    TextLength "text-length" "a text that is empty or too long, or a list that is too long"
    TwoWays "two-ways" "a server has both a command and a URL, or a field twice"
    Transport "transport" "a transport that cannot be used"
    OldTransport "old-transport" "a transport that was replaced by another"
    NoEffect "no-effect" "a field that has no effect here"
    ClientOnly "client-only" "something that only the client can do that the file belongs to"
    BadVariable "bad-variable" "a variable that is not written as one"
    UnsetVariable "unset-variable" "a variable that is not set"
    BadUrl "bad-url" "an address that cannot be used"
    BadHeader "bad-header" "a header that cannot be sent"
    BadEnvironment "bad-environment" "an environment variable that cannot be passed on"
    LoaderVariable "loader-variable" "an environment variable that loads code into a program, and is left out"
    PlainHttp "plain-http" "a secret that is sent over the network unprotected"
    BadGlob "bad-glob" "a pattern of tools' names that cannot be used"
    DeniedAnyway "denied-anyway" "a tool that skips a confirmation, and is denied"
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Line and column count from 1, in characters; `length` is how far the culprit reaches on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
    #[serde(skip)]
    pub length: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub code: Code,
    pub severity: Severity,
    /// The file as the reader knows it; absent where a text was read that is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Box<str>>,
    /// Absent where the finding is about the file as a whole.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// A JSON pointer into the file; empty for the whole of it.
    pub pointer: Box<str>,
    pub message: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Box<str>>,
}

impl Finding {
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// For people: what, where, what to try. The line itself is not shown: there may be a secret in it.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, severity, message, .. } = self;
        writeln!(out, "{severity}[{}]: {message}", code.name())?;
        write!(out, " --> {}", self.file.as_deref().unwrap_or("registry"))?;
        if let Some(place) = self.place {
            write!(out, ":{}:{}", place.line, place.column)?;
        }
        if !self.pointer.is_empty() {
            write!(out, " ({})", self.pointer)?;
        }
        match &self.hint {
            Some(hint) => write!(out, "\n  = try: {hint}"),
            None => Ok(()),
        }
    }
}
