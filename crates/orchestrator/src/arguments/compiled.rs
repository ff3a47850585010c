//! Schemas of tools, compiled on first use, once, and kept within a bound of bytes: the least recently used goes first.
//! Keyed by content, so that a list which comes again costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::dialect;
use crate::lock;
use crate::tool::Json;

/// What all compiled schemas together may take.
const CACHE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a compiled schema takes, as a multiple of its text. Measured between 20 and 60, and it is kept beside its value.
const SCHEMA_BYTES_FACTOR: usize = 64;
/// Larger schemas are not looked at.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// Compiling a pattern takes time, and more of them than this are not compiled.
const PATTERNS_MAX: usize = 64;
/// The largest program that a pattern may come to.
const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// How many steps back a pattern with look-around may take on one text. Others run in linear time.
const BACKTRACK_MAX: usize = 10_000;

/// Why something was not checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unchecked {
    #[error("its schema is larger than {SCHEMA_BYTES_MAX} bytes")]
    TooLarge,
    #[error("its schema is nested too deeply")]
    TooDeep,
    #[error("its schema has more than {PATTERNS_MAX} patterns")]
    TooManyPatterns,
    #[error("its schema is malformed: {message}{}", at(.pointer))]
    Malformed { pointer: String, message: String },
    #[error("its schema names a dialect in `$schema` that is not known")]
    Dialect,
    #[error("its schema refers to `{reference}`, which is not in it, and nothing is fetched")]
    Elsewhere { reference: String },
    #[error("its schema refers to `{reference}` in a way that is not followed")]
    Reference { reference: String },
    #[error("checking it would be too much work")]
    TooMuchWork,
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") }
}

#[derive(Debug)]
pub(super) struct Schema {
    pub(super) validator: Validator,
    pub(super) value: Value,
}

type Made = OnceLock<Result<Schema, Unchecked>>;

#[derive(Debug, Default)]
pub(super) struct Compiled {
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    slots: HashMap<Arc<str>, Slot>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Slot {
    made: Arc<Made>,
    bytes: usize,
    used: u64,
}

impl Compiled {
    /// Compiling happens outside the lock; who wants the same schema waits for it, and it is made once.
    pub(super) fn schema(&self, json: &Json) -> Arc<Made> {
        if json.text().len() > SCHEMA_BYTES_MAX {
            return Arc::new(OnceLock::from(Err(Unchecked::TooLarge)));
        }
        let made = lock(&self.cache).slot(json.text());
        let mut bytes = None;
        made.get_or_init(|| {
            let (schema, patterns) = compile(json);
            bytes = Some(SCHEMA_BYTES_FACTOR * json.text().len() + PATTERN_BYTES_MAX * patterns);
            schema
        });
        if let Some(bytes) = bytes {
            lock(&self.cache).charge(json.text(), bytes);
        }
        made
    }
}

impl Cache {
    fn slot(&mut self, text: &str) -> Arc<Made> {
        self.clock += 1;
        if let Some(slot) = self.slots.get_mut(text) {
            slot.used = self.clock;
            return Arc::clone(&slot.made);
        }
        let made = Arc::new(OnceLock::new());
        let slot = Slot { made: Arc::clone(&made), bytes: 0, used: self.clock };
        self.slots.insert(text.into(), slot);
        made
    }

    fn charge(&mut self, text: &str, bytes: usize) {
        if let Some(slot) = self.slots.get_mut(text) {
            // Evicted while it compiled and asked for again, it is made and charged twice.
            self.bytes = self.bytes - slot.bytes + bytes;
            slot.bytes = bytes;
        }
        while self.bytes > CACHE_BYTES_MAX && self.slots.len() > 1 {
            let oldest = self.slots.iter().min_by_key(|(_, slot)| slot.used);
            let Some(oldest) = oldest.map(|(text, _)| Arc::clone(text)) else { return };
            if let Some(slot) = self.slots.remove(&oldest) {
                self.bytes -= slot.bytes;
            }
        }
    }
}

/// The schema, and how many patterns it has.
fn compile(json: &Json) -> (Result<Schema, Unchecked>, usize) {
    // The text was JSON when it came, so that only its depth can be wrong with it.
    let Ok(value) = json.value() else { return (Err(Unchecked::TooDeep), 0) };
    let mut survey = Survey::default();
    survey.look(&value, 0);
    if survey.patterns > PATTERNS_MAX {
        return (Err(Unchecked::TooManyPatterns), 0);
    }
    // What a reference means below an id of its own is more than the estimate of the work knows.
    if let Some(reference) = survey.reference.filter(|_| survey.has_inner_id) {
        return (Err(Unchecked::Reference { reference }), 0);
    }
    let patterns =
        PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_MAX).size_limit(PATTERN_BYTES_MAX);
    let mut options = jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        // What a format means differs from server to server; they check it themselves.
        .should_validate_formats(false);
    if let Some(draft) = dialect::of(&value) {
        options = options.with_draft(draft);
    }
    let built = options.build(&value).map_err(|error| match error.kind() {
        ValidationErrorKind::Referencing(problem) => refers(problem),
        _ => Unchecked::Malformed {
            pointer: error.instance_path().to_string(),
            message: super::problem::cut(&error),
        },
    });
    (built.map(|validator| Schema { validator, value }), survey.patterns)
}

fn refers(problem: &jsonschema::ReferencingError) -> Unchecked {
    use jsonschema::ReferencingError as Problem;
    match problem {
        Problem::Unretrievable { uri, .. } => Unchecked::Elsewhere { reference: uri.clone() },
        Problem::PointerToNowhere { pointer: to } | Problem::NoSuchAnchor { anchor: to } => {
            Unchecked::Elsewhere { reference: format!("#{to}") }
        }
        Problem::UnknownSpecification { .. } => Unchecked::Dialect,
        other => Unchecked::Malformed { pointer: String::new(), message: other.to_string() },
    }
}

/// What is in a schema. Data that only looks like a schema is counted too.
#[derive(Default)]
struct Survey {
    patterns: usize,
    reference: Option<String>,
    has_inner_id: bool,
}

impl Survey {
    fn look(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match (key.as_str(), value) {
                        ("pattern", Value::String(_)) => self.patterns += 1,
                        ("patternProperties", Value::Object(patterns)) => {
                            self.patterns += patterns.len();
                        }
                        ("$ref", Value::String(to)) => self.reference = Some(to.clone()),
                        ("$id" | "id", Value::String(_)) if depth > 0 => self.has_inner_id = true,
                        _ => {}
                    }
                    self.look(value, depth + 1);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.look(item, depth + 1)),
            _ => {}
        }
    }
}
