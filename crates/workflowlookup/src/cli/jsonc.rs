//! Configuration files are JSON with comments and trailing commas, and not a bit looser: what a client
//! would not read, we do not read either.

use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, parse_to_ast, parse_to_serde_value};
pub(crate) use registry::JSONC as OPTIONS;
use serde_json::Value;

/// What is wrong with a text, and where: line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
}

impl Misfit {
    /// At a place in a text, by its bytes.
    pub(crate) fn at(text: &str, offset: usize, message: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Self { line, column: before[start..].chars().count() + 1, message }
    }
}

/// The value of a text; null where there is nothing in it.
pub(crate) fn value(text: &str) -> Result<Value, Misfit> {
    let text = without_mark(text);
    let misfit = |error: ParseError| {
        let mut message = error.kind().to_string();
        // Ours begin with a small letter, too.
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        Misfit::at(text, error.range().start, message)
    };
    // This reading bounds the nesting; the other one makes values.
    parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(misfit)?;
    parse_to_serde_value(text, &OPTIONS).map_err(misfit)
}

/// Some editors put a byte order mark in front.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}
