//! What is wrong with a value, in words that help whoever wrote it: where, what was wanted, and what was probably meant.

use std::collections::HashSet;
use std::fmt;

use budget::Budget;
use budget::schema::{Evaluation, Schema};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Unchecked, Verdict};
use crate::nearest::nearest_one;
use crate::pointer;
use crate::schema::Node;
use crate::schema::print::{Style, inline};
use crate::schema::shape::{Bounds, Type, Walk};
use crate::tool::Json;

/// More problems than this help nobody.
const PROBLEMS_MAX: usize = 20;
/// A message quotes the value; beyond this it only points at it.
const QUOTED_BYTES_MAX: usize = 200;
/// How many names or values are listed.
const LISTED_MAX: usize = 12;
/// How much is said of a property that is missing.
const DESCRIPTION_BYTES_MAX: usize = 120;
/// How much of a type is told.
const EXPECTED: Bounds = Bounds { count: 60, depth: 2 };
/// How deeply one problem is looked for inside another.
const NESTED_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub kind: Kind,
    /// A JSON pointer to what is wrong: to where it belongs, for something that is missing.
    pub pointer: String,
    pub message: String,
    /// What was wanted instead, as a type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The name or value that was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A property that must be there is not.
    Missing,
    /// A property that may not be there is.
    Unknown,
    /// A value of another type than wanted.
    Type,
    /// A value that is not among those allowed.
    Choice,
    /// Anything else: too long, too small, not like a pattern.
    Other,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => out.write_str(&self.message),
            pointer => write!(out, "{pointer}: {}", self.message),
        }
    }
}

impl Problem {
    fn new(kind: Kind, pointer: &str, message: String) -> Self {
        Self { kind, pointer: pointer.to_owned(), message, expected: None, nearest: None }
    }

    /// For values so large that nobody looks for the place.
    pub(super) fn somewhere() -> Self {
        Self::new(
            Kind::Other,
            "",
            "this does not fit the schema, and is too large to say where".to_owned(),
        )
    }
}

pub(super) fn explain(
    schema: &Schema,
    json: &Json,
    value: &Value,
    evaluation: Evaluation,
    budget: &Budget,
) -> Verdict {
    let mut explanation = Explanation { schema: Node::read(json), value, problems: Vec::new() };
    let errors = schema.errors(value, evaluation, budget).unwrap_or_default();
    for error in errors {
        // A pattern that took too long: nobody knows whether the value is good.
        if matches!(
            error.kind(),
            ValidationErrorKind::BacktrackLimitExceeded { .. }
                | ValidationErrorKind::RegexEngineFailure { .. }
        ) {
            return Verdict::Unchecked(Unchecked::TooMuchWork);
        }
        explanation.add(&error, 0);
        if explanation.problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    explanation.problems.truncate(PROBLEMS_MAX);
    match explanation.problems.is_empty() {
        true => Verdict::Wrong(vec![Problem::somewhere()]),
        false => Verdict::Wrong(explanation.problems),
    }
}

struct Explanation<'a> {
    schema: Node,
    value: &'a Value,
    problems: Vec<Problem>,
}

