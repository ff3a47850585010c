//! One violation of the shape: how it is told to the author, and how it is mended with a stand-in.

use serde_json::{Map, Value, json};

use super::SCHEMA;
use super::wording::{self, describe, list_names, name_of};
use crate::finding::{Code, Severity};
use crate::nearest::nearest;
use crate::pointer::join;
use crate::rules::Report;
use crate::tree::At;

/// A violation of the shape. Violations of values are the rules' business, apart from numbers that
/// are so far out of range that they cannot be read.
#[derive(Debug)]
pub(super) struct Problem {
    pointer: String,
    /// Where the violated keyword stands in the schema, without the keyword.
    schema: String,
    kind: Violation,
}

/// The key under which YAML 1.1 merges another object in.
const MERGE: &str = "<<";

/// Fields that only one kind of loop or rule has.
const TELLING: &[(&str, &str)] = &[
    ("items", "forEach"),
    ("itemVar", "forEach"),
    ("indexVar", "forEach"),
    ("count", "for"),
    ("condition", "while"),
    ("pattern", "regex"),
    ("flags", "regex"),
    ("schema", "schema"),
    ("min", "length"),
    ("max", "length"),
    ("value", "contains"),
];

/// What a value violates.
#[derive(Debug)]
pub(super) enum Violation {
    Unknown(Vec<String>),
    Missing(String),
    Type(Vec<&'static str>),
    NotOneOf(&'static [Value]),
    OutOfRange,
}

impl Problem {
    /// A violation at a place in the definition, of the schema at another.
    pub(super) fn new(pointer: String, schema: String, kind: Violation) -> Self {
        Self { pointer, schema, kind }
    }

    /// The length of the way to it.
    pub(super) fn pointer_bytes(&self) -> usize {
        self.pointer.len()
    }

    pub(super) fn is_unknown_field(&self) -> bool {
        matches!(self.kind, Violation::Unknown(_))
    }

    /// Whether a YAML merge key is there, which looks like an unknown field.
    pub(super) fn merges(&self) -> bool {
        matches!(&self.kind, Violation::Unknown(fields) if fields.iter().any(|field| field == MERGE))
    }

    /// Whether mending another problem has mended this one.
    pub(super) fn is_gone(&self, definition: &Value) -> bool {
        match &self.kind {
            Violation::Missing(field) => self.found(definition).get(field).is_some(),
            _ => false,
        }
    }

    fn found<'d>(&self, definition: &'d Value) -> &'d Value {
        definition.pointer(&self.pointer).unwrap_or(&Value::Null)
    }

    /// The definition in the schema that was violated, such as `Rule`.
    fn shape(&self) -> &str {
        match self.schema.strip_prefix("/$defs/") {
            Some(rest) => rest.split('/').next().unwrap_or_default(),
            None => "Workflow",
        }
    }

