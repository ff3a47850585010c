//! Tools that are there for what their input schemas say.

use mcp::content::About;
use serde_json::{Value, json};

use super::{Entry, about, said};

pub(super) const TOOLS: &[Entry] = &[
    Entry {
        name: "json_schema_2020_12_tool",
        about: || About {
            input_schema: many_keywords(),
            ..about("Schema", "Has a schema with all kinds of keywords")
        },
        run: |_, request| said(format!("You gave {}.", request.arguments)),
    },
    Entry {
        name: "test_headers",
        about: || About {
            input_schema: json!({
                "type": "object",
                "properties": {
                    "region": {"type": "string", "x-mcp-header": "Region"},
                    "priority": {"type": "integer", "x-mcp-header": "Priority"},
                    "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
                    "query": {"type": "string"},
                },
                "required": ["region"],
            }),
            ..about("Headers", "Wants some of its arguments in headers too")
        },
        run: |_, request| match request.text("region") {
            Ok(region) => said(format!("In {region}.")),
            Err(outcome) => outcome.into(),
        },
    },
];

fn many_keywords() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