impl Explanation<'_> {
    fn push(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn add(&mut self, error: &ValidationError<'_>, depth: usize) {
        let pointer = error.instance_path().as_str();
        match error.kind() {
            ValidationErrorKind::Required { property } => self.missing(error, property),
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for name in unexpected.iter().take(PROBLEMS_MAX) {
                    self.unknown(error, name);
                }
            }
            ValidationErrorKind::Type { kind } => {
                let wanted = wanted(kind);
                let found = error.instance();
                let message =
                    format!("wanted {wanted}, found {}{}", named(found), rewritten(kind, found));
                let problem = Problem::new(Kind::Type, pointer, message);
                self.push(Problem { expected: Some(wanted), ..problem });
            }
            ValidationErrorKind::Enum { options } => self.choice(error, options),
            ValidationErrorKind::Constant { expected_value } => {
                self.choice(error, &Value::Array(vec![Value::clone(expected_value)]));
            }
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context }
                if depth < NESTED_MAX =>
            {
                self.either(error, context, depth);
            }
            ValidationErrorKind::OneOfMultipleValid { .. } => {
                let message =
                    "this fits more than one of the forms that exclude each other".to_owned();
                self.push(Problem::new(Kind::Other, pointer, message));
            }
            _ => self.push(Problem::new(Kind::Other, pointer, cut(error))),
        }
    }

    fn missing(&mut self, error: &ValidationError<'_>, property: &Value) {
        let Some(name) = property.as_str() else { return };
        let inner = self.beside(error).and_then(|beside| beside.get("properties")?.get(name));
        let expected = inner.and_then(|inner| expected(&self.schema, inner));
        let mut message = format!("`{name}` is missing");
        if let Some(expected) = &expected {
            message.push_str(": ");
            message.push_str(expected);
        }
        let description = inner.and_then(|inner| inner.text("description"));
        if let Some(description) = description.and_then(first_line) {
            message.push_str(if expected.is_some() { ", " } else { ": " });
            message.push_str(&description);
        }
        // A name that is not known and nearly this one was probably meant to be it.
        let given = self.value.pointer(error.instance_path().as_str()).and_then(Value::as_object);
        let known: HashSet<&str> = self.names(error).collect();
        let strangers = given.into_iter().flat_map(Map::keys).map(String::as_str);
        let strangers = strangers.filter(|key| !known.contains(key));
        let meant = nearest_one(name, strangers).map(str::to_owned);
        if let Some(meant) = &meant {
            message.push_str(&format!("; did you mean it by `{meant}`?"));
        }
        let pointer = pointer::join(error.instance_path().as_str(), name);
        let problem = Problem::new(Kind::Missing, &pointer, message);
        self.push(Problem { expected, nearest: meant, ..problem });
    }

    fn unknown(&mut self, error: &ValidationError<'_>, name: &str) {
        let names = || self.names(error);
        let meant = nearest_one(name, names()).map(str::to_owned);
        let message = match &meant {
            Some(meant) => format!("`{name}` is not known; did you mean `{meant}`?"),
            None if names().next().is_none() => {
                format!("`{name}` is not known; there are no properties")
            }
            None => format!(
                "`{name}` is not known; there are {}",
                listed(names().map(|name| format!("`{name}`")))
            ),
        };
        let pointer = pointer::join(error.instance_path().as_str(), name);
        let problem = Problem::new(Kind::Unknown, &pointer, message);
        self.push(Problem { nearest: meant, ..problem });
    }

    fn choice(&mut self, error: &ValidationError<'_>, options: &Value) {
        let options = options.as_array().map_or(&[][..], Vec::as_slice);
        let texts = options.iter().filter_map(Value::as_str);
        let meant = error.instance().as_str().and_then(|text| nearest_one(text, texts));
        let choices = listed(options.iter().map(short));
        let message = match meant {
            _ if options.len() == 1 => format!("wanted {choices}"),
            Some(meant) => format!("wanted one of {choices}; did you mean \"{meant}\"?"),
            None => format!("wanted one of {choices}"),
        };
        let problem = Problem::new(Kind::Choice, error.instance_path().as_str(), message);
        self.push(Problem { nearest: meant.map(str::to_owned), ..problem });
    }

    /// Where all forms but one want another type of value altogether, that one was meant, and its problems are the problems.
    fn either(
        &mut self,
        error: &ValidationError<'_>,
        forms: &[Vec<ValidationError<'static>>],
        depth: usize,
    ) {
        let here = error.instance_path().as_str();
        let is_other_type = |inner: &ValidationError<'_>| {
            matches!(inner.kind(), ValidationErrorKind::Type { .. })
                && inner.instance_path().as_str() == here
        };
        let mut meant = forms.iter().filter(|form| !form.iter().any(is_other_type));
        if let (Some(form), None) = (meant.next(), meant.next()) {
            form.iter().take(PROBLEMS_MAX).for_each(|inner| self.add(inner, depth + 1));
            return;
        }
        let expected = self.beside(error).and_then(|part| expected(&self.schema, part));
        let found = named(error.instance());
        let message = match &expected {
            Some(expected) => format!("wanted {expected}, found {found}"),
            None => format!("this fits none of the {} forms that are allowed", forms.len()),
        };
        self.push(Problem { expected, ..Problem::new(Kind::Type, here, message) });
    }

    /// The part of the schema whose keyword complained.
    fn beside(&self, error: &ValidationError<'_>) -> Option<&Node> {
        let pointer = error.schema_path().as_str();
        let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        // A pointer, and not a reference: its percent signs are its own.
        self.schema.target(&format!("#{}", parent.replace('%', "%25")))
    }

    /// The names of the properties that stand beside that keyword.
    fn names(&self, error: &ValidationError<'_>) -> impl Iterator<Item = &str> {
        let properties = self.beside(error).and_then(|beside| beside.get("properties"));
        properties.into_iter().flat_map(Node::fields).map(|(name, _)| name.as_str())
    }
}

/// A message of the library's, without a value that is too long to be quoted.
pub(super) fn cut(error: &ValidationError<'_>) -> String {
    let quoting = error.to_string();
    if quoting.len() <= QUOTED_BYTES_MAX {
        return quoting;
    }
    untrusted_text::cut(&error.masked_with("this").to_string(), 2 * QUOTED_BYTES_MAX)
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(types) => {
            let types: Vec<String> = types.into_iter().map(|one| one.to_string()).collect();
            types.join(" | ")
        }
    }
}

/// How a text has to be written to be what was wanted.
fn rewritten(kind: &TypeKind, found: &Value) -> String {
    let Some(text) = found.as_str().filter(|text| text.len() <= QUOTED_BYTES_MAX) else {
        return String::new();
    };
    let Ok(value) = serde_json::from_str::<Value>(text) else { return String::new() };
    let wanted = wanted(kind);
    let is_it = wanted.split(" | ").any(|wanted| match &value {
        Value::Null => wanted == "null",
        Value::Bool(_) => wanted == "boolean",
        Value::Number(number) => wanted == "number" || wanted == "integer" && !number.is_f64(),
        Value::String(_) => false,
        Value::Array(_) => wanted == "array",
        Value::Object(_) => wanted == "object",
    });
    if is_it { format!("; give {text} without the quotes") } else { String::new() }
}

/// What a value is.
fn named(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The type that a schema describes, in a few words.
fn expected(schema: &Node, part: &Node) -> Option<String> {
    match Walk::new(schema, EXPECTED, &|_| false).of(part) {
        Type::Unknown | Type::Never | Type::Cut => None,
        of => Some(inline(&of, Style::Message)).filter(|text| text.len() <= QUOTED_BYTES_MAX),
    }
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(untrusted_text::cut(line, DESCRIPTION_BYTES_MAX))
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let mut names = names;
    let mut listed: Vec<String> = names.by_ref().take(LISTED_MAX).collect();
    let rest = names.count();
    if rest > 0 {
        listed.push(format!("{rest} more"));
    }
    listed.join(", ")
}

fn short(value: &Value) -> String {
    untrusted_text::cut(&value.to_string(), QUOTED_BYTES_MAX)
}
