//! Declared variables: what a context variable holds, and which step reports it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::schema_words::{alternatives, in_words};
use crate::criteria::{Embedded, SchemaObject};
use crate::limits::VARIABLE_PATTERN;
use crate::serial::{Distinct, Fields, present};
use crate::variables::compare;

/// Names that no declared variable can have: the session uses them itself.
pub const RESERVED_NAMES: [&str; 4] = ["steps", "children", "wr", "_loops"];

/// The variables of a workflow by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct Declarations(BTreeMap<Box<str>, Declaration>);

/// What a context variable holds: a `type`, or any JSON Schema.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("anyOf" = [{"required": ["type"]}, {"required": ["schema"]}]))]
pub struct Declaration {
    /// What the variable says. The agent reads it where it has to report the variable.
    #[serde(default, deserialize_with = "present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub description: Option<Box<str>>,
    /// The type of its value.
    #[serde(default, deserialize_with = "present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<ValueType>,
    /// The values that it can have, for a `string`, `number` or `integer`.
    #[serde(default, deserialize_with = "Distinct::present_list")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub values: Option<Vec<Value>>,
    /// The type of each item, for a `list`.
    #[serde(default, deserialize_with = "present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ValueType>,
    /// The JSON Schema of its value (2020-12 if it names no other), instead of a `type`.
    #[serde(default, deserialize_with = "Embedded::present_object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SchemaObject>")]
    pub schema: Option<Embedded>,
}

/// The type of a variable's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ValueType {
    Boolean,
    String,
    Number,
    Integer,
    List,
    Object,
}

/// An entry of `reports`: `size`, or `size?` if the step may leave it out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct ReportedVariable {
    pub name: Box<str>,
    pub is_optional: bool,
}

impl Declarations {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Declaration> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Declaration)> {
        self.0.iter().map(|(name, declaration)| (&**name, declaration))
    }
}

impl Declaration {
    /// Whether a value has the declared type and is one of the declared values. A `schema` is
    /// the engine's to evaluate.
    pub fn accepts(&self, value: &Value) -> bool {
        if let Some(values) = &self.values {
            return values.iter().any(|allowed| is_same(allowed, value));
        }
        match (self.r#type, self.items, value) {
            (Some(ValueType::List), Some(of), Value::Array(items)) => {
                items.iter().all(|item| of.accepts(item))
            }
            (Some(of), _, value) => of.accepts(value),
            (None, _, _) => true,
        }
    }

    /// The expected value in words: `"small"`, `"medium"` or `"large"`.
    pub fn expected(&self) -> String {
        if let Some(values) = &self.values {
            return alternatives(values).unwrap_or_default();
        }
        match (self.r#type, self.items) {
            (Some(ValueType::List), Some(items)) => format!("a list of {}", items.plural()),
            (Some(of), _) => of.name().to_owned(),
            (None, _) => match &self.schema {
                Some(schema) => in_words(&schema.value())
                    .unwrap_or_else(|| format!("a value valid under {}", schema.text())),
                None => "any value".to_owned(),
            },
        }
    }
}

/// Whether two scalars are the same: 1 is 1.0.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            compare(left, right).is_some_and(|order| order.is_eq())
        }
        _ => left == right,
    }
}

impl ValueType {
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Boolean => value.is_boolean(),
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    pub fn has_values(self) -> bool {
        matches!(self, Self::String | Self::Number | Self::Integer)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "true or false",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Integer => "a whole number",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Boolean => "booleans",
            Self::String => "strings",
            Self::Number => "numbers",
            Self::Integer => "whole numbers",
            Self::List => "lists",
            Self::Object => "objects",
        }
    }
}

impl From<String> for ReportedVariable {
    fn from(written: String) -> Self {
        match written.strip_suffix('?') {
            Some(name) => Self { name: name.into(), is_optional: true },
            None => Self { name: written.into(), is_optional: false },
        }
    }
}

impl fmt::Display for ReportedVariable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)?;
        out.write_str(if self.is_optional { "?" } else { "" })
    }
}

impl Serialize for ReportedVariable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for ReportedVariable {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReportedVariable".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = VARIABLE_PATTERN.replace('$', r"\??$");
        schemars::json_schema!({"type": "string", "pattern": pattern})
    }
}

impl JsonSchema for Declarations {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Declarations".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let declaration = generator.subschema_for::<Declaration>();
        schemars::json_schema!({
            "type": "object",
            "propertyNames": {"pattern": VARIABLE_PATTERN},
            "additionalProperties": declaration,
        })
    }
}

/// Refuses a name that stands twice, of which a map would lose one.
impl<'de> Deserialize<'de> for Declarations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Declarations;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object of declarations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Declarations, A::Error> {
                let mut declarations = BTreeMap::new();
                while let Some((name, Fields(declaration))) = fields.next_entry()? {
                    if declarations.insert(name, declaration).is_some() {
                        return Err(de::Error::custom("a variable is declared twice"));
                    }
                }
                Ok(Declarations(declarations))
            }
        }

        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declaration(written: Value) -> Declaration {
        serde_json::from_value(written).unwrap()
    }

    #[test]
    fn declaration_accepts_its_type_and_values() {
        let size = declaration(json!({"type": "string", "values": ["small", "large"]}));
        assert!(size.accepts(&json!("large")) && !size.accepts(&json!("Large")));
        let count = declaration(json!({"type": "integer"}));
        assert!(count.accepts(&json!(2.0)) && !count.accepts(&json!(2.5)));
        let level = declaration(json!({"type": "number", "values": [1, 2]}));
        assert!(level.accepts(&json!(1.0)) && !level.accepts(&json!(3)));
        let files = declaration(json!({"type": "list", "items": "string"}));
        assert!(files.accepts(&json!(["a"])) && !files.accepts(&json!(["a", 1])));
        assert_eq!(size.expected(), r#""small" or "large""#);
        assert_eq!(files.expected(), "a list of strings");
    }

    #[test]
    fn reported_variable_is_written_as_it_was_read() {
        let reports: Vec<ReportedVariable> = serde_json::from_value(json!(["a", "b?"])).unwrap();
        assert_eq!((reports[0].is_optional, reports[1].is_optional), (false, true));
        assert_eq!(json!(reports), json!(["a", "b?"]));
    }
}
