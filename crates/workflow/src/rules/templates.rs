//! Slots in texts: what stands in them can be filled, and something sets it. An agent learns about a
//! variable from the texts that it reads, so a variable counts as set when a loop in scope binds
//! it, a condition or a loop reads it, or some text mentions its name outside of a slot.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::Report;
use crate::definition::{Confirmation, Count, LoopKind, PlainStep, Step, Workflow};
use crate::finding::{Code, Severity};
use crate::nearest::nearest;
use crate::pointer::Pointer;
use crate::template::{Piece, pieces, slot};

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let mut slots = Vec::new();
    let list = Pointer::Root.key("steps");
    for (top, step) in workflow.steps.iter().enumerate() {
        collect(step, top, &list.index(top), &mut Vec::new(), &mut slots);
    }
    if slots.is_empty() {
        return;
    }
    let variables: BTreeSet<&str> = known_variables(workflow).collect();
    let runners = LazyCell::new(|| Runners::new(workflow));
    // Most variables are bound or read somewhere: the words of all texts are seldom needed.
    let words = LazyCell::new(|| words(workflow));
    for found in slots {
        let Some(slot) = slot(found.inner) else {
            let message = format!("`{}` cannot be filled", found.whole);
            let hint =
                Some("write a variable, a dotted path, or a variable plus a number".to_owned());
            report.add_part(Code::BadTemplate, &found.pointer, found.whole, message, hint);
            continue;
        };
        let head = slot.name.split('.').next().unwrap_or(slot.name);
        let is_set = |name: &str| {
            let is_known = variables.contains(name) || words.contains(name);
            is_known || found.bound.contains(&name) || runners.bound(found.top).any(|it| it == name)
        };
        // In a mended definition, what sets the variable may have been mended away.
        if report.was_written(head) {
            continue;
        }
        if report.is_full(Severity::Warning) {
            report.cut(Severity::Warning);
            continue;
        }
        if is_set(head) || is_set(slot.name) {
            continue;
        }
        let message = format!("nothing sets the variable `{head}`");
        let names = found.bound.iter().chain(&variables).copied().chain(runners.bound(found.top));
        let hint = match nearest(head, names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("tell the agent in an earlier prompt to set `{head}` in the context"),
        };
        report.add_part(Code::UnsetVariable, &found.pointer, found.whole, message, Some(hint));
    }
}

struct Found<'w> {
    inner: &'w str,
    /// The slot with its braces.
    whole: &'w str,
    pointer: String,
    /// The step at the top level in which it stands.
    top: usize,
    /// The variables that the loops bind in which it is written.
    bound: Vec<&'w str>,
}

/// A step that is a loop's body by name sees what that loop binds, what the loops around it bind, and
/// so on, wherever that loop is itself run by name.
struct Runners<'w> {
    /// For each step at the top level: who runs it by name, and what is bound on the way there.
    of: Vec<Vec<(usize, Vec<&'w str>)>>,
}

impl<'w> Runners<'w> {
    fn new(workflow: &'w Workflow) -> Self {
        let indexed = workflow.steps.iter().enumerate();
        let tops: HashMap<&str, usize> = indexed.map(|(top, step)| (step.id(), top)).collect();
        let mut runners = Self { of: vec![Vec::new(); workflow.steps.len()] };
        for (top, step) in workflow.steps.iter().enumerate() {
            runners.add(step, top, &tops, &mut Vec::new());
        }
        runners
    }

    fn add(
        &mut self,
        step: &'w Step,
        top: usize,
        tops: &HashMap<&str, usize>,
        bound: &mut Vec<&'w str>,
    ) {
        let Step::Loop(outer) = step else {
            return;
        };
        let depth = bound.len();
        bound.extend(outer.r#loop.variables());
        if let Some(&body) = step.named_body().and_then(|name| tops.get(name)) {
            self.of[body].push((top, bound.clone()));
        }
        for inner in step.inline_body() {
            self.add(inner, top, tops, bound);
        }
        bound.truncate(depth);
    }

    /// The variables that are bound where this step at the top level runs.
    fn bound(&self, top: usize) -> impl Iterator<Item = &'w str> {
        let mut seen = HashSet::from([top]);
        let mut open = vec![top];
        let ways = std::iter::from_fn(move || {
            let ways = &self.of[open.pop()?];
            open.extend(ways.iter().map(|(top, _)| *top).filter(|top| seen.insert(*top)));
            Some(ways)
        });
        ways.flatten().flat_map(|(_, bound)| bound.iter().copied())
    }
}

fn collect<'w>(
    step: &'w Step,
    top: usize,
    pointer: &Pointer<'_>,
    bound: &mut Vec<&'w str>,
    slots: &mut Vec<Found<'w>>,
) {
    match step {
        Step::Plain(plain) => in_step(plain, top, pointer, bound, slots),
        Step::Loop(outer) => {
            let depth = bound.len();
            bound.extend(outer.r#loop.variables());
            let list = pointer.key("body");
            for (index, inner) in step.inline_body().iter().enumerate() {
                collect(inner, top, &list.index(index), bound, slots);
            }
            bound.truncate(depth);
        }
    }
}

fn in_step<'w>(
    step: &'w PlainStep,
    top: usize,
    pointer: &Pointer<'_>,
    bound: &[&'w str],
    slots: &mut Vec<Found<'w>>,
) {
    let list = pointer.key("guidance");
    let single = [("prompt", Some(&step.prompt)), ("agentRole", step.agent_role.as_ref())];
    let single = single.iter().filter_map(|(name, text)| Some((pointer.key(name), (*text)?)));
    let guidance = step.guidance.iter().enumerate().map(|(index, text)| (list.index(index), text));
    for (at, text) in single.chain(guidance) {
        if !text.contains("{{") {
            continue;
        }
        let mut seen = HashSet::new();
        for piece in pieces(text) {
            if let Piece::Slot { inner, whole } = piece
                && seen.insert(inner)
            {
                let (pointer, bound) = (at.to_string(), bound.to_vec());
                slots.push(Found { inner, whole, pointer, top, bound });
            }
        }
    }
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
fn add_words<'w>(text: &'w str, known: &mut HashSet<&'w str>) {
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
