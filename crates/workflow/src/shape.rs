//! The shape of a definition: its JSON Schema, generated from the types, and every violation of it at
//! once. Typed reading stops at its first error, so a file that it refuses comes here: all
//! structural problems are reported, and mended with stand-ins, so that the rules can still look at
//! the rest of the file.

use std::sync::LazyLock;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::definition::Workflow;
use crate::finding::Code;
use crate::nearest::nearest;
use crate::pointer::{is_within, join, segments};
use crate::rules::Report;
use crate::serial::Whole;
use crate::tree::At;

/// Mending one problem may uncover another (an object that lacks fields of its own). The nesting of
/// our shapes bounds how often.
const PASSES_MAX: usize = 16;

static SCHEMA: LazyLock<Value> = LazyLock::new(generate);

static VALIDATOR: LazyLock<Option<Validator>> =
    LazyLock::new(|| jsonschema::options().offline().build(&SCHEMA).ok());

/// The JSON Schema of a definition, as text.
pub fn schema_text() -> String {
    format!("{:#}\n", *SCHEMA)
}

fn generate() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with_transform(NoNull);
    let mut schema = settings.into_generator().into_root_schema_for::<Workflow>();
    schema.insert("title".to_owned(), json!("Workflow"));
    schema.to_value()
}

/// A schema that is one of two others, decided by a test. Unlike `anyOf` it leads to one set of
/// complaints: those about what the author meant.
pub(crate) fn choose(test: Value, then: Schema, otherwise: Schema) -> Schema {
    schemars::json_schema!({"if": test, "then": then, "else": otherwise})
}

impl JsonSchema for Whole {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Whole".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "integer", "minimum": 0})
    }
}

/// An optional field may be absent, but not null.
#[derive(Debug, Clone)]
struct NoNull;

impl Transform for NoNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".to_owned(), only);
            }
        }
        let null = json!({"type": "null"});
        if let Some(Value::Array(options)) = object.get_mut("anyOf")
            && options.contains(&null)
        {
            options.retain(|option| *option != null);
            if let [Value::Object(only)] = options.as_slice() {
                let only = only.clone();
                object.remove("anyOf");
                object.extend(only);
            }
        }
    }
}

/// Reports every structural problem of `definition` and mends it.
pub(crate) fn mend(definition: &mut Value, report: &mut Report) {
    let Some(validator) = VALIDATOR.as_ref() else {
        return;
    };
    for pass in 0..PASSES_MAX {
        let problems: Vec<Problem> = validator
            .iter_errors(definition)
            .filter_map(|error| {
                let pointer = error.instance_path().to_string();
                let schema = error.schema_path().to_string();
                Problem::new(pointer, &schema, error.kind())
            })
            .collect();
        if problems.is_empty() {
            break;
        }
        for problem in problems {
            if pass == 0 || !report.covers(&problem.place()) {
                problem.report(definition, report);
            }
            problem.mend(definition);
        }
    }
    drop_idle_fields(definition, report);
}

/// A violation of the shape; violations of values are the rules' business.
struct Problem {
    pointer: String,
    /// Where the violated keyword stands in the schema, without the keyword.
    schema: String,
    kind: Violation,
}

