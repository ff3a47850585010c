//! Schemas of tools, compiled on first use, once, and kept within a bound of bytes: the least recently used goes first.
//! Keyed by content, so that a list which comes again costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use budget::schema::{Options, PATTERNS_MAX, Schema, pattern_texts};
use jsonschema::error::ValidationErrorKind;
use parking_lot::Mutex;

use super::dialect;
use crate::tool::Json;

/// What all compiled schemas together may take.
const CACHE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a compiled schema takes, as a multiple of its text. Measured between 20 and 60, and it is kept beside its value.
const SCHEMA_BYTES_FACTOR: usize = 64;
/// Larger schemas are not looked at.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

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
    #[error("checking it would be too much work")]
    TooMuchWork,
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at `{pointer}`") }
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
    /// A schema that was compiled before.
    pub(super) fn known(&self, json: &Json) -> Option<Arc<Made>> {
        let made = self.cache.lock().used(json.text())?;
        made.get().is_some().then_some(made)
    }

    /// Compiling happens outside the lock; who wants the same schema waits for it, and it is made once.
    pub(super) fn schema(&self, json: &Json) -> Arc<Made> {
        if json.text().len() > SCHEMA_BYTES_MAX {
            return Arc::new(OnceLock::from(Err(Unchecked::TooLarge)));
        }
        let made = self.cache.lock().slot(json.text());
        let mut bytes = None;
        made.get_or_init(|| {
            let schema = compile(json);
            let pattern_bytes = schema.as_ref().map_or(0, Schema::pattern_bytes);
            bytes = Some(SCHEMA_BYTES_FACTOR * json.text().len() + pattern_bytes);
            schema
        });
        if let Some(bytes) = bytes {
            self.cache.lock().charge(json.text(), bytes);
        }
        made
    }
}

impl Cache {
    fn used(&mut self, text: &str) -> Option<Arc<Made>> {
        self.clock += 1;
        let slot = self.slots.get_mut(text)?;
        slot.used = self.clock;
        Some(Arc::clone(&slot.made))
    }

    fn slot(&mut self, text: &str) -> Arc<Made> {
        if let Some(made) = self.used(text) {
            return made;
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

fn compile(json: &Json) -> Result<Schema, Unchecked> {
    // The text was JSON when it came, so that only its depth can be wrong with it.
    let value = json.value().map_err(|_| Unchecked::TooDeep)?;
    if pattern_texts(&value).len() > PATTERNS_MAX {
        return Err(Unchecked::TooManyPatterns);
    }
    // What a format means differs from server to server; they check it themselves.
    let options = Options { draft: dialect::of(&value), ignores_formats: true };
    Schema::build(&value, options).map_err(|error| match error.kind() {
        ValidationErrorKind::Referencing(problem) => refers(problem),
        _ => Unchecked::Malformed {
            pointer: error.instance_path().to_string(),
            message: super::problem::cut(&error),
        },
    })
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
