//! JSON Schemas of strangers. Nothing is fetched, patterns in them spend from the call's budget, and because the
//! library's evaluation cannot be interrupted, its cost is estimated first. Loading checks a schema against its
//! meta-schema only.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, Keyword, PatternOptions, ReferencingError, Validator};
use serde_json::Value;

use crate::pattern::{self, COMPILED_BYTES_MAX, Matcher};
use crate::{Budget, Exhausted};

mod cost;
mod expense;
mod references;
mod unique;

pub use expense::{Expense, expense};
pub use references::percent_decode;

/// How many steps back a pattern of `patternProperties` with look-around may take on one name.
const BACKTRACK_MAX: usize = 1_000;
/// The library collects all errors before it hands out the first. A value whose errors cost more than this to collect is
/// explained by one error, or by none where alternatives would collect theirs for it.
const EXPLAINED_STEPS_MAX: u64 = 1_000_000;

/// How many different patterns one schema may have.
pub const PATTERNS_MAX: usize = 64;
/// What all compiled patterns of one schema may take together. One that is too large by itself counts for the most that
/// it may come to: compiling takes longest where it fails.
pub const PATTERNS_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    value: Value,
    patterns: Patterns,
    /// A failed alternative keeps the errors of all its branches.
    has_alternatives: bool,
}

/// How a schema is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The dialect of a schema that names none.
    pub draft: Option<Draft>,
    /// Formats are not checked, where the library would.
    pub ignores_formats: bool,
}

/// What an evaluation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation {
    pub is_valid: bool,
    /// What it cost, in steps.
    pub steps: u64,
}

type Patterns = Arc<HashMap<String, Result<Arc<Matcher>, pattern::Error>>>;

impl Schema {
    /// Compiles a schema. References to files or hosts do not resolve.
    pub fn compile(value: &Value, options: Options) -> Result<Self, Malformed> {
        Self::build(value, options).map_err(|error| match error.kind() {
            ValidationErrorKind::Referencing(problem) => unresolved(value, problem),
            _ => explain(&error),
        })
    }

    /// The same, with the library's own error.
    pub fn build(value: &Value, options: Options) -> Result<Self, ValidationError<'static>> {
        let value = value.clone();
        let patterns = Arc::new(compile_patterns(&value));
        let own = Arc::clone(&patterns);
        let engine = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACK_MAX)
            .size_limit(COMPILED_BYTES_MAX);
        let mut builder = jsonschema::options()
            .offline()
            .with_pattern_options(engine)
            .with_keyword("pattern", move |_, pattern, _| pattern_keyword(&own, pattern))
            .with_keyword("uniqueItems", |_, wanted, _| Ok(unique::keyword(wanted)));
        if let Some(draft) = options.draft {
            builder = builder.with_draft(draft);
        }
        if options.ignores_formats {
            builder = builder.should_validate_formats(false);
        }
        let validator = builder.build(&value)?;
        let has_alternatives = has_key(&value, "anyOf") || has_key(&value, "oneOf");
        Ok(Self { validator, value, patterns, has_alternatives })
    }

    /// Its patterns, compiled.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, &Matcher)> {
        self.patterns
            .iter()
            .filter_map(|(text, compiled)| Some((text.as_str(), &**compiled.as_ref().ok()?)))
    }

    /// The memory that its patterns keep.
    pub fn pattern_bytes(&self) -> usize {
        self.patterns().map(|(_, matcher)| matcher.bytes()).sum()
    }

    /// Whether a value is valid. The cost is estimated and spent first.
    pub fn evaluate(&self, value: &Value, budget: &Budget) -> Result<Evaluation, Exhausted> {
        let steps = cost::estimate(self, value, budget)?;
        budget.spend(steps)?;
        Ok(Evaluation { is_valid: self.validator.is_valid(value), steps })
    }

    /// The errors of an invalid value: all, the first, or none, by the cost of collecting
    /// them. That is estimated and spent first. The value was evaluated, and `evaluation` is what that came to.
    pub fn errors<'v>(
        &'v self,
        value: &'v Value,
        evaluation: Evaluation,
        budget: &Budget,
    ) -> Result<Vec<ValidationError<'v>>, Exhausted> {
        let limit = EXPLAINED_STEPS_MAX.min(budget.remaining());
        let survey = Budget::with_steps(limit);
        let steps = cost::estimate_errors(self, value, &survey);
        budget.spend(survey.steps().min(limit))?;
        match steps {
            Ok(steps) => {
                budget.spend(steps)?;
                return Ok(self.validator.iter_errors(value).collect());
            }
            // With more left there might be an explanation.
            Err(_) if limit < EXPLAINED_STEPS_MAX => return Err(budget.exhaust()),
            Err(_) => {}
        }
        if self.has_alternatives {
            return Ok(Vec::new());
        }
        budget.spend(evaluation.steps)?;
        Ok(self.validator.validate(value).err().into_iter().collect())
    }
}

