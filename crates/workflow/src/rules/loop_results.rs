//! Loops that never begin: a `while` or `until` loop starts without the variables that only its own steps report, and
//! its condition ends it without them.

use budget::Budget;

use super::Report;
use super::assignment::without;
use crate::definition::{LoopKind, LoopStep, Step, Workflow};
use crate::finding::Code;
use crate::pointer::Pointer;
use crate::tree::At;

/// What it may take to look at all loops. Where it does not suffice, the rest are not looked at.
const STEPS_MAX: u64 = 2_000_000;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    // In a mended definition, what reports a variable may have been mended away.
    if workflow.variables.is_empty() || report.is_mended() {
        return;
    }
    let budget = Budget::with_steps(STEPS_MAX);
    check_list(workflow, &workflow.steps, None, &Pointer::Root.key("steps"), &budget, report);
}

fn check_list(
    workflow: &Workflow,
    steps: &[Step],
    enclosing: Option<&LoopStep>,
    list: &Pointer<'_>,
    budget: &Budget,
    report: &mut Report,
) {
    for (index, step) in steps.iter().enumerate() {
        let Step::Loop(outer) = step else { continue };
        let pointer = list.index(index);
        check_loop(workflow, outer, enclosing, &pointer, budget, report);
        let body = step.inline_body();
        check_list(workflow, body, Some(outer), &pointer.key("body"), budget, report);
    }
}

fn check_loop(
    workflow: &Workflow,
    step: &LoopStep,
    enclosing: Option<&LoopStep>,
    pointer: &Pointer<'_>,
    budget: &Budget,
    report: &mut Report,
) {
    let (condition, is_while) = match &step.r#loop.kind {
        LoopKind::While { condition } => (condition, true),
        LoopKind::Until { condition } => (condition, false),
        LoopKind::For { .. } | LoopKind::ForEach { .. } => return,
    };
    let Ok(results) = workflow.loop_results(step, enclosing, budget) else { return };
    if results.is_empty() {
        return;
    }
    let start = results.iter().fold(condition.clone(), |start, name| without(&start, name));
    let begins = if is_while { start.can_hold() } else { start.can_fail() };
    if begins {
        return;
    }
    let (id, names) = (&step.id, results.join("`, `"));
    let message =
        format!("loop `{id}` never begins: no step before it in its list reports `{names}`");
    let hint = match is_while {
        true => "report it in a step before the loop, or use `until` with the opposite condition",
        false => "report it in a step before the loop, or test it the other way round",
    };
    let settings = pointer.key("loop");
    let at = settings.key("condition");
    report.add(Code::UnreportedVariable, &at, At::Value, message, Some(hint.to_owned()));
}