    /// The names that may stand in the object.
    fn known_fields(&self) -> Vec<&'static str> {
        fields_of(&self.schema)
    }

    /// The known field that an unknown one is most likely meant to be.
    fn meant_field(&self, field: &str) -> Option<&'static str> {
        let synonym = (self.shape() == "Condition").then(|| wording::operator(field)).flatten();
        synonym.or_else(|| nearest(field, self.known_fields()))
    }

    pub(super) fn report(&self, definition: &Value, report: &mut Report) {
        let found = self.found(definition);
        match &self.kind {
            Violation::Unknown(fields) => {
                for field in fields {
                    self.report_unknown(field, found, report);
                }
            }
            Violation::Missing(field) => self.report_missing(field, found, report),
            Violation::Type(types) => {
                let message = format!(
                    "{} must be {}, but is {}",
                    name_of(&self.pointer),
                    wording::wanted(self.shape(), &self.pointer, types),
                    describe(found),
                );
                let hint = wording::type_hint(self.shape(), &self.pointer, types, found);
                report.add(Code::WrongType, &self.pointer, At::Value, message, hint);
            }
            Violation::NotOneOf(options) => self.report_choice(options, found, report),
            Violation::OutOfRange => self.report_range(found, report),
        }
    }

    fn report_choice(&self, options: &[Value], found: &Value, report: &mut Report) {
        let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
        let code = match self.shape() {
            "Rule" => Code::UnknownRule,
            _ => Code::NotAllowed,
        };
        let listed = list_names(&options);
        let meant = found.as_str().and_then(|found| nearest(found, options.iter().copied()));
        let hint = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write {listed}"),
        };
        let name = name_of(&self.pointer);
        let message = format!("{name} is {}, but can only be {listed}", describe(found));
        report.add(code, &self.pointer, At::Value, message, Some(hint));
    }

    fn report_range(&self, found: &Value, report: &mut Report) {
        let bound = |name| SCHEMA.pointer(&self.schema)?.get(name)?.as_u64();
        let min = bound("minimum").unwrap_or_default();
        let allowed = match bound("maximum") {
            Some(max) if max < u64::from(u32::MAX) => format!("between {min} and {max}"),
            Some(max) if found.as_f64() > Some(0.0) => format!("at most {max}"),
            _ => format!("at least {min}"),
        };
        let message = format!("{} is {found}, but must be {allowed}", name_of(&self.pointer));
        report.add(Code::OutOfRange, &self.pointer, At::Value, message, None);
    }

    fn report_unknown(&self, field: &str, object: &Value, report: &mut Report) {
        // Looking for what was meant takes time: not where nobody will read it.
        if report.is_full(Severity::Error) {
            return report.leave_out_error();
        }
        let pointer = join(&self.pointer, field);
        if field == MERGE {
            let message = "merge keys (`<<`) are not supported".to_owned();
            let hint = "write the fields out; an alias may stand for a whole value".to_owned();
            return report.add(Code::UnknownField, &pointer, At::Key, message, Some(hint));
        }
        if (self.shape(), field) == ("Step", "type") {
            let found = object.get(field).map(describe).unwrap_or_default();
            let message = format!("`type` is {found}, but only a loop has a `type`");
            let hint = "remove it, or write \"loop\" and add `loop` and `body`".to_owned();
            return report.add(Code::NotAllowed, &pointer, At::Value, message, Some(hint));
        }
        let (code, message) = match self.shape() {
            "Condition" => (Code::UnknownOperator, format!("unknown operator `{field}`")),
            "LoopStep" => (Code::UnknownField, format!("a loop step has no field `{field}`")),
            _ => (Code::UnknownField, format!("unknown field `{field}`")),
        };
        let is_for_body = self.shape() == "LoopStep" && fields_of("/$defs/Step").contains(&field);
        let hint = match self.meant_field(field) {
            _ if is_for_body => "write it in the steps of the `body`".to_owned(),
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of {}", list_names(&self.known_fields())),
        };
        report.add(code, &pointer, At::Key, message, Some(hint));
    }

    fn report_missing(&self, field: &str, object: &Value, report: &mut Report) {
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        let (code, message, hint) = match (self.shape(), field) {
            ("Rule", "type") => (
                Code::RuleLacks,
                "a check needs a `type`, or `and`, `or` or `not`".to_owned(),
                "write `type`: `contains`, `regex`, `length` or `schema`".to_owned(),
            ),
            ("Rule", "min") => (
                Code::RuleLacks,
                "a `length` rule needs `min` or `max`".to_owned(),
                "say how many characters are wanted at least or at most".to_owned(),
            ),
            ("Rule", "message") => (
                Code::RuleLacks,
                "a rule needs a `message`".to_owned(),
                "say what the agent should read when the rule fails".to_owned(),
            ),
            ("Rule", field) => (
                Code::RuleLacks,
                format!("a `{kind}` rule needs a `{field}`"),
                format!("add `{field}`"),
            ),
            ("Loop", "maxIterations") => (
                Code::Unbounded,
                "the loop has no `maxIterations`, so nothing bounds it".to_owned(),
                "add `maxIterations`, between 1 and 1000".to_owned(),
            ),
            ("Loop", field) if field != "type" => (
                Code::LoopLacks,
                format!("{} loop needs `{field}`", wording::with_article(kind)),
                format!("add `{field}`"),
            ),
            ("Loop", _) => (
                Code::Missing,
                "the loop needs the field `type`".to_owned(),
                "write `type`: `while`, `until`, `for` or `forEach`".to_owned(),
            ),
            ("LoopStep", "type") => (
                Code::Missing,
                "a step with a `loop` or a `body` needs the field `type`".to_owned(),
                "write `type`: `loop`".to_owned(),
            ),
            (shape, field) => (
                Code::Missing,
                format!("{} needs the field `{field}`", wording::owner(shape)),
                format!("add `{field}`"),
            ),
        };
        // The place is the object; what is covered from now on is the field that is not there.
        report.add(code, &join(&self.pointer, field), At::Value, message, Some(hint));
    }

    pub(super) fn mend(&self, definition: &mut Value, report: &mut Report) {
        let Some(value) = definition.pointer_mut(&self.pointer) else {
            return;
        };
        match (&self.kind, value) {
            (Violation::Unknown(fields), Value::Object(object)) => {
                for field in fields {
                    self.rename(field, object, report);
                }
            }
            (Violation::Missing(field), Value::Object(object)) => {
                let stand_in = match field.as_str() {
                    "type" => self.likely_kind(None, object, report),
                    field => self.field_schema(field).map(stand_in),
                };
                object.extend(stand_in.map(|stand_in| (field.clone(), stand_in)));
            }
            (Violation::NotOneOf(_), _) => self.mend_choice(definition, report),
            (_, value) => *value = SCHEMA.pointer(&self.schema).map(stand_in).unwrap_or_default(),
        }
    }

    /// Takes a misspelt field for what is meant, so that the object is not told that it lacks it. What
    /// is inside is looked at once the name is right.
    fn rename(&self, field: &str, object: &mut Map<String, Value>, report: &mut Report) {
        let value = object.remove(field);
        if field == MERGE {
            return self.merge(value.unwrap_or_default(), object, report);
        }
        if report.is_full(Severity::Error) {
            return;
        }
        if let Some(meant) = self.meant_field(field)
            && !object.contains_key(meant)
        {
            object.extend(value.map(|value| (meant.to_owned(), value)));
            report.hush(join(&self.pointer, meant));
        }
    }

    /// Does what the author meant, so that the object is not told that it lacks what would be merged.
    fn merge(&self, value: Value, object: &mut Map<String, Value>, report: &mut Report) {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.merge(item, object, report);
                }
            }
            Value::Object(fields) => {
                for (field, value) in fields {
                    if field == MERGE {
                        self.merge(value, object, report);
                    } else if !object.contains_key(&field) {
                        report.hush(join(&self.pointer, &field));
                        object.insert(field, value);
                    }
                }
            }
            _ => {}
        }
    }

    fn mend_choice(&self, definition: &mut Value, report: &mut Report) {
        let Some((parent, field)) = self.pointer.rsplit_once('/') else {
            return;
        };
        if let Some(Value::Object(object)) = definition.pointer_mut(parent) {
            let found = object.get(field).and_then(Value::as_str).map(str::to_owned);
            let kind = self.likely_kind(found.as_deref(), object, report);
            object.extend(kind.map(|kind| (field.to_owned(), kind)));
        }
    }

    /// The kind of loop or rule that is meant where `type` is wrong or missing: the nearest name, or
    /// the one whose fields are there. What a guessed kind lacks, or has too much, is not reported.
    fn likely_kind(
        &self,
        found: Option<&str>,
        object: &Map<String, Value>,
        report: &mut Report,
    ) -> Option<Value> {
        let schema = match found {
            Some(_) => SCHEMA.pointer(&self.schema)?,
            None => self.field_schema("type")?,
        };
        let options: Vec<&str> = match schema.get("enum").and_then(Value::as_array) {
            Some(options) => options.iter().filter_map(Value::as_str).collect(),
            None => vec![schema.get("const")?.as_str()?],
        };
        if let Some(meant) = found.and_then(|found| nearest(found, options.iter().copied())) {
            return Some(json!(meant));
        }
        let fields: Vec<_> = TELLING.iter().filter(|(_, kind)| options.contains(kind)).collect();
        let told = fields.iter().find(|(field, _)| object.contains_key(*field));
        let told = told.map(|(_, kind)| *kind).or(options.first().copied())?;
        let parent = self.pointer.strip_suffix("/type").unwrap_or(&self.pointer);
        for (field, kind) in fields {
            if *kind != told || !object.contains_key(*field) {
                report.hush(join(parent, field));
            }
        }
        Some(json!(told))
    }

    /// The schema of a field beside or above the violated keyword.
    fn field_schema(&self, field: &str) -> Option<&'static Value> {
        let mut path = self.schema.as_str();
        loop {
            let found = SCHEMA.pointer(path)?.get("properties").and_then(|all| all.get(field));
            if found.is_some() {
                return found;
            }
            path = path.rsplit_once('/')?.0;
        }
    }
}

fn fields_of(schema: &str) -> Vec<&'static str> {
    let known = SCHEMA.pointer(schema).and_then(|schema| schema.get("properties"));
    let known = known.and_then(Value::as_object).map(Map::keys);
    known.into_iter().flatten().map(String::as_str).collect()
}

/// A value that fits a schema's type; what it lacks inside is mended in the next pass.
fn stand_in(schema: &Value) -> Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return SCHEMA.pointer(name.trim_start_matches('#')).map(stand_in).unwrap_or_default();
    }
    if let Some(otherwise) = schema.get("else") {
        return stand_in(otherwise);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!(""),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("boolean") => json!(false),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(0)),
        _ => Value::Null,
    }
}
