//! Generated workflows: ten steps each, with conditions, templates and every kind of rule.

use std::path::Path;

use serde_json::{Map, Value, json};

pub fn id(number: usize) -> String {
    format!("generated-{number:05}")
}

/// Writes `count` files and says how many bytes they have.
pub fn write(folder: &Path, count: usize) -> usize {
    std::fs::create_dir_all(folder).expect("the folder");
    let mut bytes = 0;
    for number in 0..count {
        let text = serde_json::to_string_pretty(&definition(number)).expect("JSON");
        bytes += text.len();
        std::fs::write(folder.join(format!("{}.json", id(number))), text).expect("a file");
    }
    bytes
}

pub fn context() -> Map<String, Value> {
    let context = json!({"size": "large", "risk": 3, "component": "parser"});
    context.as_object().expect("an object").clone()
}

fn definition(number: usize) -> Value {
    let steps: Vec<Value> = (0..10).map(|step| self::step(number, step)).collect();
    json!({
        "id": id(number),
        "name": format!("Generated workflow {number}"),
        "description": "A workflow that stands for the many that a team collects over the years.",
        "version": "1.0.0",
        "category": "generated",
        "preconditions": ["The repository builds", format!("Ticket {number} is assigned")],
        "metaGuidance": ["Say what you did and how you know that it is right"],
        "steps": steps,
    })
}

fn step(number: usize, step: usize) -> Value {
    let mut value = json!({
        "id": format!("step-{step}"),
        "title": format!("Step {step} of workflow {number}"),
        "prompt": format!(
            "Work on part {step} of {{{{component}}}}. Look at the code first, then change it in small \
             steps, run the tests after each, and write down what you changed and why. \
             Put the part of the product into the context as `component`, and its risk as `risk`."
        ),
        "guidance": ["Prefer the smallest change that works", "Leave the tests green"],
        "validationCriteria": rules(number, step),
    });
    if step % 3 == 1 {
        value["runCondition"] = json!({"or": [
            {"var": "size", "equals": "large"},
            {"var": "risk", "gte": 2, "lt": 9},
        ]});
    }
    if step % 4 == 3 {
        value["requireConfirmation"] = json!({"var": "risk", "gt": 5});
    }
    value
}

fn rules(number: usize, step: usize) -> Value {
    let length =
        json!({"type": "length", "min": 20, "max": 20_000, "message": "Report in a few sentences"});
    let regex = json!({
        "type": "regex", "pattern": format!(r"\b(RESULT|OUTCOME)-\d+\b|step {number}-{step}"), "flags": "i",
        "message": "Name the result",
    });
    let contains = json!({
        "type": "contains", "value": "tests", "message": "Say which tests were run",
        "condition": {"var": "size", "equals": "large"},
    });
    let schema = json!({
        "type": "schema", "message": "Report as JSON",
        "schema": {
            "type": "object",
            "properties": {
                "summary": {"type": "string", "minLength": 10},
                "files": {"type": "array", "items": {"type": "string", "pattern": "^src/"}},
            },
            "required": ["summary"],
        },
    });
    match step % 5 {
        0 => json!([length, regex, contains, schema]),
        1 => json!({"or": [schema, {"and": [length, regex]}]}),
        3 => {
            json!([{"not": {"type": "regex", "pattern": "TODO|FIXME", "message": "Leave nothing undone"}}, contains])
        }
        _ => json!([length, regex, contains]),
    }
}
