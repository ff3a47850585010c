//! Step ids are unique across the whole tree.

use std::collections::HashMap;

use super::{Report, each_step};
use crate::definition::Workflow;
use crate::finding::Code;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let mut first: HashMap<&str, &str> = HashMap::new();
    each_step(workflow, &mut |step, pointer| match first.get(step.id()) {
        None => {
            first.insert(step.id(), step.title());
        }
        Some(title) => {
            let message = format!("the step id `{}` is used already, by \"{title}\"", step.id());
            let hint = Some("give one of the two steps another id".to_owned());
            report.add(Code::DuplicateStep, &pointer.key("id"), At::Value, message, hint);
        }
    });
}
