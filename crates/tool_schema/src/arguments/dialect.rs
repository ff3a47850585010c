//! Which dialect a schema is compiled as. One that names none is of 2020-12, whose schema of schemas takes the library two
//! milliseconds to make, once in a process. Most schemas of tools mean the same in draft 7, whose is made in half of one.

use jsonschema::Draft;
use serde_json::Value;

/// The dialect of a schema, where it is ours to say: where it names one, that counts.
pub(super) fn of(schema: &Value) -> Option<Draft> {
    (schema.get("$schema").is_none() && means_the_same(schema)).then_some(Draft::Draft7)
}

/// Whether there is nothing in it but what draft 7 has too, and understands alike. What is not known here counts as different,
/// and so do references, beside which draft 7 looks at nothing, and patterns, of which it takes fewer.
fn means_the_same(schema: &Value) -> bool {
    let fields = match schema {
        Value::Bool(_) => return true,
        Value::Object(fields) => fields,
        _ => return false,
    };
    fields.iter().all(|(key, value)| match key.as_str() {
        "title" | "description" | "default" | "examples" | "readOnly" | "writeOnly" | "format" => {
            true
        }
        "type" | "enum" | "const" | "required" => true,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => true,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "uniqueItems" => true,
        "minProperties" | "maxProperties" => true,
        "properties" => value.as_object().is_some_and(|inner| inner.values().all(means_the_same)),
        "allOf" | "anyOf" | "oneOf" => {
            value.as_array().is_some_and(|inner| inner.iter().all(means_the_same))
        }
        "items" | "contains" | "additionalProperties" | "propertyNames" => means_the_same(value),
        "not" | "if" | "then" | "else" => means_the_same(value),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_of_a_tool_is_cheap() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where", "minLength": 1},
                "days": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "$ref": {"enum": ["a name like any other"]},
            },
            "required": ["city"],
            "additionalProperties": false,
        });
        assert_eq!(of(&schema), Some(Draft::Draft7));
    }

    #[test]
    fn what_draft_7_does_not_know_or_takes_otherwise_stays_what_it_is() {
        for schema in [
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}),
            json!({"properties": {"a": {"$ref": "#/$defs/a", "type": "string"}}}),
            json!({"properties": {"a": {"pattern": "(?i)^[a-z]+$"}}}),
            json!({"items": [{"type": "string"}]}),
            json!({"prefixItems": [{"type": "string"}]}),
            json!({"anyOf": [{"unevaluatedProperties": false}]}),
            json!({"contains": {"type": "string"}, "minContains": 2}),
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"$defs": {}}),
        ] {
            assert_eq!(of(&schema), None, "{schema}");
        }
    }
}
