//! Fields that are allowed in every loop and every rule by the schema, but mean something only in some
//! kinds of them. They are taken out with a warning: typed reading does not know them there.

use serde_json::{Map, Value};

use super::wording::with_article;
use crate::finding::Code;
use crate::pointer::join;
use crate::rules::Report;
use crate::tree::At;

pub(super) fn drop_fields(definition: &mut Value, report: &mut Report) {
    if let Some(steps) = definition.get_mut("steps") {
        in_steps(steps, "/steps", report);
    }
}

fn in_steps(steps: &mut Value, pointer: &str, report: &mut Report) {
    for (index, step) in steps.as_array_mut().into_iter().flatten().enumerate() {
        let pointer = format!("{pointer}/{index}");
        if let Some(Value::Object(object)) = step.get_mut("loop") {
            let keep: &[&str] = match object.get("type").and_then(Value::as_str) {
                Some("for") => &["count"],
                Some("forEach") => &["items", "itemVar", "indexVar"],
                _ => &["condition"],
            };
            let all = ["condition", "count", "items", "itemVar", "indexVar"];
            drop_from(object, &all, keep, &join(&pointer, "loop"), Code::NoEffectOnLoop, report);
        }
        if let Some(body) = step.get_mut("body") {
            in_steps(body, &join(&pointer, "body"), report);
        }
        if let Some(criteria) = step.get_mut("validationCriteria") {
            in_checks(criteria, &join(&pointer, "validationCriteria"), report);
        }
    }
}

fn in_checks(check: &mut Value, pointer: &str, report: &mut Report) {
    match check {
        Value::Array(members) => {
            for (index, member) in members.iter_mut().enumerate() {
                in_checks(member, &format!("{pointer}/{index}"), report);
            }
        }
        Value::Object(object) if object.contains_key("type") => {
            let keep: &[&str] = match object.get("type").and_then(Value::as_str) {
                Some("contains") => &["value"],
                Some("regex") => &["pattern", "flags"],
                Some("length") => &["min", "max"],
                _ => &["schema"],
            };
            let all = ["value", "pattern", "flags", "min", "max", "schema"];
            drop_from(object, &all, keep, pointer, Code::NoEffectOnRule, report);
        }
        Value::Object(object) => {
            for (name, member) in object.iter_mut() {
                in_checks(member, &join(pointer, name), report);
            }
        }
        _ => {}
    }
}

fn drop_from(
    object: &mut Map<String, Value>,
    all: &[&str],
    keep: &[&str],
    pointer: &str,
    code: Code,
    report: &mut Report,
) {
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = if code == Code::NoEffectOnRule { "rule" } else { "loop" };
    for field in all.iter().filter(|field| !keep.contains(field)) {
        if object.remove(*field).is_some() {
            let kind = with_article(&kind);
            let message = format!("`{field}` has no effect on {kind} {what}");
            report.add(
                code,
                &join(pointer, field),
                At::Key,
                message,
                Some(format!("remove `{field}`")),
            );
        }
    }
}
