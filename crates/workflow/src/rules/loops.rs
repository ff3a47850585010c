//! Loops: the body is there, and something ends them.

use std::collections::{BTreeMap, HashSet};

use super::{Report, shown};
use crate::definition::{Count, LoopKind, LoopStep, Step, Workflow};
use crate::finding::{Code, Severity};
use crate::nearest::nearest;
use crate::pointer::Pointer;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let names = Names::new(workflow);
    for (index, step) in workflow.steps.iter().enumerate() {
        check_step(step, index, &Pointer::Root.key("steps").index(index), &names, report);
    }
}

fn check_step(
    step: &Step,
    top: usize,
    pointer: &Pointer<'_>,
    names: &Names<'_>,
    report: &mut Report,
) {
    if let Step::Loop(inner) = step {
        check_body(step, top, pointer, names, report);
        check_end(inner, pointer, report);
        check_count(inner, pointer, report);
    }
    let body = pointer.key("body");
    for (index, inner) in step.inline_body().iter().enumerate() {
        check_step(inner, top, &body.index(index), names, report);
    }
}

fn check_body(
    step: &Step,
    top: usize,
    pointer: &Pointer<'_>,
    names: &Names<'_>,
    report: &mut Report,
) {
    let Some(name) = step.named_body() else {
        return;
    };
    let (at, id) = (pointer.key("body"), step.id());
    match names.top.get(name) {
        None if names.inner.contains(name) => {
            let message =
                format!("the body of loop `{id}` names `{name}`, which stands inside another loop");
            let hint = "name a step at the top level of the workflow, or write the steps here";
            report.add(Code::UnknownBody, &at, At::Value, message, Some(hint.to_owned()));
        }
        None => {
            let message =
                format!("the body of loop `{id}` names the step `{name}`, which does not exist");
            let others = names.top.keys().copied().filter(|other| *other != id);
            let meant = (!report.is_full(Severity::Error)).then(|| nearest(name, others)).flatten();
            let hint = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "name a step at the top level of the workflow".to_owned(),
            };
            report.add(Code::UnknownBody, &at, At::Value, message, Some(hint));
        }
        Some(&body) if names.leads_to(body, top) => {
            let message = format!("the body of loop `{id}` leads back to the loop itself");
            let hint = Some("name a step that is not this loop and does not contain it".to_owned());
            report.add(Code::Endless, &at, At::Value, message, hint);
        }
        Some(_) => {}
    }
}

/// Which steps there are, and which of those at the top level run which others by name.
struct Names<'w> {
    top: BTreeMap<&'w str, usize>,
    inner: HashSet<&'w str>,
    runs: Vec<Vec<usize>>,
}

impl<'w> Names<'w> {
    fn new(workflow: &'w Workflow) -> Self {
        let indexed = workflow.steps.iter().enumerate();
        let top: BTreeMap<&str, usize> = indexed.map(|(index, step)| (step.id(), index)).collect();
        let mut inner = HashSet::new();
        workflow.each_step(&mut |step| inner.extend(step.inline_body().iter().map(Step::id)));
        let runs = workflow.steps.iter().map(|step| {
            let mut runs = Vec::new();
            named_in(step, &top, &mut runs);
            runs
        });
        let runs = runs.collect();
        Self { top, inner, runs }
    }

    /// Whether running one step at the top level comes to another, or is that one.
    fn leads_to(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.runs.len()];
        let mut open = vec![from];
        while let Some(step) = open.pop() {
            if step == to {
                return true;
            }
            if !std::mem::replace(&mut seen[step], true) {
                open.extend(&self.runs[step]);
            }
        }
        false
    }
}

fn named_in(step: &Step, top: &BTreeMap<&str, usize>, runs: &mut Vec<usize>) {
    runs.extend(step.named_body().and_then(|name| top.get(name)));
    for inner in step.inline_body() {
        named_in(inner, top, runs);
    }
}

fn check_end(step: &LoopStep, pointer: &Pointer<'_>, report: &mut Report) {
    let (condition, ends, goes_on) = match &step.r#loop.kind {
        LoopKind::While { condition } => (condition, condition.can_fail(), condition.can_hold()),
        LoopKind::Until { condition } => (condition, condition.can_hold(), condition.can_fail()),
        LoopKind::For { .. } | LoopKind::ForEach { .. } => return,
    };
    let settings = pointer.key("loop");
    let at = settings.key("condition");
    let when = if condition.can_hold() { "every" } else { "no" };
    if !ends {
        let message = format!(
            "only its bound ends loop `{}`: {} holds in {when} context",
            step.id,
            shown(condition)
        );
        let hint = Some("mend the condition, or use `for` with a `count`".to_owned());
        report.add(Code::Endless, &at, At::Value, message, hint);
    } else if !goes_on {
        let message = format!(
            "loop `{}` can never start: {} holds in {when} context",
            step.id,
            shown(condition)
        );
        let hint = Some("mend the condition, or remove the loop".to_owned());
        report.add(Code::NeverRuns, &at, At::Value, message, hint);
    }
}

fn check_count(step: &LoopStep, pointer: &Pointer<'_>, report: &mut Report) {
    let LoopKind::For { count: Count::Number(count) } = step.r#loop.kind else {
        return;
    };
    let settings = pointer.key("loop");
    let at = settings.key("count");
    if count == 0 {
        let message = format!("loop `{}` never runs: it counts to 0", step.id);
        let hint = Some("raise `count`, or remove the loop".to_owned());
        report.add(Code::NeverRuns, &at, At::Value, message, hint);
    }
    if count > step.r#loop.max_iterations {
        let bound = step.r#loop.max_iterations;
        let message =
            format!("the loop counts to {count}, but `maxIterations` ends it after {bound}");
        let hint = Some(format!("raise `maxIterations` to {count}, or lower `count`"));
        report.add(Code::CutShort, &at, At::Value, message, hint);
    }
}
