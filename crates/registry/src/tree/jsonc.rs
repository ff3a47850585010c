//! JSON with comments and trailing commas, and not a bit looser: what a client would not read, we do not read either.

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{Field, Kind, Node, Unreadable};

/// What every configuration of a client is read with, wherever it is read or edited.
pub const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(crate) fn parse(text: &str) -> Result<Node, Unreadable> {
    match parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map(|parsed| parsed.value) {
        Ok(Some(value)) => Ok(node(&value)),
        Ok(None) => Err(Unreadable { range: 0..1, message: "the file is empty".to_owned() }),
        Err(error) => {
            let range = error.range();
            let mut message = error.kind().to_string();
            // Ours begin with a small letter.
            if let Some(first) = message.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            Err(Unreadable { range: range.start..range.end, message })
        }
    }
}

/// The parser bounds the nesting, so this does not go deep.
fn node(value: &Value<'_>) -> Node {
    let range = value.range();
    let kind = match value {
        Value::StringLit(text) => Kind::Text(text.value.to_string()),
        Value::NumberLit(number) => number.value.parse().map_or(Kind::Other, Kind::Number),
        Value::BooleanLit(flag) => Kind::Flag(flag.value),
        Value::NullKeyword(_) => Kind::Null,
        Value::Array(array) => Kind::List(array.elements.iter().map(node).collect()),
        Value::Object(object) => {
            let fields = object.properties.iter().map(|property| {
                let (key, range) = match &property.name {
                    ObjectPropName::String(name) => (name.value.to_string(), name.range),
                    ObjectPropName::Word(name) => (name.value.to_owned(), name.range),
                };
                Field { key, key_range: range.start..range.end, value: node(&property.value) }
            });
            Kind::Object(fields.collect())
        }
    };
    Node { range: range.start..range.end, kind }
}
