//! Arguments that a tool wants to see in headers too, so that whoever stands between can go by them without reading the
//! body: `x-mcp-header` in an input schema. Here a call's headers are held against its arguments.

use serde_json::{Map, Value};

use crate::http::{Headers, PARAM, decoded, mismatch};
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
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let header = format!("{PARAM}{}", header.to_ascii_lowercase());
            found.push(Mirrored { header, path: path.clone() });
        }
        collect(property, path, found);
        path.pop();
    }
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
