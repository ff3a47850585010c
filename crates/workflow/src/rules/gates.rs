//! Gates that may disappear: whether a person is asked must not depend on a variable that no earlier
//! step has to report. If variables are declared, a required report counts at a gate if its step runs
//! whenever the gate is reached.

use std::collections::{HashMap, HashSet};

use budget::Budget;
use serde_json::Value;

use super::Report;
use super::assignment::{Guarantees, head, is_set_behind, without};
use crate::condition::Condition;
use crate::definition::{
    Confirmation, Count, Declaration, LoopKind, LoopStep, Step, ValueType, Workflow, item_name,
};
use crate::finding::Code;
use crate::limits::LOOP_LEVELS_MAX;
use crate::pointer::Pointer;
use crate::tree::At;

/// How many bodies by name are followed: loops that share bodies could multiply without bound.
pub(crate) const NAMED_BODIES_MAX: usize = 1_000;

/// What it may take to find the results of all loops that have a gate.
const RESULT_STEPS_MAX: u64 = 2_000_000;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let mut is_asking = false;
    workflow.each_step(&mut |step| is_asking |= asks(step));
    // In a mended definition, what reports a variable may have been mended away.
    if !is_asking || report.is_mended() {
        return;
    }
    let indexed = workflow.steps.iter().enumerate();
    let tops: HashMap<&str, usize> = indexed.map(|(index, step)| (step.id(), index)).collect();
    let mut named = HashSet::new();
    workflow.each_step(&mut |step| named.extend(step.named_body()));
    let mut walk = Walk {
        workflow,
        report,
        gated: gated(workflow),
        tops,
        known: Guarantees::default(),
        bound: Vec::new(),
        enclosing: Vec::new(),
        budget: Budget::with_steps(RESULT_STEPS_MAX),
        named_left: NAMED_BODIES_MAX,
        told: HashSet::new(),
    };
    let list = Pointer::Root.key("steps");
    for (index, step) in workflow.steps.iter().enumerate() {
        if !named.contains(step.id()) {
            walk.step(step, &list.index(index));
        }
    }
}

/// Whether the step itself has a gate.
fn asks(step: &Step) -> bool {
    match step.require_confirmation() {
        None | Some(Confirmation::Always(false)) => false,
        Some(Confirmation::Always(true)) => true,
        Some(Confirmation::Where(condition)) => condition.can_hold(),
    }
}

/// Whether the step, or one inside it, has a gate, given the top-level steps of which that is known.
fn has_gate(step: &Step, gated: &HashSet<&str>) -> bool {
    asks(step)
        || step.named_body().is_some_and(|name| gated.contains(name))
        || step.inline_body().iter().any(|inner| has_gate(inner, gated))
}

/// The top-level steps that have a gate, or contain one.
fn gated(workflow: &Workflow) -> HashSet<&str> {
    let mut gated = HashSet::new();
    for _ in 0..=LOOP_LEVELS_MAX {
        let before = gated.len();
        for step in &workflow.steps {
            if !gated.contains(step.id()) && has_gate(step, &gated) {
                gated.insert(step.id());
            }
        }
        if gated.len() == before {
            break;
        }
    }
    gated
}

struct Walk<'w, 'r> {
    workflow: &'w Workflow,
    report: &'r mut Report,
    gated: HashSet<&'w str>,
    tops: HashMap<&'w str, usize>,
    /// The required reports of the steps before this one.
    known: Guarantees<'w>,
    /// Bound by the loops around, with the list whose items a variable stands for.
    bound: Vec<(&'w str, Option<&'w str>)>,
    /// The loops around, outermost first.
    enclosing: Vec<&'w LoopStep>,
    /// Of looking for the results of all loops.
    budget: Budget,
    named_left: usize,
    /// The places and variables that are reported already: a body can run in several loops.
    told: HashSet<(String, &'w str)>,
}

impl<'w> Walk<'w, '_> {
    fn step(&mut self, step: &'w Step, pointer: &Pointer<'_>) {
        // What leads back to itself is another rule's finding.
        if self.enclosing.len() > LOOP_LEVELS_MAX {
            return;
        }
        let run = step.run_condition();
        if let Some(run) = run
            && has_gate(step, &self.gated)
        {
            self.require(step, run, None, &pointer.key("runCondition"));
        }
        match step {
            Step::Plain(plain) => {
                let before = self.known.len();
                for entry in plain.reports.iter().filter(|entry| !entry.is_optional) {
                    self.known.add(&entry.name, Vec::new());
                }
                // A gate is decided with what is reported beside the output.
                self.require_confirmation(step, pointer);
                self.known.restrict(before, run);
            }
            Step::Loop(outer) => {
                self.require_confirmation(step, pointer);
                self.known.enter_loop(run);
                self.body(step, outer, pointer);
                self.known.leave_loop(|name| is_set_behind(outer, name));
            }
        }
    }

