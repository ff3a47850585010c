//! Loops: the body is there, and something ends them.

use std::collections::HashMap;

use super::{Report, each_step};
use crate::definition::{Count, LoopKind, LoopStep, Step, Workflow};
use crate::finding::Code;
use crate::nearest::nearest;
use crate::pointer::Pointer;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let top: HashMap<&str, &Step> = workflow.steps.iter().map(|step| (step.id(), step)).collect();
    each_step(workflow, &mut |step, pointer| {
        if let Step::Loop(inner) = step {
            check_body(step, pointer, workflow, &top, report);
            check_end(inner, pointer, report);
            check_count(inner, pointer, report);
        }
    });
}

fn check_body(
    step: &Step,
    pointer: &Pointer<'_>,
    workflow: &Workflow,
    top: &HashMap<&str, &Step>,
    report: &mut Report,
) {
    let Some(name) = step.named_body() else {
        return;
    };
    let at = pointer.key("body");
    if !top.contains_key(name) {
        let is_inside = workflow.step(name).is_some();
        let message = if is_inside {
            format!(
                "the body of loop `{}` names `{name}`, which stands inside another loop",
                step.id()
            )
        } else {
            format!(
                "the body of loop `{}` names the step `{name}`, which does not exist",
                step.id()
            )
        };
        let others = workflow.steps.iter().map(Step::id).filter(|id| *id != step.id());
        let hint = match nearest(name, others) {
            Some(meant) if !is_inside => format!("did you mean `{meant}`?"),
            _ => "name a step at the top level of the workflow, or write the steps here".to_owned(),
        };
        report.add(Code::UnknownBody, &at, At::Value, message, Some(hint));
    } else if leads_back(step, top) {
        let message = format!("the body of loop `{}` leads back to the loop itself", step.id());
        let hint = Some("name a step that is not this loop and does not contain it".to_owned());
        report.add(Code::Endless, &at, At::Value, message, hint);
    }
}

/// Whether running the loop's body would come to the loop again.
fn leads_back(start: &Step, top: &HashMap<&str, &Step>) -> bool {
    fn children<'a>(step: &'a Step, top: &HashMap<&str, &'a Step>) -> Vec<&'a Step> {
        let named = step.named_body().and_then(|name| top.get(name).copied());
        step.inline_body().iter().chain(named).collect()
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut open = children(start, top);
    while let Some(step) = open.pop() {
        if step.id() == start.id() {
            return true;
        }
        if !seen.contains(&step.id()) {
            seen.push(step.id());
            open.extend(children(step, top));
        }
    }
    false
}

fn check_end(step: &LoopStep, pointer: &Pointer<'_>, report: &mut Report) {
    let (is_endless, is_idle) = match &step.r#loop.kind {
        LoopKind::While { condition } => (!condition.can_fail(), !condition.can_hold()),
        LoopKind::Until { condition } => (!condition.can_hold(), !condition.can_fail()),
        LoopKind::For { .. } | LoopKind::ForEach { .. } => (false, false),
    };
    let settings = pointer.key("loop");
    let at = settings.key("condition");
    if is_endless {
        let message =
            format!("nothing in the context can end loop `{}`; only its bound does", step.id);
        let hint = Some("mend the condition, or use `for` with a `count`".to_owned());
        report.add(Code::Endless, &at, At::Value, message, hint);
    } else if is_idle {
        let message = format!(
            "loop `{}` can never start: its condition is the same in every context",
            step.id
        );
        let hint = Some("mend the condition, or remove the loop".to_owned());
        report.add(Code::NeverRuns, &at, At::Value, message, hint);
    }
}

fn check_count(step: &LoopStep, pointer: &Pointer<'_>, report: &mut Report) {
    if let LoopKind::For { count: Count::Number(count) } = step.r#loop.kind
        && count > step.r#loop.max_iterations
    {
        let bound = step.r#loop.max_iterations;
        let message =
            format!("the loop counts to {count}, but `maxIterations` ends it after {bound}");
        let hint = Some(format!("raise `maxIterations` to {count}, or lower `count`"));
        report.add(Code::CutShort, &pointer.key("loop").key("count"), At::Value, message, hint);
    }
}
