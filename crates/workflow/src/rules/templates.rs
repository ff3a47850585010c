//! Slots in texts: what stands in them can be filled, and something sets it. Where variables are declared, a
//! slot names one of them. Otherwise an agent learns about a variable from the texts that it reads, so a
//! variable counts as set when a loop in scope binds it, a condition or a loop reads it, or some text mentions
//! its name outside of a slot.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::Report;
use super::scope::{self, Scope};
use crate::definition::{Confirmation, Count, LoopKind, Step, Workflow};
use crate::finding::{Code, Severity};
use crate::nearest::nearest;
use crate::pointer::Pointer;
use crate::template::{Piece, output_reference, pieces, reference_candidates, slot};

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let known = Known {
        workflow,
        variables: LazyCell::new(|| known_variables(workflow).collect()),
        // Most variables are bound or read somewhere: the words of all texts are seldom needed.
        words: LazyCell::new(|| words(workflow)),
    };
    scope::each_step(workflow, &mut |step, pointer, scope| {
        each_text(step, pointer, &mut |text, at| {
            let mut seen = HashSet::new();
            for piece in pieces(text) {
                if let Piece::Slot { inner, whole } = piece
                    && seen.insert(inner)
                {
                    check_slot(inner, whole, at, scope, &known, report);
                }
            }
        });
    });
}

/// Calls `visit` with every text of a step that has slots.
pub(super) fn each_text<'w>(
    step: &'w Step,
    pointer: &Pointer<'_>,
    visit: &mut dyn FnMut(&'w str, &Pointer<'_>),
) {
    let mut visit = |text: &'w str, at: &Pointer<'_>| {
        if text.contains("{{") {
            visit(text, at);
        }
    };
    visit(step.title(), &pointer.key("title"));
    let Step::Plain(step) = step else { return };
    visit(&step.prompt, &pointer.key("prompt"));
    if let Some(role) = &step.agent_role {
        visit(role, &pointer.key("agentRole"));
    }
    let list = pointer.key("guidance");
    for (index, text) in step.guidance.iter().enumerate() {
        visit(text, &list.index(index));
    }
}

struct Known<'w, V, W> {
    workflow: &'w Workflow,
    variables: LazyCell<BTreeSet<&'w str>, V>,
    words: LazyCell<HashSet<&'w str>, W>,
}

fn check_slot<'w>(
    inner: &str,
    whole: &str,
    at: &Pointer<'_>,
    scope: &Scope<'w, '_>,
    known: &Known<'w, impl FnOnce() -> BTreeSet<&'w str>, impl FnOnce() -> HashSet<&'w str>>,
    report: &mut Report,
) {
    let pointer = at.to_string();
    let Some(slot) = slot(inner) else {
        let message = format!("`{whole}` cannot be filled");
        let hint = Some("write a variable, a dotted path, or a variable plus a number".to_owned());
        return report.add_part(Code::BadTemplate, &pointer, whole, message, hint);
    };
    if check_reference(slot.name, whole, &pointer, known.workflow, report) {
        return;
    }
    let head = slot.name.split('.').next().unwrap_or(slot.name);
    if scope.binds(head) {
        return;
    }
    let is_set = |name: &str| known.variables.contains(name) || known.words.contains(name);
    if head == "steps"
        && !report.is_full(Severity::Warning)
        && (!known.workflow.variables.is_empty() || !known.variables.contains(head))
    {
        let message = format!("`{whole}` does not refer to an output");
        let hint = Some(reference_hint(slot.name, known.workflow));
        return report.add_part(Code::BadTemplate, &pointer, whole, message, hint);
    }
    let declared = &known.workflow.variables;
    if !declared.is_empty() {
        if declared.get(head).is_none() {
            let (message, hint) = super::variables::undeclared(known.workflow, head, scope);
            report.add_part(Code::UndeclaredVariable, &pointer, whole, message, Some(hint));
        }
        return;
    }
    // In a mended definition, what sets the variable may have been mended away.
    if report.was_written(head) {
        return;
    }
    if report.is_full(Severity::Warning) {
        return report.cut(Severity::Warning);
    }
    if is_set(head) || is_set(slot.name) {
        return;
    }
    let message = format!("nothing sets the variable `{head}`");
    let names = scope.names().chain(known.variables.iter().copied());
    let hint = match nearest(head, names) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("tell the agent in an earlier prompt to set `{head}` in the context"),
    };
    report.add_part(Code::UnsetVariable, &pointer, whole, message, Some(hint));
}

/// Whether a slot is written as a reference to an output. Reports one to a step that does not exist.
fn check_reference(
    name: &str,
    whole: &str,
    pointer: &str,
    workflow: &Workflow,
    report: &mut Report,
) -> bool {
    let Some(meant) = reference_candidates(name).last() else { return false };
    if output_reference(workflow, name).is_some() || report.was_written(meant.step) {
        return true;
    }
    if report.is_full(Severity::Error) {
        report.leave_out_error();
        return true;
    }
    let step = meant.step;
    let (message, hint) = match workflow.step(step) {
        Some(_) => {
            let message = format!("the loop `{step}` has no output itself");
            (message, "refer to a step of its body".to_owned())
        }
        None => {
            let hint = match nearest_step(step, workflow) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a step of this workflow".to_owned(),
            };
            (format!("there is no step `{step}`"), hint)
        }
    };
    report.add_part(Code::UnknownOutput, pointer, whole, message, Some(hint));
    true
}

