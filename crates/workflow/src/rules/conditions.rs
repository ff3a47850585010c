//! Conditions: each comparison has a variable, and each step has a context in which it runs.

use super::{Report, each_step, shown};
use crate::condition::{Clause, Condition};
use crate::criteria::{Check, Criteria};
use crate::definition::{Confirmation, LoopKind, Step, Workflow};
use crate::finding::Code;
use crate::pointer::Pointer;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    each_step(workflow, &mut |step, pointer| {
        if let Some(condition) = step.run_condition() {
            let at = pointer.key("runCondition");
            variables(condition, &at, report);
            if !condition.can_hold() {
                let message = format!(
                    "step `{}` can never run: {} holds in no context",
                    step.id(),
                    shown(condition)
                );
                let hint = Some("mend the condition, or remove the step".to_owned());
                report.add(Code::NeverRuns, &at, At::Value, message, hint);
            }
        }
        if let Some(Confirmation::Where(condition)) = step.require_confirmation() {
            variables(condition, &pointer.key("requireConfirmation"), report);
        }
        match step {
            Step::Loop(step) => {
                if let LoopKind::While { condition } | LoopKind::Until { condition } =
                    &step.r#loop.kind
                {
                    variables(condition, &pointer.key("loop").key("condition"), report);
                }
            }
            Step::Plain(step) => {
                if let Some(criteria) = &step.validation_criteria {
                    in_criteria(criteria, &pointer.key("validationCriteria"), report);
                }
            }
        }
    });
}

/// A comparison without `var` looks at nothing.
fn variables(condition: &Condition, pointer: &Pointer<'_>, report: &mut Report) {
    let comparison = condition.clauses.iter().find(|clause| clause.is_comparison());
    match (condition.var.as_deref(), comparison) {
        (None, Some(comparison)) => {
            let message = format!("`{}` has no variable to look at", comparison.name());
            let hint = Some("add `var`, the name of a context variable".to_owned());
            report.add(Code::NoVariable, &pointer.key(comparison.name()), At::Key, message, hint);
        }
        (Some(""), _) => {
            let hint = Some("name a context variable".to_owned());
            let message = "`var` is empty".to_owned();
            report.add(Code::NoVariable, &pointer.key("var"), At::Value, message, hint);
        }
        _ => {}
    }
    for clause in &condition.clauses {
        let at = pointer.key(clause.name());
        match clause {
            Clause::And(members) | Clause::Or(members) => {
                for (index, member) in members.iter().enumerate() {
                    variables(member, &at.index(index), report);
                }
            }
            Clause::Not(member) => variables(member, &at, report),
            _ => {}
        }
    }
}

fn in_criteria(criteria: &Criteria, pointer: &Pointer<'_>, report: &mut Report) {
    super::criteria::each_check(criteria, pointer, &mut |check, at| {
        if let Check::Rule(rule) = check
            && let Some(condition) = &rule.condition
        {
            variables(condition, &at.key("condition"), report);
            if !condition.can_hold() {
                let message =
                    format!("the rule can never apply: {} holds in no context", shown(condition));
                let hint = Some("mend the condition, or remove the rule".to_owned());
                // It drops out wherever it stands, so the rest of the criteria can be used.
                report.add(Code::NothingChecked, &at.key("condition"), At::Value, message, hint);
            }
        }
    });
}
