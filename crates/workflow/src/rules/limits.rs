//! Limits of single values: ids, lengths, versions, ranges, uniqueness. The schema says the same.

use std::collections::HashSet;

use super::{Report, each_step};
use crate::definition::{Body, Count, LoopKind, LoopStep, Step, Workflow};
use crate::finding::Code;
use crate::limits::*;
use crate::pointer::Pointer;
use crate::shape::name_of;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let root = Pointer::Root;
    id(&workflow.id, &root.key("id"), report);
    text(&workflow.name, NAME_MAX, &root.key("name"), report);
    text(&workflow.description, DESCRIPTION_MAX, &root.key("description"), report);
    version(&workflow.version, &root.key("version"), report);
    if let Some(category) = &workflow.category {
        text(category, usize::MAX, &root.key("category"), report);
    }
    if let Some(wanted) = &workflow.min_server_version {
        version(wanted, &root.key("minServerVersion"), report);
    }
    for (name, list) in [
        ("preconditions", &workflow.preconditions),
        ("clarificationPrompts", &workflow.clarification_prompts),
        ("metaGuidance", &workflow.meta_guidance),
    ] {
        unique_texts(list, &root.key(name), report);
    }
    if workflow.steps.is_empty() {
        let hint = "add a step with `id`, `title` and `prompt`".to_owned();
        report.add(
            Code::Empty,
            &"/steps",
            At::Value,
            "the workflow has no step".to_owned(),
            Some(hint),
        );
    }
    each_step(workflow, &mut |step, pointer| check_step(step, pointer, report));
}

fn check_step(step: &Step, pointer: &Pointer<'_>, report: &mut Report) {
    id(step.id(), &pointer.key("id"), report);
    text(step.title(), TITLE_MAX, &pointer.key("title"), report);
    match step {
        Step::Plain(step) => {
            text(&step.prompt, PROMPT_MAX, &pointer.key("prompt"), report);
            for (name, value) in [("agentRole", &step.agent_role), ("modelHint", &step.model_hint)]
            {
                if let Some(value) = value {
                    text(value, usize::MAX, &pointer.key(name), report);
                }
            }
            let list = pointer.key("guidance");
            for (index, entry) in step.guidance.iter().enumerate() {
                text(entry, usize::MAX, &list.index(index), report);
            }
        }
        Step::Loop(step) => check_loop(step, pointer, report),
    }
}

fn check_loop(step: &LoopStep, pointer: &Pointer<'_>, report: &mut Report) {
    let settings = pointer.key("loop");
    let bound = step.r#loop.max_iterations;
    range("maxIterations", bound, ITERATIONS_MIN, &settings, report);
    variable("iterationVar", step.r#loop.iteration_var.as_deref(), &settings, report);
    match &step.r#loop.kind {
        LoopKind::For { count: Count::Number(count) } => {
            range("count", *count, 0, &settings, report)
        }
        LoopKind::For { count: Count::Variable(name) } => {
            text(name, usize::MAX, &settings.key("count"), report);
        }
        LoopKind::ForEach { items, item_var, index_var } => {
            text(items, usize::MAX, &settings.key("items"), report);
            variable("itemVar", item_var.as_deref(), &settings, report);
            variable("indexVar", index_var.as_deref(), &settings, report);
        }
        LoopKind::While { .. } | LoopKind::Until { .. } => {}
    }
    if matches!(&step.body, Body::Steps(steps) if steps.is_empty()) {
        let message = format!("the body of loop `{}` has no step", step.id);
        let hint = "add a step, or name one".to_owned();
        report.add(Code::Empty, &pointer.key("body"), At::Value, message, Some(hint));
    }
}

