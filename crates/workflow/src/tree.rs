//! A definition as an untyped tree with places. It is built for YAML always, and for JSON only where
//! the typed reader found something wrong: good JSON files never pay for it.

use std::ops::Range;

use serde_json::Value;

use crate::finding::{Code, Place};
use crate::limits::NESTING_MAX;

mod json;
mod yaml;

pub(crate) use json::{parse as parse_json, too_deep as json_too_deep};
pub(crate) use yaml::parse as parse_yaml;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Bytes in the text.
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Scalar(Value),
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
    pub(crate) code: Code,
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Unreadable {
    pub(crate) fn too_deep(range: Range<usize>) -> Self {
        Self {
            code: Code::TooDeep,
            range,
            message: format!("nested more than {NESTING_MAX} levels deep"),
            hint: Some("flatten the definition".to_owned()),
        }
    }
}

/// A key that stands twice in one object.
#[derive(Debug)]
pub(crate) struct Duplicate {
    pub(crate) pointer: String,
    pub(crate) key: String,
    pub(crate) range: Range<usize>,
}

/// Which part of a field a finding points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Key,
    Value,
}

impl Node {
    /// The value without places. Of a key that stands twice the last one counts, as in serde.
    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => Value::Array(items.iter().map(Node::value).collect()),
            Kind::Object(fields) => {
                let fields = fields.iter().map(|field| (field.key.clone(), field.value.value()));
                Value::Object(fields.collect())
            }
        }
    }

    /// How many levels of lists and objects there are.
    pub(crate) fn height(&self) -> usize {
        match &self.kind {
            Kind::Scalar(_) => 0,
            Kind::List(items) => 1 + items.iter().map(Node::height).max().unwrap_or(0),
            Kind::Object(fields) => {
                1 + fields.iter().map(|field| field.value.height()).max().unwrap_or(0)
            }
        }
    }

    /// Where the pointer leads; as far as it leads where its end is not there.
    pub(crate) fn find(&self, pointer: &str, at: At) -> Range<usize> {
        let mut node = self;
        let mut key = None;
        for segment in crate::pointer::segments(pointer) {
            let inner = match &node.kind {
                Kind::Object(fields) => fields.iter().rev().find(|field| field.key == segment),
                Kind::List(items) => {
                    match segment.parse().ok().and_then(|at: usize| items.get(at)) {
                        Some(item) => {
                            (node, key) = (item, None);
                            continue;
                        }
                        None => None,
                    }
                }
                Kind::Scalar(_) => None,
            };
            match inner {
                Some(field) => (node, key) = (&field.value, Some(&field.key_range)),
                // What is missing is reported at the beginning of what lacks it.
                None => return node.range.start..node.range.start + 1,
            }
        }
        match (at, key) {
            (At::Key, Some(key)) => key.clone(),
            _ => node.range.clone(),
        }
    }

    pub(crate) fn duplicates(&self) -> Vec<Duplicate> {
        let mut found = Vec::new();
        self.collect_duplicates("", &mut found);
        found
    }

    fn collect_duplicates(&self, pointer: &str, found: &mut Vec<Duplicate>) {
        match &self.kind {
            Kind::Scalar(_) => {}
            Kind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.collect_duplicates(&format!("{pointer}/{index}"), found);
                }
            }
            Kind::Object(fields) => {
                let mut seen = std::collections::HashSet::new();
                for field in fields {
                    let inner = crate::pointer::join(pointer, &field.key);
                    if !seen.insert(&field.key) {
                        found.push(Duplicate {
                            pointer: inner.clone(),
                            key: field.key.clone(),
                            range: field.key_range.clone(),
                        });
                    }
                    field.value.collect_duplicates(&inner, found);
                }
            }
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

    pub(crate) fn place(&self, range: &Range<usize>) -> Place {
        let start = range.start.min(self.text.len());
        let line = self.starts.partition_point(|&first| first <= start);
        let line_start = self.starts[line - 1];
        let rest = self.text[start..].lines().next().unwrap_or_default();
        let length = range.end.saturating_sub(start);
        // A range may end within a character: whoever made it knew only where it starts.
        let inside = rest.char_indices().take_while(|(at, _)| *at < length);
        Place {
            line,
            column: chars(&self.text[line_start..start]) + 1,
            length: inside.count().max(1),
        }
    }

    /// Where `part` stands in the range; the whole range where it is written in another way.
    pub(crate) fn narrow(&self, range: Range<usize>, part: Option<&str>) -> Range<usize> {
        let within = part.and_then(|part| {
            let at = range.start + self.text.get(range.clone())?.find(part)?;
            Some(at..at + part.len())
        });
        within.unwrap_or(range)
    }

    /// The byte at which a line (from 1) and a column of bytes (from 1, as serde counts) stand.
    pub(crate) fn offset(&self, line: usize, column: usize) -> usize {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let mut offset = (start + column.saturating_sub(1)).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}
