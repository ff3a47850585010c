//! Definite assignment: what the steps before a place guarantee there. A step counts if it runs
//! whenever the place is reached. The engine looks through the steps from the first one each time, so
//! an earlier step of the same list has run, or its condition does not hold now.

use std::collections::HashMap;

use crate::condition::{Clause, Condition};
use crate::definition::{Count, LoopKind, LoopStep};

/// How many conditional steps are considered for one name, the nearest first.
const CONDITIONAL_MAX: usize = 64;

/// Something that a step guarantees, by name, and the conditions under which the step runs.
struct Guarantee<'w> {
    name: &'w str,
    conditions: Vec<&'w Condition>,
}

/// The guarantees of the steps before a place.
#[derive(Default)]
pub(super) struct Guarantees<'w> {
    list: Vec<Guarantee<'w>>,
    by_name: HashMap<&'w str, Vec<usize>>,
    /// The loops around: how much was known before each, and the condition under which it starts.
    loops: Vec<(usize, Option<&'w Condition>)>,
}

impl<'w> Guarantees<'w> {
    pub(super) fn add(&mut self, name: &'w str, conditions: Vec<&'w Condition>) {
        self.by_name.entry(name).or_default().push(self.list.len());
        self.list.push(Guarantee { name, conditions });
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_known(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|known| !known.is_empty())
    }

    /// Adds a condition to what was added from this place on.
    pub(super) fn restrict(&mut self, from: usize, condition: Option<&'w Condition>) {
        for guarantee in &mut self.list[from..] {
            guarantee.conditions.extend(condition);
        }
    }

    /// Enters a loop. That it started tells which steps before it have run.
    pub(super) fn enter_loop(&mut self, run: Option<&'w Condition>) {
        self.loops.push((self.list.len(), run));
    }

    /// Keeps what a loop guarantees to the steps behind it.
    pub(super) fn leave_loop(&mut self, is_kept: impl Fn(&str) -> bool) {
        let Some((from, run)) = self.loops.pop() else { return };
        let inner = self.list.split_off(from);
        for guarantee in inner.iter().rev() {
            self.by_name.entry(guarantee.name).and_modify(|known| known.truncate(known.len() - 1));
        }
        for guarantee in inner {
            // The steps of a loop that has ended do not run again, even if their conditions hold.
            if guarantee.conditions.is_empty() && is_kept(guarantee.name) {
                self.add(guarantee.name, run.into_iter().collect());
            }
        }
    }

    /// Whether a step has run that guarantees a name, if the given conditions hold. What conditions
    /// say about ignored variables does not count.
    pub(super) fn imply(
        &self,
        name: &str,
        given: &[&Condition],
        is_ignored: &dyn Fn(&str) -> bool,
    ) -> bool {
        let Some(known) = self.by_name.get(name) else { return false };
        if known.iter().any(|index| self.list[*index].conditions.is_empty()) {
            return true;
        }
        let relaxed = |given: &[&Condition]| -> Vec<Condition> {
            given.iter().map(|condition| relax(condition, is_ignored)).collect()
        };
        let at_start = self.loops.iter().filter_map(|(from, run)| {
            let before = known.partition_point(|index| index < from);
            Some((&known[..before], relaxed(&[(*run)?])))
        });
        std::iter::once((known.as_slice(), relaxed(given)))
            .chain(at_start)
            .any(|(known, given)| !known.is_empty() && self.has_run(known, given))
    }

    fn has_run(&self, known: &[usize], given: Vec<Condition>) -> bool {
        let mut all = given;
        for index in known.iter().rev().take(CONDITIONAL_MAX) {
            let conditions = &self.list[*index].conditions;
            let ran = conditions.iter().map(|condition| (*condition).clone()).collect();
            all.push(composed(Clause::Not(Box::new(composed(Clause::And(ran))))));
        }
        !composed(Clause::And(all)).can_hold()
    }
}

fn composed(clause: Clause) -> Condition {
    Condition { var: None, clauses: Box::new([clause]) }
}

/// Whether a loop has at least one iteration once it has ended.
pub(super) fn runs_once(step: &LoopStep) -> bool {
    matches!(step.r#loop.kind, LoopKind::For { count: Count::Number(1..) })
}

/// Whether a variable that each iteration reports is set once the loop has ended.
pub(super) fn is_set_behind(step: &LoopStep, name: &str) -> bool {
    match &step.r#loop.kind {
        // If it had no iteration, its condition held at once, so the variable was there before.
        LoopKind::Until { condition } => !without(condition, name).can_hold(),
        _ => runs_once(step),
    }
}

/// The condition in a context that lacks one variable.
pub(super) fn without(condition: &Condition, name: &str) -> Condition {
    let is_absent = condition.var.as_deref().is_some_and(|var| head(var) == name);
    let fails = |clause: &Clause| clause.is_comparison() && !matches!(clause, Clause::NotEquals(_));
    if is_absent && (condition.tests_truth() || condition.clauses.iter().any(fails)) {
        return composed(Clause::Or(Vec::new()));
    }
    let members = |members: &[Condition]| members.iter().map(|it| without(it, name)).collect();
    let clauses = condition.clauses.iter().filter_map(|clause| match clause {
        Clause::And(list) => Some(Clause::And(members(list))),
        Clause::Or(list) => Some(Clause::Or(members(list))),
        Clause::Not(member) => Some(Clause::Not(Box::new(without(member, name)))),
        comparison => (!is_absent).then(|| comparison.clone()),
    });
    Condition { var: condition.var.clone().filter(|_| !is_absent), clauses: clauses.collect() }
}

/// The condition without what it says about some variables: it holds at least where it held before.
fn relax(condition: &Condition, is_ignored: &dyn Fn(&str) -> bool) -> Condition {
    relaxed(condition, is_ignored, true)
}

/// As likely to come out as `wanted` as it can be.
fn relaxed(condition: &Condition, is_ignored: &dyn Fn(&str) -> bool, wanted: bool) -> Condition {
    let is_about = condition.var.as_deref().is_some_and(|var| is_ignored(head(var)));
    let has_own = condition.tests_truth() || condition.clauses.iter().any(Clause::is_comparison);
    if is_about && has_own && !wanted {
        return composed(Clause::Or(Vec::new()));
    }
    let members = |members: &[Condition]| {
        members.iter().map(|member| relaxed(member, is_ignored, wanted)).collect::<Vec<_>>()
    };
    let clauses = condition.clauses.iter().filter_map(|clause| match clause {
        Clause::And(list) => Some(Clause::And(members(list))),
        Clause::Or(list) => Some(Clause::Or(members(list))),
        Clause::Not(member) => Some(Clause::Not(Box::new(relaxed(member, is_ignored, !wanted)))),
        comparison => (!is_about).then(|| comparison.clone()),
    });
    Condition { var: condition.var.clone().filter(|_| !is_about), clauses: clauses.collect() }
}

/// The variable that a dotted path begins with.
pub(super) fn head(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