fn id(id: &str, pointer: &Pointer<'_>, report: &mut Report) {
    if is_id(id) {
        return;
    }
    let what = match id {
        "" => "an empty text".to_owned(),
        id => format!("`{id}`"),
    };
    let message = format!(
        "{what} cannot be an id: ids have {ID_MIN} to {ID_MAX} lower-case letters, digits, `-` and `_`, \
         and at most one dot inside"
    );
    let hint = suggestion(id).map(|better| format!("`{better}` would do"));
    report.add(Code::BadId, pointer, At::Value, message, hint);
}

/// The id with what is not allowed replaced: `My Step` becomes `my-step`. Letters that would be lost
/// are not replaced: their owner knows better how to spell them.
fn suggestion(id: &str) -> Option<String> {
    let mut better = String::new();
    for letter in id.to_lowercase().chars().take(ID_MAX) {
        match letter {
            'a'..='z' | '0'..='9' | '_' => better.push(letter),
            letter if !letter.is_ascii() => return None,
            _ if !better.ends_with('-') => better.push('-'),
            _ => {}
        }
    }
    let better = better.trim_matches('-').to_owned();
    is_id(&better).then_some(better)
}

pub(super) fn text(text: &str, max: usize, pointer: &Pointer<'_>, report: &mut Report) {
    if text.is_empty() {
        let hint = Some("write something, or remove the field where it is optional".to_owned());
        let message = format!("{} is empty", name_of(&pointer.to_string()));
        report.add(Code::TextLength, pointer, At::Value, message, hint);
        return;
    }
    // Bytes are never fewer than characters, so most texts need no counting.
    if text.len() <= max {
        return;
    }
    let length = text.chars().count();
    if length > max {
        let name = name_of(&pointer.to_string());
        let message = format!("{name} has {length} characters, but at most {max} are allowed");
        let hint = Some(format!("shorten it by {}", length - max));
        report.add(Code::TextLength, pointer, At::Value, message, hint);
    }
}

fn version(version: &str, pointer: &Pointer<'_>, report: &mut Report) {
    if semver::Version::parse(version).is_ok() {
        return;
    }
    let parts = version.trim_start_matches('v').split('.');
    // Parsed, because a leading zero is one of the mistakes.
    let numbers: Vec<u64> = parts.filter_map(|part| part.parse().ok()).collect();
    let hint = match numbers.as_slice() {
        [major] => Some(format!("write `{major}.0.0`")),
        [major, minor] => Some(format!("write `{major}.{minor}.0`")),
        [major, minor, patch] => Some(format!("write `{major}.{minor}.{patch}`")),
        _ => Some("write three numbers, such as `1.0.0`".to_owned()),
    };
    let message = format!("`{version}` is not a semantic version");
    report.add(Code::BadVersion, pointer, At::Value, message, hint);
}

fn unique_texts(list: &[Box<str>], pointer: &Pointer<'_>, report: &mut Report) {
    let mut seen = HashSet::new();
    for (index, entry) in list.iter().enumerate() {
        let at = pointer.index(index);
        text(entry, usize::MAX, &at, report);
        if !entry.is_empty() && !seen.insert(entry) {
            let hint = Some("remove one of them".to_owned());
            let message = "the same text stands earlier in this list".to_owned();
            report.add(Code::Repeated, &at, At::Value, message, hint);
        }
    }
}

fn range(field: &str, number: u32, min: u32, settings: &Pointer<'_>, report: &mut Report) {
    if !(min..=ITERATIONS_MAX).contains(&number) {
        let message =
            format!("`{field}` is {number}, but must be between {min} and {ITERATIONS_MAX}");
        report.add(Code::OutOfRange, &settings.key(field), At::Value, message, None);
    }
}

fn variable(field: &str, name: Option<&str>, settings: &Pointer<'_>, report: &mut Report) {
    if let Some(name) = name
        && !is_variable_name(name)
    {
        let message = format!("`{name}` cannot be the name of a variable");
        let hint = Some("use letters, digits and `_`, and begin with a letter".to_owned());
        report.add(Code::BadId, &settings.key(field), At::Value, message, hint);
    }
}