    fn require_confirmation(&mut self, step: &'w Step, pointer: &Pointer<'_>) {
        if let Some(Confirmation::Where(condition)) = step.require_confirmation() {
            let at = pointer.key("requireConfirmation");
            self.require(step, condition, step.run_condition(), &at);
        }
    }

    fn body(&mut self, step: &'w Step, outer: &'w LoopStep, pointer: &Pointer<'_>) {
        if has_gate(step, &self.gated) {
            self.require_loop(step, outer, pointer);
        }
        let bound = self.bound.len();
        self.bound.extend(outer.r#loop.variables().map(|name| (name, items_of(outer, name))));
        self.enclosing.push(outer);
        let list = pointer.key("body");
        for (index, inner) in step.inline_body().iter().enumerate() {
            self.step(inner, &list.index(index));
        }
        if let Some(&index) = step.named_body().and_then(|name| self.tops.get(name))
            && self.named_left > 0
        {
            self.named_left -= 1;
            self.step(&self.workflow.steps[index], &Pointer::Root.key("steps").index(index));
        }
        self.enclosing.pop();
        self.bound.truncate(bound);
    }

    /// Requires the variables that decide whether a loop with a gate has an iteration.
    fn require_loop(&mut self, step: &'w Step, outer: &'w LoopStep, pointer: &Pointer<'_>) {
        let settings = pointer.key("loop");
        match &outer.r#loop.kind {
            LoopKind::While { condition } => {
                let at = settings.key("condition");
                let results = self.results(outer, &at);
                // Without its results it may end before its first iteration.
                self.require_start(step, &results, &at, |name| without(condition, name).can_fail());
                let is_result = |name: &str| results.contains(&head(name));
                self.require_all(step, condition, step.run_condition(), &at, &is_result);
            }
            // It runs if its condition does not hold, so usually also if a variable is missing.
            LoopKind::Until { condition } => {
                let at = settings.key("condition");
                let results = self.results(outer, &at);
                let may_end = |name: &str| without(condition, name).can_hold();
                self.require_start(step, &results, &at, may_end);
                let mut names = paths(condition);
                names.retain(|name| !results.contains(&head(name)) && may_end(head(name)));
                for name in names {
                    self.require_name(step, name, &at);
                }
            }
            LoopKind::For { count: Count::Variable(name) } => {
                self.require_name(step, name, &settings.key("count"));
            }
            LoopKind::ForEach { items, .. } => {
                self.require_name(step, items, &settings.key("items"));
            }
            LoopKind::For { .. } => {}
        }
    }

