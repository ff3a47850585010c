//! Reserved names: no loop binds them, and no condition or loop reads them as variables.

use super::assignment::head;
use super::variables::{Use, each_use};
use super::{Report, each_step};
use crate::definition::{LoopKind, LoopStep, RESERVED_NAMES, Step, Workflow};
use crate::finding::Code;
use crate::pointer::Pointer;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    each_step(workflow, &mut |step, pointer| {
        if let Step::Loop(step) = step {
            check_bound(step, &pointer.key("loop"), report);
        }
        // A reserved name cannot be declared: that it is not is an error of its own.
        if !workflow.variables.is_empty() {
            return;
        }
        each_use(step, pointer, &mut |used_as, at| {
            let name = head(used_as.name());
            if RESERVED_NAMES.contains(&name) {
                match used_as {
                    Use::Condition(..) => add(name, &at.key("var"), report),
                    Use::Items(_) | Use::Count(_) => add(name, at, report),
                }
            }
        });
    });
}

fn check_bound(step: &LoopStep, settings: &Pointer<'_>, report: &mut Report) {
    let (item, index) = match &step.r#loop.kind {
        LoopKind::ForEach { item_var, index_var, .. } => (item_var.as_ref(), index_var.as_ref()),
        _ => (None, None),
    };
    let iteration = step.r#loop.iteration_var.as_ref();
    for (field, name) in [("iterationVar", iteration), ("itemVar", item), ("indexVar", index)] {
        if let Some(name) = name.filter(|name| RESERVED_NAMES.contains(&&***name)) {
            add(name, &settings.key(field), report);
        }
    }
}

fn add(name: &str, at: &Pointer<'_>, report: &mut Report) {
    let message = format!("`{name}` is a reserved name: it belongs to the session");
    let hint = Some("choose another name for the variable".to_owned());
    report.add(Code::ReservedName, at, At::Value, message, hint);
}
