//! The shape of a definition: its JSON Schema, generated from the types, and every violation of it at
//! once. Typed reading stops at its first error, so a file that it refuses comes here: all
//! structural problems are reported, and mended with stand-ins, so that the rules can still look at
//! the rest of the file.

use std::sync::LazyLock;

use budget::{Budget, Exhausted};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::definition::Workflow;
use crate::finding::Severity;
use crate::rules::{FINDINGS_MAX, Report};
use crate::serial::Whole;

mod idle;
mod problem;
mod violations;
mod wording;

use problem::Problem;
pub(crate) use wording::name_of;

/// Mending one problem may uncover another (an object that lacks fields of its own). The nesting of
/// our shapes bounds how often.
const PASSES_MAX: usize = 16;
/// How many problems are looked at in one pass: more than are reported, because some hide others.
const PROBLEMS_MAX: usize = 2 * FINDINGS_MAX;
/// The steps that it takes to report one problem and to mend it, and those for each byte of the way to it,
/// which is followed several times.
const PROBLEM_STEPS: u64 = 200;
const POINTER_STEPS_PER_BYTE: u64 = 4;

static SCHEMA: LazyLock<Value> = LazyLock::new(generate);

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

/// A schema that asks for a field where `type` is one of these.
pub(crate) fn needs(types: &[&str], field: &str) -> Value {
    let is_kind = json!({"required": ["type"], "properties": {"type": {"enum": types}}});
    json!({"if": is_kind, "then": {"required": [field]}})
}

impl JsonSchema for Whole {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Whole".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "integer", "minimum": 0, "maximum": u32::MAX})
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
        if let Some(Value::Array(options)) = object.get_mut("enum") {
            options.retain(|option| !option.is_null());
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

/// Reports the structural problems of `definition` and mends them. Nothing is found beyond what the
/// budget pays for and the report keeps.
pub(crate) fn mend(
    definition: &mut Value,
    report: &mut Report,
    budget: &Budget,
) -> Result<(), Exhausted> {
    for _ in 0..PASSES_MAX {
        let mut problems = violations::find(definition, PROBLEMS_MAX, budget)?;
        if problems.is_empty() {
            break;
        }
        // A misspelt field is given its right name first, and then is not missing any more.
        problems.sort_by_key(|problem| !problem.is_unknown_field());
        // What is merged in decides what else is missing, or too much.
        if problems.iter().any(Problem::merges) {
            problems.retain(Problem::merges);
        }
        for problem in problems {
            let way = problem.pointer_bytes() as u64;
            budget.spend(PROBLEM_STEPS + POINTER_STEPS_PER_BYTE * way)?;
            if !problem.is_gone(definition) {
                problem.report(definition, report);
                problem.mend(definition, report);
            }
        }
        if report.is_full(Severity::Error) {
            // Nobody reads on, so nothing needs to be mended for the rules.
            report.leave_out_error();
            return Ok(());
        }
    }
    idle::drop_fields(definition, report);
    Ok(())
}