/// What the author of a malformed reference most likely means.
fn reference_hint(name: &str, workflow: &Workflow) -> String {
    let step = name.split('.').nth(1).and_then(|step| nearest_step(step, workflow));
    match step {
        Some(step) => format!("did you mean `{{{{steps.{step}.output}}}}`?"),
        None => "write `{{steps.ID.output}}`, with the id of an earlier step".to_owned(),
    }
}

fn nearest_step<'w>(id: &str, workflow: &'w Workflow) -> Option<&'w str> {
    let mut ids = Vec::new();
    workflow.each_step(&mut |step| {
        if let Step::Plain(step) = step {
            ids.push(&*step.id);
        }
    });
    nearest(id, ids)
}

/// Every word of every text, outside of slots, and what a loop binds for a body that is not there:
/// that is reported already.
fn words(workflow: &Workflow) -> HashSet<&str> {
    let mut known: HashSet<&str> = HashSet::new();
    let lists = [&workflow.preconditions, &workflow.clarification_prompts, &workflow.meta_guidance];
    for text in lists.into_iter().flatten() {
        add_words(text, &mut known);
    }
    add_words(&workflow.description, &mut known);
    let top: HashSet<&str> = workflow.steps.iter().map(Step::id).collect();
    workflow.each_step(&mut |step| {
        if let Step::Loop(inner) = step
            && step.named_body().is_some_and(|name| !top.contains(name))
        {
            known.extend(inner.r#loop.variables());
        }
        if let Step::Plain(step) = step {
            let texts = step.guidance.iter().chain(step.agent_role.as_ref()).chain([&step.prompt]);
            for text in texts {
                add_words(text, &mut known);
            }
        }
    });
    known
}

/// Every word that stands in a definition outside of slots, before any of it is mended, and the names that
/// loops bind by themselves: whatever sets a variable, its name is among these.
pub(crate) fn written_words(definition: &Value) -> HashSet<String> {
    fn collect(value: &Value, words: &mut HashSet<String>) {
        match value {
            Value::String(text) => {
                for piece in pieces(text) {
                    if let Piece::Text(text) = piece {
                        let found = text.split(|c| !is_inner(c)).filter(|word| !word.is_empty());
                        words.extend(found.map(str::to_owned));
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
            Value::Object(fields) => fields.values().for_each(|field| collect(field, words)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut words: HashSet<String> =
        ["currentIteration", "currentItem", "currentIndex"].map(str::to_owned).into();
    collect(definition, &mut words);
    words
}

/// What a name may consist of.
fn is_inner(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$')
}

/// Adds the words that name a variable: those in quotes or backticks, those that are given a value, those
/// that are no plain words at all, and every word of a text that speaks of the context. That a prompt
/// mentions "the module" sets no `module`.
pub(crate) fn add_words<'w>(text: &'w str, known: &mut HashSet<&'w str>) {
    let tells = text.contains("context") || text.contains("variable");
    for piece in pieces(text) {
        let Piece::Text(text) = piece else {
            continue;
        };
        let mut rest = text;
        while let Some(start) = rest.find(is_inner) {
            let quote = rest[..start].chars().next_back();
            rest = &rest[start..];
            let end = rest.find(|c| !is_inner(c)).unwrap_or(rest.len());
            let word = &rest[..end];
            rest = &rest[end..];
            let is_quoted = matches!(quote, Some('`' | '"' | '\''))
                && rest.starts_with(['`', '"', '\'', '.', '[']);
            let is_given = rest.trim_start().starts_with('=');
            // `Module` at the beginning of a sentence is as plain as `module`.
            let is_plain = word.chars().skip(1).all(char::is_lowercase);
            if tells || is_quoted || is_given || !is_plain {
                known.insert(word);
            }
        }
    }
}

fn known_variables(workflow: &Workflow) -> impl Iterator<Item = &str> {
    let mut names: Vec<&str> = Vec::new();
    workflow.each_step(&mut |step| {
        let confirmation = match step.require_confirmation() {
            Some(Confirmation::Where(condition)) => Some(condition),
            _ => None,
        };
        let own = match step {
            Step::Loop(step) => match &step.r#loop.kind {
                LoopKind::While { condition } | LoopKind::Until { condition } => Some(condition),
                LoopKind::For { count: Count::Variable(name) } => {
                    names.push(name);
                    None
                }
                LoopKind::ForEach { items, .. } => {
                    names.push(items);
                    None
                }
                LoopKind::For { .. } => None,
            },
            Step::Plain(_) => None,
        };
        for condition in [step.run_condition(), confirmation, own].into_iter().flatten() {
            condition.each_variable(&mut |name| names.push(name));
        }
        if let Step::Plain(step) = step
            && let Some(criteria) = &step.validation_criteria
        {
            criteria.each_rule(&mut |rule| {
                if let Some(condition) = &rule.condition {
                    condition.each_variable(&mut |name| names.push(name));
                }
            });
        }
    });
    // A condition on `release.kind` makes `release` known.
    names.into_iter().flat_map(|name| [name, name.split('.').next().unwrap_or(name)])
}