/// Compiles the patterns of a schema, within their limits.
fn compile_patterns(value: &Value) -> HashMap<String, Result<Arc<Matcher>, pattern::Error>> {
    let texts = pattern_texts(value);
    let is_many = texts.len() > PATTERNS_MAX;
    let mut bytes = 0;
    let compiled = texts.into_iter().map(|text| {
        let compiled = if is_many {
            Err(pattern::Error::TooMany)
        } else if bytes > PATTERNS_BYTES_MAX {
            Err(pattern::Error::TooLargeTogether)
        } else {
            pattern::compile(text, "").map(Arc::new)
        };
        bytes += match &compiled {
            Ok(matcher) => matcher.bytes(),
            Err(pattern::Error::TooLarge) => COMPILED_BYTES_MAX,
            Err(_) => 0,
        };
        (text.to_owned(), compiled)
    });
    compiled.collect()
}

/// The patterns of a schema, each once. Data that only looks like a schema is searched too.
pub fn pattern_texts(value: &Value) -> HashSet<&str> {
    let mut texts = HashSet::new();
    collect_texts(value, &mut texts);
    texts
}

fn collect_texts<'v>(value: &'v Value, texts: &mut HashSet<&'v str>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                match (key.as_str(), inner) {
                    ("pattern", Value::String(text)) => drop(texts.insert(text)),
                    ("patternProperties", Value::Object(inner)) => {
                        texts.extend(inner.keys().map(String::as_str));
                    }
                    _ => {}
                }
                collect_texts(inner, texts);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

fn has_key(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(key, inner)| key == wanted || has_key(inner, wanted))
        }
        Value::Array(items) => items.iter().any(|item| has_key(item, wanted)),
        _ => false,
    }
}

/// `pattern`, on our own engine. What it costs on a text was spent when the cost was estimated.
struct PatternKeyword {
    pattern: String,
    matcher: Arc<Matcher>,
}

fn pattern_keyword<'a>(
    patterns: &Patterns,
    value: &'a Value,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let Value::String(text) = value else {
        return Err(ValidationError::schema("a pattern is a text"));
    };
    match patterns.get(text) {
        Some(Ok(matcher)) => {
            let (pattern, matcher) = (text.clone(), Arc::clone(matcher));
            Ok(Box::new(PatternKeyword { pattern, matcher }))
        }
        Some(Err(error)) => {
            Err(ValidationError::schema(format!("the pattern `{text}` cannot be used: {error}")))
        }
        // One of a meta-schema's.
        None => match pattern::compile(text, "") {
            Ok(matcher) => {
                let (pattern, matcher) = (text.clone(), Arc::new(matcher));
                Ok(Box::new(PatternKeyword { pattern, matcher }))
            }
            Err(error) => Err(ValidationError::schema(error.to_string())),
        },
    }
}