enum Violation {
    Unknown(Vec<String>),
    Missing(String),
    Type(Vec<&'static str>),
    NotOneOf(Vec<Value>),
}

impl Problem {
    fn new(pointer: String, schema: &str, kind: &ValidationErrorKind) -> Option<Self> {
        let violation = match kind {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                Violation::Unknown(unexpected.clone())
            }
            ValidationErrorKind::Required { property } => {
                Violation::Missing(property.as_str()?.to_owned())
            }
            ValidationErrorKind::Type { .. } => {
                let types = SCHEMA.pointer(schema)?;
                let names = match types {
                    Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                    name => vec![name.as_str()?],
                };
                Violation::Type(names)
            }
            ValidationErrorKind::Constant { expected_value } => {
                Violation::NotOneOf(vec![(**expected_value).clone()])
            }
            ValidationErrorKind::Enum { options } => {
                Violation::NotOneOf(options.as_array()?.clone())
            }
            _ => return None,
        };
        let parent = schema.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Self { pointer, schema: parent.to_owned(), kind: violation })
    }

    fn place(&self) -> String {
        match &self.kind {
            Violation::Missing(field) => join(&self.pointer, field),
            _ => self.pointer.clone(),
        }
    }

    /// The definition in the schema that was violated, such as `Rule`.
    fn shape(&self) -> &str {
        match self.schema.strip_prefix("/$defs/") {
            Some(rest) => rest.split('/').next().unwrap_or_default(),
            None => "Workflow",
        }
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

    fn report(&self, definition: &Value, report: &mut Report) {
        match &self.kind {
            Violation::Unknown(fields) => {
                for field in fields {
                    self.report_unknown(field, report);
                }
            }
            Violation::Missing(field) => self.report_missing(field, definition, report),
            Violation::Type(types) => {
                let found = definition.pointer(&self.pointer).unwrap_or(&Value::Null);
                let message = format!(
                    "{} must be {}, but is {}",
                    name_of(&self.pointer),
                    types.iter().map(|name| type_name(name)).collect::<Vec<_>>().join(" or "),
                    describe(found),
                );
                report.add(
                    Code::WrongType,
                    &self.pointer,
                    At::Value,
                    message,
                    type_hint(types, found),
                );
            }
            Violation::NotOneOf(options) => {
                let found = definition.pointer(&self.pointer).unwrap_or(&Value::Null);
                let options: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
                let code = match self.shape() {
                    "Rule" => Code::UnknownRule,
                    _ => Code::NotAllowed,
                };
                let listed = list_names(options.iter().copied());
                let meant =
                    found.as_str().and_then(|found| nearest(found, options.iter().copied()));
                let hint = match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("write {listed}"),
                };
                let message = format!(
                    "{} is {}, but can only be {listed}",
                    name_of(&self.pointer),
                    describe(found)
                );
                report.add(code, &self.pointer, At::Value, message, Some(hint));
            }
        }
    }

    fn report_unknown(&self, field: &str, report: &mut Report) {
        let known = SCHEMA.pointer(&self.schema).and_then(|schema| schema.get("properties"));
        let known = known.and_then(Value::as_object).map(Map::keys);
        let names: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
        let (code, message) = match self.shape() {
            "Condition" => (Code::UnknownOperator, format!("unknown operator `{field}`")),
            "LoopStep" => (Code::UnknownField, format!("a loop step has no field `{field}`")),
            _ => (Code::UnknownField, format!("unknown field `{field}`")),
        };
        let hint = match nearest(field, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of {}", list_names(names.iter().copied())),
        };
        report.add(code, &join(&self.pointer, field), At::Key, message, Some(hint));
    }

    fn report_missing(&self, field: &str, definition: &Value, report: &mut Report) {
        let object = definition.pointer(&self.pointer).unwrap_or(&Value::Null);
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
                format!("a `{kind}` loop needs `{field}`"),
                format!("add `{field}`"),
            ),
            (_, field) => (
                Code::Missing,
                format!("{} needs the field `{field}`", owner_name(self.shape())),
                format!("add `{field}`"),
            ),
        };
        // The place is the object; what is covered from now on is the field that is not there.
        report.add(code, &join(&self.pointer, field), At::Value, message, Some(hint));
    }

    fn mend(&self, definition: &mut Value) {
        match &self.kind {
            Violation::Unknown(fields) => {
                if let Some(Value::Object(object)) = definition.pointer_mut(&self.pointer) {
                    object.retain(|key, _| !fields.contains(key));
                }
            }
            Violation::Missing(field) => {
                let stand_in = self.field_schema(field).map(stand_in);
                if let (Some(Value::Object(object)), Some(stand_in)) =
                    (definition.pointer_mut(&self.pointer), stand_in)
                {
                    object.insert(field.clone(), stand_in);
                }
            }
            Violation::Type(_) | Violation::NotOneOf(_) => {
                let stand_in = SCHEMA.pointer(&self.schema).map(stand_in);
                if let (Some(value), Some(stand_in)) =
                    (definition.pointer_mut(&self.pointer), stand_in)
                {
                    *value = stand_in;
                }
            }
        }
    }
}

