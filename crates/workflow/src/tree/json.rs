//! Strict JSON with places.

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::{Field, Kind, Lines, Node, Unreadable};
use crate::finding::Code;
use crate::limits::NESTING_MAX;

/// Parses JSON. The syntax is judged by serde, which also reads the good files: one judge, one verdict.
pub(crate) fn parse(text: &str) -> Result<Node, Unreadable> {
    // Read as values, not just looked over: a number out of range or half a surrogate pair counts.
    if let Err(error) = serde_json::from_str::<Value>(text) {
        return Err(syntax_error(text, &error));
    }
    let strict = ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &strict);
    match parsed.map(|parsed| parsed.value) {
        Ok(Some(value)) => Ok(node(&value)),
        Ok(None) => Err(unreadable(0, "the file is empty".to_owned())),
        Err(error) => Err(unreadable(error.range().start, error.kind().to_string())),
    }
}

/// The place where nesting exceeds [`NESTING_MAX`], found without recursion. Every file is looked
/// through, good ones too, so whole texts are stepped over at once.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut start = 0;
    for piece in text.as_bytes().split(|byte| *byte == b'"') {
        if in_text {
            // A quote after an odd number of backslashes belongs to the text.
            let backslashes = piece.iter().rev().take_while(|byte| **byte == b'\\').count();
            in_text = backslashes % 2 == 1;
        } else {
            for (at, byte) in piece.iter().enumerate() {
                match byte {
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth > NESTING_MAX {
                    return Some(start + at);
                }
            }
            in_text = true;
        }
        start += piece.len() + 1;
    }
    None
}

fn syntax_error(text: &str, error: &serde_json::Error) -> Unreadable {
    let mut at = Lines::new(text).offset(error.line(), error.column().max(1));
    if error.is_eof() {
        // Behind the last thing that is there: an empty line would show nothing.
        at = at.min(text.trim_end().len());
    }
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full);
    let message = match message.strip_prefix("EOF while parsing ") {
        _ if text.trim().is_empty() => "the file is empty".to_owned(),
        Some(what) => format!("the file ends in the middle of {what}"),
        None => message.to_lowercase(),
    };
    let mut problem = unreadable(at, message);
    problem.hint = hint(text, at, error);
    problem
}

fn hint(text: &str, at: usize, error: &serde_json::Error) -> Option<String> {
    if text.trim().is_empty() {
        return Some(
            "write a workflow; `workflowlookup new ID` makes one to start from".to_owned(),
        );
    }
    if error.is_eof() {
        return Some("look for a missing bracket, brace or quote".to_owned());
    }
    let said = error.to_string();
    if said.contains("surrogate") || said.contains("end of hex escape") {
        return Some(
            "this is half of a surrogate pair: write the other half too, or the character itself"
                .to_owned(),
        );
    }
    let before = text[..at].trim_end();
    match text[at..].chars().next() {
        Some(']' | '}') if before.ends_with(',') => Some("remove the comma before it".to_owned()),
        Some('/' | '#') => {
            Some("JSON has no comments: remove it, or write the file in YAML".to_owned())
        }
        Some('\'') => Some("JSON texts stand in double quotes".to_owned()),
        Some('"') => Some("a comma may be missing before it".to_owned()),
        _ if text
            .trim_start()
            .starts_with(|c: char| c.is_alphanumeric() || c.is_ascii_punctuation())
            && !text.trim_start().starts_with(['{', '[']) =>
        {
            Some("a definition in JSON begins with `{`".to_owned())
        }
        _ => None,
    }
}

fn unreadable(at: usize, message: String) -> Unreadable {
    Unreadable { code: Code::Syntax, range: at..at + 1, message, hint: None }
}

fn node(value: &Ast<'_>) -> Node {
    let range = value.range();
    let kind = match value {
        Ast::StringLit(text) => Kind::Scalar(Value::String(text.value.to_string())),
        Ast::NumberLit(number) => {
            // A number that serde has accepted already.
            Kind::Scalar(serde_json::from_str(number.value).unwrap_or_default())
        }
        Ast::BooleanLit(flag) => Kind::Scalar(Value::Bool(flag.value)),
        Ast::NullKeyword(_) => Kind::Scalar(Value::Null),
        Ast::Array(array) => Kind::List(array.elements.iter().map(node).collect()),
        Ast::Object(object) => {
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
