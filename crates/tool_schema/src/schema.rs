//! A tool's schema for everybody who reads it and does not check with it: a tree that keeps the order in which properties
//! were written, and the type that it describes (`schema/shape.rs`).

use std::fmt;

use budget::schema::percent_decode;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

use crate::tool::Json;

pub(crate) mod print;
pub(crate) mod shape;

/// Larger schemas are not taken apart.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// JSON whose objects keep their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// A schema that is too large or nested too deeply says nothing.
    pub(crate) fn read(json: &Json) -> Self {
        let text = json.text();
        let read = (text.len() <= SCHEMA_BYTES_MAX).then(|| serde_json::from_str(text).ok());
        read.flatten().unwrap_or(Self::Bool(true))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.fields().iter().find_map(|(name, value)| (name == key).then_some(value))
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Self::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self, key: &str) -> Option<&Number> {
        match self.get(key) {
            Some(Self::Number(number)) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn list(&self, key: &str) -> &[Self] {
        match self.get(key) {
            Some(Self::List(items)) => items,
            _ => &[],
        }
    }

    pub(crate) fn fields(&self) -> &[(String, Self)] {
        match self {
            Self::Object(fields) => fields,
            _ => &[],
        }
    }

    /// Where a reference leads.
    pub(crate) fn target(&self, reference: &str) -> Option<&Self> {
        path(reference)?.iter().try_fold(self, |node, step| match node {
            Self::List(items) => items.get(step.parse::<usize>().ok()?),
            node => node.get(step),
        })
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(is) => Value::Bool(*is),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::List(items) => items.iter().map(Self::value).collect(),
            Self::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), value.value())).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Node, E> {
        Ok(Node::Bool(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Number::from_f64(number).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(field) = fields.next_entry()? {
            list.push(field);
        }
        Ok(Node::Object(list))
    }
}

/// The steps of a reference into the schema itself; nothing for one that leads elsewhere, or by another way than a JSON
/// pointer.
pub(crate) fn path(reference: &str) -> Option<Vec<String>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let steps = pointer.strip_prefix('/')?.split('/');
    steps.map(|step| Some(percent_decode(step)?.replace("~1", "/").replace("~0", "~"))).collect()
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn references_are_read() {
        for (reference, steps) in [
            ("#", Some(vec![])),
            ("#/", Some(vec![""])),
            ("#/$defs/a", Some(vec!["$defs", "a"])),
            ("#/a~1b/c~0d/~01", Some(vec!["a/b", "c~d", "~1"])),
            ("#/a%20b/%C3%A9", Some(vec!["a b", "é"])),
            ("#/%", None),
            ("#/%zz", None),
            ("#/%ff", None),
            ("#name", None),
            ("", None),
            ("other.json#/a", None),
            ("https://example.com", None),
        ] {
            let found = path(reference);
            let found = found.as_ref().map(|steps| steps.iter().map(String::as_str).collect());
            assert_eq!(found, steps, "{reference}");
        }
    }
}
