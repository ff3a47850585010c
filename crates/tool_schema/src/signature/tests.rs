use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::arguments::tests::anything;
use crate::arguments::{Checker, Verdict};
use crate::tool::Tools;

fn tools() -> Vec<Tool> {
    let mut tools = Tools::default();
    let list = include_str!("../../cases/schemas.json").trim_end().to_owned();
    tools.add_page(&serde_json::value::RawValue::from_string(list).unwrap());
    tools.tools
}

#[test]
fn every_tool_has_a_signature_and_sample_words() {
    let mut text = String::new();
    for tool in tools() {
        let words = sample_words(&tool.input_schema).join("\n  ");
        let _ = writeln!(text, "{}\n  {words}\n", signature(&tool));
    }
    insta::assert_snapshot!(text);
}

/// Sample words, read back by the schema, are what the schema wants.
#[test]
fn sample_words_fit() {
    let checker = Checker::default();
    for tool in tools() {
        let words = sample_words(&tool.input_schema);
        let arguments = crate::typed::arguments(&tool.input_schema, &words)
            .unwrap_or_else(|errors| panic!("{}: {words:?} {errors:?}", tool.name));
        let verdict = checker.arguments(&tool, &Value::Object(arguments));
        let is_good = match tool.name.as_str() {
            // Its schema cannot be checked with, or wants what no sample can know.
            "broken" | "circles" => matches!(verdict, Verdict::Unchecked(_)),
            "anything" => matches!(verdict, Verdict::Wrong(_)),
            _ => verdict == Verdict::Fits,
        };
        assert!(is_good, "{}: {words:?} {verdict:?}", tool.name);
    }
}

fn with(schema: &Value) -> Tool {
    let mut tool = tools().remove(0);
    tool.input_schema = Json::from(schema);
    tool.output_schema = None;
    tool
}

#[test]
fn signatures_are_bounded() {
    let wide: Value =
        (0..5_000).map(|at| (format!("property{at}"), json!({"type": "string"}))).collect();
    let names: Vec<String> = (0..5_000).map(|at| format!("choice number {at}")).collect();
    let mut deep = json!({"type": "string"});
    for _ in 0..50 {
        deep = json!({"type": "object", "properties": {"a": deep, "b": deep["properties"]["a"].clone()}});
        if deep.to_string().len() > 100_000 {
            break;
        }
    }
    let mut doubling = serde_json::Map::new();
    for at in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        doubling.insert(format!("d{at}"), json!({"properties": {"a": next, "b": next}}));
    }
    for schema in [
        json!({"type": "object", "properties": wide}),
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": wide}}}),
        json!({"type": "object", "properties": {"a": {"enum": names}, "b": {"enum": ["x".repeat(50_000)]}}}),
        json!({"type": "object", "properties": {"x".repeat(50_000): {}}}),
        deep,
        json!({"$defs": doubling, "type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "required": ["a"]}),
    ] {
        let tool = with(&schema);
        let signature = signature(&tool);
        assert!(signature.len() <= SIGNATURE_BYTES_MAX + 3, "{}", signature.len());
        assert!(signature.contains('…'), "{signature}");
        let words = sample_words(&tool.input_schema).join(" ");
        assert!(words.len() < 10_000, "{}", words.len());
    }
}

proptest! {
    /// Whatever a server calls a schema, everything that is made of it is made.
    #[test]
    fn no_schema_panics(schema in anything(), words in prop::collection::vec("[ab.]{1,4}:?=[ab1,\\[{]{0,4}", 0..3)) {
        let tool = Tool { output_schema: Some(Json::from(&schema)), ..with(&schema) };
        prop_assert!(signature(&tool).len() <= SIGNATURE_BYTES_MAX + 3);
        let types = crate::types::declaration("server", "s", std::slice::from_ref(&tool), 0..1);
        prop_assert_eq!(types.text.matches('{').count(), types.text.matches('}').count());
        let _ = crate::typed::arguments(&tool.input_schema, &words);
        let sample = sample_words(&tool.input_schema);
        let _ = crate::typed::arguments(&tool.input_schema, &sample);
    }
}