impl<'i> Keyword<'i> for PatternKeyword {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        let text = instance.to_string();
        let shown = if text.len() <= QUOTED_BYTES_MAX { &text } else { "this" };
        Err(ValidationError::custom(format!(r#"{shown} does not match "{}""#, self.pattern)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let Value::String(text) = instance else { return true };
        self.matcher.is_match(text, &Budget::with_steps(u64::MAX)).unwrap_or(false)
    }
}

/// A value that is longer is pointed at, not quoted.
const QUOTED_BYTES_MAX: usize = 200;

/// What is wrong with a schema, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Malformed {
    /// A JSON pointer into the schema.
    pub pointer: String,
    pub message: String,
}

/// Checks a schema against its meta-schema, without compiling it.
pub fn check(schema: &Value) -> Result<(), Malformed> {
    // Not `meta::is_valid`: that one panics on a `$schema` which it does not know.
    jsonschema::meta::validate(schema).map_err(|error| match error.kind() {
        ValidationErrorKind::Referencing(_) => Malformed {
            pointer: "/$schema".to_owned(),
            message: "the dialect that `$schema` names is not known".to_owned(),
        },
        _ => explain(&error),
    })
}

fn explain(error: &ValidationError<'_>) -> Malformed {
    let place = match error.instance_path().as_str() {
        "" => error.schema_path(),
        _ => error.instance_path(),
    };
    let pointer = place.to_string();
    let found = error.instance();
    let message = match error.kind() {
        // The only choice in the meta-schema: one type, or a list of them.
        ValidationErrorKind::AnyOf { .. } if pointer.ends_with("/type") => format!(
            "{found} is no type; there are `string`, `number`, `integer`, `boolean`, `array`, \
             `object` and `null`"
        ),
        ValidationErrorKind::Format { .. } => {
            let pattern = pointer.rsplit_once('/').map_or("", |(_, last)| last);
            let pattern = found.as_str().unwrap_or(pattern);
            format!("the pattern `{pattern}` in it is malformed or too large")
        }
        _ => error.to_string(),
    };
    Malformed { pointer, message }
}

/// The library names what it did not find, but not who asked for it.
fn unresolved(schema: &Value, problem: &ReferencingError) -> Malformed {
    let (target, message) = match problem {
        ReferencingError::Unretrievable { uri, .. } => {
            (uri.as_str(), format!("`{uri}` is outside of the schema, and nothing is fetched"))
        }
        ReferencingError::PointerToNowhere { pointer: target }
        | ReferencingError::NoSuchAnchor { anchor: target } => {
            (target.as_str(), format!("`#{target}` leads nowhere"))
        }
        other => ("", other.to_string()),
    };
    let pointer = reference(schema, target, "").unwrap_or_default();
    Malformed { pointer, message }
}

/// Where the schema refers to the target.
fn reference(schema: &Value, target: &str, pointer: &str) -> Option<String> {
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let inner = join(pointer, key);
            let is_it = key == "$ref" && value.as_str().is_some_and(|to| to.ends_with(target));
            if is_it { Some(inner) } else { reference(value, target, &inner) }
        }),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| reference(item, target, &format!("{pointer}/{at}")))
        }
        _ => None,
    }
}

/// A JSON pointer with one more segment.
pub fn join(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compiled(schema: &Value) -> Result<Schema, Malformed> {
        Schema::compile(schema, Options::default())
    }

    #[test]
    fn malformed_schemas_are_named() {
        assert_eq!(check(&json!({"type": "object"})), Ok(()));
        let error = check(&json!({"properties": {"a": {"type": "text"}}})).unwrap_err();
        assert_eq!(error.pointer, "/properties/a/type");
        let unknown = check(&json!({"$schema": "https://example.com/unknown"})).unwrap_err();
        assert_eq!(unknown.message, "the dialect that `$schema` names is not known");
    }

    #[test]
    fn what_leads_nowhere_is_found() {
        let schema = json!({"properties": {"a": {"prefixItems": [{}, {"$ref": "#/$defs/b"}]}}});
        let error = Schema::compile(&schema, Options::default()).unwrap_err();
        assert_eq!(error.pointer, "/properties/a/prefixItems/1/$ref");
        assert_eq!(error.message, "`#/$defs/b` leads nowhere");
    }

    #[test]
    fn nothing_is_fetched() {
        for elsewhere in ["https://example.com/other.json", "file:///etc/hostname"] {
            assert!(compiled(&json!({"$ref": elsewhere})).is_err(), "{elsewhere}");
        }
    }

    #[test]
    fn a_catastrophic_pattern_is_harmless() {
        let text = Value::String(format!("{}!", "a".repeat(10_000)));
        for pattern in ["^(a+)+$", "^(?=(a+)+$)a"] {
            let schema = compiled(&json!({"pattern": pattern})).unwrap();
            let evaluation = schema.evaluate(&text, &Budget::for_call());
            assert!(!evaluation.is_ok_and(|evaluation| evaluation.is_valid), "{pattern}");
        }
    }
}
