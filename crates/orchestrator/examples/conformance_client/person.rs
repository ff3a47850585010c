//! Who answers what servers ask: what they suggest themselves, and something of the right kind where they suggest nothing.

use std::future::Future;
use std::pin::Pin;

use orchestrator::{Answer, Asker, Form, Wanted};
use serde_json::{Map, Value, json};

pub(crate) struct Person;

impl Asker for Person {
    fn ask(&self, form: Form) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        let values = match form.wanted {
            Wanted::Confirmation { .. } | Wanted::Visit { .. } => Map::new(),
            Wanted::Values { schema } => filled(&schema),
        };
        Box::pin(std::future::ready(Answer::Accepted(values)))
    }
}

/// Every property that has a default, with it, and those that must be there.
fn filled(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let filled = properties.into_iter().filter_map(|(name, property)| {
        let default = property.get("default").cloned();
        let is_required = required.iter().any(|required| *required == name.as_str());
        let value = default.or_else(|| is_required.then(|| sample(&property)))?;
        Some((name, value))
    });
    filled.collect()
}

/// Arguments that a tool takes.
pub(crate) fn arguments(schema: &Value) -> Map<String, Value> {
    filled(schema)
}

fn sample(property: &Value) -> Value {
    if let Some(first) = property["enum"].get(0) {
        return first.clone();
    }
    let kind = match &property["type"] {
        Value::Array(kinds) => kinds.first().cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("number" | "integer") => json!(3),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("test"),
    }
}
