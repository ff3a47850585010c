//! Gates that may disappear: whether a person is asked must not depend on a variable that no earlier
//! step has to report. If variables are declared, a required report counts at a gate if its step runs
//! whenever the gate is reached.

use std::collections::{HashMap, HashSet};

use super::Report;
use super::assignment::{Guarantees, head, is_set_behind, without};
use crate::condition::Condition;
use crate::definition::{Confirmation, Count, LoopKind, LoopStep, Step, Workflow};
use crate::finding::Code;
use crate::limits::LOOP_LEVELS_MAX;
use crate::pointer::Pointer;
use crate::tree::At;

/// How many bodies by name are followed: loops that share bodies could multiply without bound.
pub(crate) const NAMED_BODIES_MAX: usize = 1_000;

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
        depth: 0,
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
    /// Bound by the loops around.
    bound: Vec<&'w str>,
    depth: usize,
    named_left: usize,
    /// The places and variables that are reported already: a body can run in several loops.
    told: HashSet<(String, &'w str)>,
}

impl<'w> Walk<'w, '_> {
    fn step(&mut self, step: &'w Step, pointer: &Pointer<'_>) {
        // What leads back to itself is another rule's finding.
        if self.depth > LOOP_LEVELS_MAX {
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
        self.bound.extend(outer.r#loop.variables());
        self.depth += 1;
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
        self.depth -= 1;
        self.bound.truncate(bound);
    }

    /// Requires the variables that decide whether a loop with a gate has an iteration.
    fn require_loop(&mut self, step: &'w Step, outer: &'w LoopStep, pointer: &Pointer<'_>) {
        let settings = pointer.key("loop");
        match &outer.r#loop.kind {
            LoopKind::While { condition } => {
                let at = settings.key("condition");
                self.require(step, condition, step.run_condition(), &at);
            }
            // It runs if its condition does not hold, so usually also if a variable is missing.
            LoopKind::Until { condition } => {
                let mut names = heads(condition);
                names.retain(|name| without(condition, name).can_hold());
                for name in names {
                    self.require_name(step, name, &settings.key("condition"));
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

    /// Requires that every variable of a condition was reported, where `given` holds.
    fn require(
        &mut self,
        step: &'w Step,
        condition: &'w Condition,
        given: Option<&Condition>,
        at: &Pointer<'_>,
    ) {
        for name in heads(condition) {
            let given: Vec<&Condition> = given.into_iter().chain([condition]).collect();
            self.require_under(step, name, &given, at);
        }
    }

    fn require_name(&mut self, step: &'w Step, name: &'w str, at: &Pointer<'_>) {
        let given: Vec<&Condition> = step.run_condition().into_iter().collect();
        self.require_under(step, head(name), &given, at);
    }

    fn require_under(
        &mut self,
        step: &'w Step,
        name: &'w str,
        given: &[&Condition],
        at: &Pointer<'_>,
    ) {
        if name.is_empty() || self.bound.contains(&name) {
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
        if declared.get(name).is_none() || self.is_reported(name, given) {
            return;
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

    fn is_reported(&self, name: &str, given: &[&Condition]) -> bool {
        // What the variable itself decides says nothing about whether it is there, and what a loop
        // binds says nothing about the context.
        let is_ignored = |var: &str| var == name || self.bound.contains(&var);
        self.known.imply(name, given, &is_ignored)
    }

    fn add(&mut self, code: Code, name: &'w str, at: &Pointer<'_>, message: String, hint: String) {
        if self.told.insert((at.to_string(), name)) {
            self.report.add(code, at, At::Value, message, Some(hint));
        }
    }
}

/// The variables of a condition, each once.
fn heads(condition: &Condition) -> Vec<&str> {
    let (mut names, mut seen) = (Vec::new(), HashSet::new());
    condition.each_variable(&mut |name| names.push(head(name)));
    names.retain(|name| seen.insert(*name));
    names
}
