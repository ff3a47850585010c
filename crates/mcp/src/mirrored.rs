//! Arguments that a tool wants to see in headers too, so that whoever stands between can go by them without reading the
//! body: `x-mcp-header` in an input schema. A server holds a call's headers against its arguments; a client sends them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::http::{Headers, PARAM, decoded, encoded, mismatch};
use crate::jsonrpc::Error;

/// How deep in a schema's properties such an argument may stand.
const DEPTH_MAX: usize = 16;

/// An argument, by where it stands, and its header's name in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirrored {
    header: String,
    path: Vec<String>,
}

impl Mirrored {
    /// All of an input schema, in the order of its properties.
    pub(crate) fn all(schema: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        collect(schema, &mut Vec::new(), &mut found);
        found
    }

    /// Whether header and argument agree: both are there and say the same, or neither is.
    pub(crate) fn check(
        &self,
        arguments: &Map<String, Value>,
        headers: &impl Headers,
    ) -> Result<(), Error> {
        let name = &self.header;
        let header = headers.get(name);
        match (self.value(arguments), header) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(mismatch(format!("the header {name} is missing"))),
            (value, Some(header)) => {
                let Some(header) = decoded(header) else {
                    return Err(mismatch(format!("the header {name} cannot be read")));
                };
                if value.is_some_and(|value| says(&header, value)) {
                    return Ok(());
                }
                let path = self.path.join(".");
                let details =
                    format!("the header {name} says `{header}`, and the argument {path} does not");
                Err(mismatch(details))
            }
        }
    }

    /// The header that a client sends, if there is something to say.
    pub(crate) fn header(&self, arguments: &Map<String, Value>) -> Option<(String, String)> {
        let text = match self.value(arguments)? {
            Value::String(text) => encoded(text).into_owned(),
            plain @ (Value::Bool(_) | Value::Number(_)) => plain.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((self.header.clone(), text))
    }

    /// Null is like absent.
    fn value<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.path.split_first()?;
        let mut value = arguments.get(first)?;
        for name in rest {
            value = value.get(name)?;
        }
        (!value.is_null()).then_some(value)
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    if path.len() == DEPTH_MAX {
        return;
    }
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(header) = property.get(ANNOTATION).and_then(Value::as_str) {
            let header = format!("{PARAM}{}", header.to_ascii_lowercase());
            found.push(Mirrored { header, path: path.clone() });
        }
        collect(property, path, found);
        path.pop();
    }
}

const ANNOTATION: &str = "x-mcp-header";

/// Why a client must not offer a tool with this input schema, if there is a reason: an annotation that is not the name of a
/// header, that stands where no argument is, or that another one has too.
pub fn misplaced_header(schema: &Value) -> Option<String> {
    misplaced(schema, Place::Root, &mut HashSet::new())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// A property that is reached from the root by properties alone.
    Property,
    Elsewhere,
}

fn misplaced(schema: &Value, place: Place, seen: &mut HashSet<String>) -> Option<String> {
    let schema = match schema {
        Value::Object(schema) => schema,
        Value::Array(schemas) => {
            return schemas.iter().find_map(|schema| misplaced(schema, Place::Elsewhere, seen));
        }
        _ => return None,
    };
    schema.iter().find_map(|(key, value)| match key.as_str() {
        ANNOTATION if place == Place::Property => wrong_annotation(value, schema.get("type"), seen),
        ANNOTATION => Some(format!("`{ANNOTATION}` stands where no argument is")),
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            let is_chain = key == "properties" && place != Place::Elsewhere;
            let place = if is_chain { Place::Property } else { Place::Elsewhere };
            let mut schemas = value.as_object().into_iter().flat_map(Map::values);
            schemas.find_map(|schema| misplaced(schema, place, seen))
        }
        // Values, and not schemas.
        "default" | "const" | "enum" | "examples" => None,
        _ => misplaced(value, Place::Elsewhere, seen),
    })
}

fn wrong_annotation(
    header: &Value,
    kind: Option<&Value>,
    seen: &mut HashSet<String>,
) -> Option<String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = header.as_str().filter(|name| !name.is_empty() && name.bytes().all(is_token));
    let Some(name) = name else {
        return Some(format!("{header} cannot be the name of a header"));
    };
    let is_primitive =
        matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    if !is_primitive {
        return Some(format!("`{name}` is not a string, an integer or a boolean"));
    }
    (!seen.insert(name.to_ascii_lowercase())).then(|| format!("`{name}` stands twice"))
}

/// Whether a header says what an argument is. Numbers are compared as such: `42.0` is 42.
fn says(header: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => header == text,
        Value::Bool(flag) => header == if *flag { "true" } else { "false" },
        Value::Number(number) => {
            let exact = header.parse::<i64>().ok().zip(number.as_i64());
            match exact {
                Some((header, number)) => header == number,
                None => header.parse::<f64>().ok() == number.as_f64(),
            }
        }
        // Such a schema makes no sense, and no header can say it.
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_belong_on_arguments() {
        let header = |name: &str| json!({"type": "string", "x-mcp-header": name});
        let deep =
            json!({"properties": {"a": {"properties": {"b": header("B")}}, "c": header("C")}});
        assert_eq!(misplaced_header(&deep), None);
        assert_eq!(misplaced_header(&json!({"default": {"x-mcp-header": 5}})), None);
        for schema in [
            json!({"x-mcp-header": "A"}),
            json!({"properties": {"a": header("not a token")}}),
            json!({"properties": {"a": header("")}}),
            json!({"properties": {"a": {"type": "array", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "array", "items": header("A")}}}),
            json!({"properties": {"a": header("Same"), "b": header("same")}}),
            json!({"$defs": {"a": header("A")}}),
        ] {
            assert!(misplaced_header(&schema).is_some(), "{schema}");
        }
    }
}
