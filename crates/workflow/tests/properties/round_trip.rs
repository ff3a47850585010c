//! A definition that is written and read again is the same, in JSON and in YAML.

use proptest::prelude::*;
use serde_json::Value;
use workflow::{Format, Scrutiny, Workflow, read};

use crate::config;
use crate::generate::definition;

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn definitions_survive_writing_and_reading(definition in definition()) {
        let workflow = good(&definition.to_string(), Format::Json)?;
        let written = serde_json::to_string_pretty(&workflow).unwrap();
        prop_assert_eq!(&good(&written, Format::Json)?, &workflow, "{}", written);
        // JSON is YAML in flow style.
        prop_assert_eq!(&good(&written, Format::Yaml)?, &workflow, "{}", written);
        let mut block = String::new();
        emit(&definition, 0, &mut block);
        prop_assert_eq!(&good(&block, Format::Yaml)?, &workflow, "{}", block);
    }

    /// Loading compiles nothing, and finds nothing that compiling does not find.
    #[test]
    fn scrutiny_only_adds(definition in definition()) {
        let text = definition.to_string();
        let loaded = read(text.as_bytes(), Format::Json, Scrutiny::Syntax);
        let compiled = read(text.as_bytes(), Format::Json, Scrutiny::Compile);
        prop_assert_eq!(loaded.findings, compiled.findings);
    }
}

fn good(text: &str, format: Format) -> Result<Workflow, TestCaseError> {
    let reading = read(text.as_bytes(), format, Scrutiny::Syntax);
    let errors: Vec<_> = reading.findings.iter().filter(|finding| finding.is_error()).collect();
    prop_assert!(errors.is_empty(), "{:#?}\n{}", errors, text);
    Ok(reading.workflow.unwrap())
}

/// YAML in block style. Texts are written in three ways, each where it can say what is meant.
fn emit(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, inner) in fields {
                out.push_str(&format!("\n{pad}{}:", scalar(name)));
                emit(inner, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("\n{pad}-"));
                emit(item, indent + 2, out);
            }
        }
        Value::String(text) if is_block(text) => {
            out.push_str(" |-");
            for line in text.lines() {
                let line = if line.is_empty() { String::new() } else { format!("{pad}{line}") };
                out.push_str(&format!("\n{line}"));
            }
        }
        Value::String(text) => out.push_str(&format!(" {}", scalar(text))),
        other => out.push_str(&format!(" {other}")),
    }
}

/// Plain where nothing in it can be misread, else in double quotes, whose escapes are those of JSON.
fn scalar(text: &str) -> String {
    let is_plain = text.len() > 2
        && text.chars().all(|c| c.is_ascii_alphabetic() || c == ' ')
        && text.trim() == text
        && !["true", "false", "null", "yes"].contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

fn is_block(text: &str) -> bool {
    let is_printable = |c: char| c == '\n' || (' '..='~').contains(&c);
    text.contains('\n')
        && text.chars().all(is_printable)
        && text.trim() == text
        && !text.lines().any(|line| line.ends_with(' '))
}
