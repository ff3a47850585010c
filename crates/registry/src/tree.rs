//! A configuration as an untyped tree with places, from JSON with comments or from TOML.

use std::ops::Range;

use super::finding::Place;

mod jsonc;
mod toml;

pub use jsonc::OPTIONS;
pub(crate) use jsonc::parse as parse_jsonc;
pub(crate) use toml::parse as parse_toml;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Bytes in the text.
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    /// A date, for example: nothing that any of our fields holds.
    Other,
    List(Vec<Node>),
    Object(Vec<Field>),
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) key_range: Range<usize>,
    pub(crate) value: Node,
}

/// Why no tree could be built, and where.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
}

impl Node {
    pub(crate) fn fields(&self) -> Option<&[Field]> {
        match &self.kind {
            Kind::Object(fields) => Some(fields),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key; the first where it stands twice.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let mut fields = self.fields()?.iter();
        fields.find(|field| field.key == key).map(|field| &field.value)
    }

    pub(crate) fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Flag(_) => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::Other => "a date or a time",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

/// Turns byte ranges into lines and columns.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1));
        Self { text, starts: starts.collect() }
    }

    pub(crate) fn narrow(&self, range: &Range<usize>, part: &str) -> Range<usize> {
        let within = self.text.get(range.clone()).and_then(|text| text.find(part));
        within.map_or(range.clone(), |at| range.start + at..range.start + at + part.len())
    }

    pub(crate) fn place(&self, range: &Range<usize>) -> Place {
        let mut start = range.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let line = self.starts.partition_point(|&first| first <= start);
        let line_start = self.starts[line - 1];
        let rest = self.text[start..].lines().next().unwrap_or_default();
        let length = range.end.saturating_sub(start);
        let inside = rest.char_indices().take_while(|(at, _)| *at < length);
        Place {
            line,
            column: self.text[line_start..start].chars().count() + 1,
            length: inside.count().max(1),
        }
    }
}