/// A value that fits a schema's type; what it lacks inside is mended in the next pass.
fn stand_in(schema: &Value) -> Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return SCHEMA.pointer(name.trim_start_matches('#')).map(stand_in).unwrap_or_default();
    }
    if let Some(otherwise) = schema.get("else") {
        return stand_in(otherwise);
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|options| options.get(0)) {
        return first.clone();
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

/// Fields that are allowed in every rule and every loop, but mean something only in some of them.
fn drop_idle_fields(definition: &mut Value, report: &mut Report) {
    if let Some(steps) = definition.get_mut("steps") {
        drop_idle_in_steps(steps, "/steps", report);
    }
}

fn drop_idle_in_steps(steps: &mut Value, pointer: &str, report: &mut Report) {
    for (index, step) in steps.as_array_mut().into_iter().flatten().enumerate() {
        let pointer = format!("{pointer}/{index}");
        if let Some(Value::Object(object)) = step.get_mut("loop") {
            let keep: &[&str] = match object.get("type").and_then(Value::as_str) {
                Some("for") => &["count"],
                Some("forEach") => &["items", "itemVar", "indexVar"],
                _ => &["condition"],
            };
            let all = ["condition", "count", "items", "itemVar", "indexVar"];
            drop_idle(object, &all, keep, &join(&pointer, "loop"), Code::NoEffectOnLoop, report);
        }
        if let Some(body) = step.get_mut("body") {
            drop_idle_in_steps(body, &join(&pointer, "body"), report);
        }
        if let Some(criteria) = step.get_mut("validationCriteria") {
            drop_idle_in_checks(criteria, &join(&pointer, "validationCriteria"), report);
        }
    }
}

fn drop_idle_in_checks(check: &mut Value, pointer: &str, report: &mut Report) {
    match check {
        Value::Array(members) => {
            for (index, member) in members.iter_mut().enumerate() {
                drop_idle_in_checks(member, &format!("{pointer}/{index}"), report);
            }
        }
        Value::Object(object) if object.contains_key("type") => {
            let keep: &[&str] = match object.get("type").and_then(Value::as_str) {
                Some("contains") => &["value"],
                Some("regex") => &["pattern", "flags"],
                Some("length") => &["min", "max"],
                _ => &["schema"],
            };
            let all = ["value", "pattern", "flags", "min", "max", "schema"];
            drop_idle(object, &all, keep, pointer, Code::NoEffectOnRule, report);
        }
        Value::Object(object) => {
            for (name, member) in object.iter_mut() {
                drop_idle_in_checks(member, &join(pointer, name), report);
            }
        }
        _ => {}
    }
}

fn drop_idle(
    object: &mut Map<String, Value>,
    all: &[&str],
    keep: &[&str],
    pointer: &str,
    code: Code,
    report: &mut Report,
) {
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = if code == Code::NoEffectOnRule { "rule" } else { "loop" };
    for field in all.iter().filter(|field| !keep.contains(field)) {
        if object.remove(*field).is_some() {
            let message = format!("`{field}` has no effect on a `{kind}` {what}");
            report.add(
                code,
                &join(pointer, field),
                At::Key,
                message,
                Some(format!("remove `{field}`")),
            );
        }
    }
}

fn owner_name(shape: &str) -> &'static str {
    match shape {
        "Workflow" => "the workflow",
        "LoopStep" => "the loop step",
        "Loop" => "the loop",
        "Step" => "the step",
        _ => "this",
    }
}

/// A value's own name, or "item 3" in a list.
fn name_of(pointer: &str) -> String {
    match segments(pointer).last() {
        None => "the definition".to_owned(),
        Some(last) => match last.parse::<usize>() {
            Ok(index) => format!("item {}", index + 1),
            Err(_) => format!("`{last}`"),
        },
    }
}

fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn type_name(name: &str) -> &'static str {
    match name {
        "string" => "a text",
        "array" => "a list",
        "object" => "an object",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        _ => "null",
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 40 => format!("the text {value}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn type_hint(types: &[&str], found: &Value) -> Option<String> {
    let wants = |name| types.contains(&name);
    match found {
        Value::String(text) if wants("boolean") => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" => Some("write `true`, without quotes".to_owned()),
            "false" | "no" | "off" => Some("write `false`, without quotes".to_owned()),
            _ => None,
        },
        Value::String(text) if wants("integer") || wants("number") => {
            text.parse::<f64>().ok().map(|_| format!("write {text} without quotes"))
        }
        Value::Number(number) if wants("string") => Some(format!("put it in quotes: \"{number}\"")),
        Value::Bool(flag) if wants("string") => Some(format!("put it in quotes: \"{flag}\"")),
        Value::Null => Some("give it a value, or remove the field".to_owned()),
        Value::String(_) | Value::Object(_) if wants("array") => {
            Some("put it in square brackets, or write a list".to_owned())
        }
        _ => None,
    }
}

impl Report {
    /// Whether something at or above this place was reported already.
    pub(crate) fn covers(&self, pointer: &str) -> bool {
        self.pointers().any(|reported| is_within(pointer, reported))
    }
}
