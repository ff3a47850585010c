//! A tool as one line that an agent can read: `create_issue(owner: string, title: string, labels?: string[]): {number: number}`,
//! or a few lines where one would be too long. And the command that calls it, to be pasted into a shell.

use serde_json::Value;
use untrusted_text::cut;

use crate::schema::Node;
use crate::schema::print::{Printer, Style, inline};
use crate::schema::shape::{Bounds, Object, Others, Type, Walk};
use crate::tool::{Json, Tool};

mod sample;

/// A signature that is longer than this goes over several lines.
const LINE_CHARS_MAX: usize = 120;
/// The longest signature. Where there is more, less is said of what is nested.
const SIGNATURE_BYTES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 6;
const TYPES_MAX: usize = 200;
/// How many arguments are in a call to paste.
const ARGUMENTS_MAX: usize = 20;

/// The tool as a typed signature.
pub fn signature(tool: &Tool) -> String {
    let input = Node::read(&tool.input_schema);
    let output = tool.output_schema.as_ref().map(Node::read);
    let mut text = String::new();
    for depth in (0..=DEPTH_MAX).rev() {
        text = at_depth(&tool.name, &input, output.as_ref(), depth);
        if text.len() <= SIGNATURE_BYTES_MAX {
            return text;
        }
    }
    cut(&text, SIGNATURE_BYTES_MAX)
}

fn at_depth(name: &str, input: &Node, output: Option<&Node>, depth: usize) -> String {
    let bounds = Bounds { count: TYPES_MAX, depth };
    let arguments = arguments(input, bounds);
    let result = match output.map(|output| Walk::new(output, bounds, &|_| false).of(output)) {
        None | Some(Type::Unknown) => String::new(),
        Some(result) => format!(": {}", inline(&result, Style::Signature)),
    };
    let line = format!("{name}({}){result}", arguments.join(", "));
    if line.chars().count() <= LINE_CHARS_MAX || arguments.len() < 2 {
        return line;
    }
    format!("{name}(\n  {}\n){result}", arguments.join(",\n  "))
}

fn arguments(input: &Node, bounds: Bounds) -> Vec<String> {
    let mut walk = Walk::new(input, bounds, &|_| false);
    let of = walk.of(input);
    match &of {
        Type::Object(Object { properties, others }) if !properties.is_empty() => {
            let mut arguments: Vec<String> = Vec::new();
            for property in properties {
                let mut printer = Printer::new(Style::Signature, &|_| String::new());
                printer.property(property, 0);
                arguments.push(printer.out);
            }
            let is_open = matches!(others, Others::Of(_));
            if is_open || walk.is_cut && properties.len() < declared(input) {
                arguments.push("…".to_owned());
            }
            arguments
        }
        Type::Unknown => vec!["args?: unknown".to_owned()],
        Type::Object(Object { others: Others::Unsaid | Others::No, .. }) => Vec::new(),
        other => vec![format!("args: {}", inline(other, Style::Signature))],
    }
}

fn declared(input: &Node) -> usize {
    input.get("properties").map_or(0, |properties| properties.fields().len())
}

/// A plausible word for everything that must be there, as `typed` reads words.
pub fn sample_words(schema: &Json) -> Vec<String> {
    let node = Node::read(schema);
    let of =
        Walk::new(&node, Bounds { count: TYPES_MAX, depth: 2 * DEPTH_MAX }, &|_| false).of(&node);
    let arguments = sample::of(&of, &node);
    let Value::Object(_) = arguments else { return Vec::new() };
    // In the order of the signature, not of the alphabet.
    let required = match &of {
        Type::Object(object) => object.properties.iter().map(|property| property.name).collect(),
        _ => Vec::new(),
    };
    // A name that would do something to a terminal is nothing to paste.
    let fields = arguments.as_object().into_iter().flatten();
    let fields = fields.filter(|(key, _)| !key.contains(char::is_control));
    let mut words: Vec<(usize, String)> = fields
        .map(|(key, value)| {
            let at = required.iter().position(|name| name == key).unwrap_or(usize::MAX);
            (at, crate::typed::word(key, value))
        })
        .collect();
    words.sort();
    words.into_iter().take(ARGUMENTS_MAX).map(|(_, word)| word).collect()
}

#[cfg(test)]
mod tests;