    /// The variables that a loop with declared variables begins without.
    fn results(&mut self, outer: &'w LoopStep, at: &Pointer<'_>) -> Vec<&'w str> {
        let enclosing = self.enclosing.last().copied();
        let results = self.workflow.loop_results(outer, enclosing, &self.budget);
        results.unwrap_or_else(|_| {
            let message = format!(
                "the gate of `{}` cannot be checked: too many loops share too many steps",
                outer.id
            );
            let hint = "split the workflow".to_owned();
            self.add(Code::GateMayVanish, &outer.id, at, message, hint);
            Vec::new()
        })
    }

    /// Requires that a loop has an iteration although it begins without its results.
    fn require_start(
        &mut self,
        step: &'w Step,
        results: &[&'w str],
        at: &Pointer<'_>,
        may_end: impl Fn(&str) -> bool,
    ) {
        for name in results.iter().copied().filter(|name| may_end(name)) {
            let id = step.id();
            let message = format!(
                "the gate of `{id}` may disappear: the loop begins without `{name}`, which no step before it in its list reports"
            );
            let hint = format!(
                "list `{name}` in the `reports` of a step that stands before the loop, in the same list"
            );
            self.add(Code::GateMayVanish, name, at, message, hint);
        }
    }

    /// Requires that every variable of a condition was reported, where `given` holds.
    fn require(
        &mut self,
        step: &'w Step,
        condition: &'w Condition,
        given: Option<&Condition>,
        at: &Pointer<'_>,
    ) {
        self.require_all(step, condition, given, at, &|_| false);
    }

    /// The same, but for some variables.
    fn require_all(
        &mut self,
        step: &'w Step,
        condition: &'w Condition,
        given: Option<&Condition>,
        at: &Pointer<'_>,
        is_exempt: &dyn Fn(&str) -> bool,
    ) {
        for name in paths(condition).into_iter().filter(|name| !is_exempt(name)) {
            let given: Vec<&Condition> = given.into_iter().chain([condition]).collect();
            self.require_under(step, name, &given, at);
        }
    }

    fn require_name(&mut self, step: &'w Step, name: &'w str, at: &Pointer<'_>) {
        let given: Vec<&Condition> = step.run_condition().into_iter().collect();
        self.require_under(step, name, &given, at);
    }

    /// Requires that a variable was reported, and that its declaration has the rest of a dotted path.
    fn require_under(
        &mut self,
        step: &'w Step,
        path: &'w str,
        given: &[&Condition],
        at: &Pointer<'_>,
    ) {
        let name = head(path);
        if name.is_empty() {
            return;
        }
        if let Some((_, list)) = self.bound.iter().rev().find(|(bound, _)| *bound == name) {
            if let Some(list) = list {
                self.require_path(step, path, list, at);
            }
            return;
        }
        let (declared, id) = (&self.workflow.variables, step.id());
        if declared.is_empty() {
            let message = format!(
                "the gate of `{id}` depends on `{name}`, which nothing makes the agent report"
            );
            let hint = format!(
                "declare `{name}` in `variables`, and list it in `reports` of an earlier step"
            );
            return self.add(Code::UnreportedGate, name, at, message, hint);
        }
        // An undeclared variable is another rule's finding.
        if declared.get(name).is_none() {
            return;
        }
        if self.is_reported(name, given) {
            return self.require_path(step, path, name, at);
        }
        let message = format!(
            "the gate of `{id}` may disappear: `{name}` is reported {}",
            match self.known.is_known(name) {
                true => "only by steps that may not run",
                false => "by no step that always runs before",
            }
        );
        let hint = format!("list `{name}` in the `reports` of an earlier step that always runs");
        self.add(Code::GateMayVanish, name, at, message, hint);
    }

    /// Requires that the declaration of a variable, or of the list that holds it, has a dotted path in every value.
    fn require_path(&mut self, step: &'w Step, path: &'w str, variable: &'w str, at: &Pointer<'_>) {
        let Some((name, rest)) = path.split_once('.') else { return };
        let Some(declaration) = self.workflow.variables.get(head(variable)) else { return };
        // An item of a list inside a variable: where in its schema, is a rare question with a safe answer.
        let is_item = name != variable;
        if !variable.contains('.') && has_path(declaration, is_item, rest) {
            return;
        }
        let id = step.id();
        let message = format!(
            "the gate of `{id}` may disappear: the declaration of `{variable}` does not require `{path}`"
        );
        let is_place = rest.split('.').any(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        let hint = match (is_place, is_item) {
            (true, _) => "report what the gate needs as a variable, instead of a place in a list",
            (false, true) => {
                "declare the list by a `schema` whose `items` have the path in `required`"
            }
            (false, false) => {
                "declare it by a `schema` that has every part of the path in `required`"
            }
        };
        let hint = hint.to_owned();
        self.add(Code::GateMayVanish, path, at, message, hint);
    }

    fn is_reported(&self, name: &str, given: &[&Condition]) -> bool {
        // What the variable itself decides says nothing about whether it is there, and what a loop
        // binds says nothing about the context.
        let is_ignored =
            |var: &str| var == name || self.bound.iter().any(|(bound, _)| *bound == var);
        self.known.imply(name, given, &is_ignored)
    }

    fn add(&mut self, code: Code, name: &'w str, at: &Pointer<'_>, message: String, hint: String) {
        if self.told.insert((at.to_string(), name)) {
            self.report.add(code, at, At::Value, message, Some(hint));
        }
    }
}

/// The variables of a condition as they are written, each once.
fn paths(condition: &Condition) -> Vec<&str> {
    let (mut names, mut seen) = (Vec::new(), HashSet::new());
    condition.each_variable(&mut |name| names.push(name));
    names.retain(|name| seen.insert(*name));
    names
}

/// The list that a `forEach` loop goes through, for the variable that holds an item.
fn items_of<'w>(outer: &'w LoopStep, name: &str) -> Option<&'w str> {
    match &outer.r#loop.kind {
        LoopKind::ForEach { items, item_var, .. } if item_name(item_var) == name => Some(items),
        _ => None,
    }
}

/// How many references of a schema are followed for one part of a path.
const REFERENCES_MAX: usize = 8;

/// Whether every value of a declaration, or every item of it, has something at a dotted path.
fn has_path(declaration: &Declaration, is_item: bool, path: &str) -> bool {
    let of = if is_item { declaration.items } else { declaration.r#type };
    if path == "length" && matches!(of, Some(ValueType::List | ValueType::String)) {
        return true;
    }
    let Some(schema) = &declaration.schema else { return false };
    let Ok(root) = serde_json::from_str::<Value>(schema.text()) else { return false };
    let item = if is_item { &root["items"] } else { &root };
    requires_path(&root, item, path)
}

fn requires_path<'v>(root: &'v Value, mut schema: &'v Value, path: &str) -> bool {
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = schema["$ref"].as_str() else { break };
            let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            let Some(target) = target else { return false };
            schema = target;
        }
        let names = |of: &[&str]| schema["type"].as_str().is_some_and(|name| of.contains(&name));
        if part == "length" && parts.peek().is_none() && names(&["array", "string"]) {
            return true;
        }
        let required = schema["required"].as_array();
        let is_required = required.is_some_and(|all| all.iter().any(|name| name == part));
        if !names(&["object"]) || !is_required {
            return false;
        }
        schema = &schema["properties"][part];
    }
    true
}
