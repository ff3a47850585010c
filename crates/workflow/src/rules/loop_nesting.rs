//! Loops inside loops, by name or not: whoever runs them goes down one level for each, so there is a
//! bound. What is written inside each other is bounded by the reader already; names are not.

use std::collections::HashMap;

use super::{Report, each_step};
use crate::definition::{Step, Workflow};
use crate::finding::Code;
use crate::limits::LOOP_LEVELS_MAX;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    let mut loops: Vec<(&Step, String)> = Vec::new();
    each_step(workflow, &mut |step, pointer| {
        if let Step::Loop(_) = step {
            loops.push((step, pointer.to_string()));
        }
    });
    if loops.len() <= LOOP_LEVELS_MAX {
        return;
    }
    for (index, level) in levels(&loops).into_iter().enumerate() {
        let (step, pointer) = &loops[index];
        if level == LOOP_LEVELS_MAX + 1 {
            let message =
                format!("loop `{}` stands inside more than {LOOP_LEVELS_MAX} others", step.id());
            let hint = Some("put fewer loops inside each other".to_owned());
            report.add(Code::TooDeep, &format!("{pointer}/body"), At::Value, message, hint);
        }
    }
}

/// How deep each loop stands, itself included, in the order of their dependence. Loops that lead back
/// to themselves have no level: that is another rule's business.
fn levels(loops: &[(&Step, String)]) -> Vec<usize> {
    let indexed = loops.iter().enumerate();
    let indices: HashMap<&str, usize> = indexed.map(|(at, (step, _))| (step.id(), at)).collect();
    let inner = |at: usize| {
        let (step, _) = loops[at];
        let ids = step.inline_body().iter().map(Step::id).chain(step.named_body());
        ids.filter_map(|id| indices.get(id).copied()).collect::<Vec<usize>>()
    };
    let mut outer_left = vec![0_usize; loops.len()];
    for inner in (0..loops.len()).flat_map(inner) {
        outer_left[inner] += 1;
    }
    let mut levels = vec![0; loops.len()];
    let mut open: Vec<usize> = (0..loops.len()).filter(|at| outer_left[*at] == 0).collect();
    while let Some(outer) = open.pop() {
        levels[outer] = levels[outer].max(1);
        for inner in inner(outer) {
            levels[inner] = levels[inner].max(levels[outer] + 1);
            outer_left[inner] -= 1;
            if outer_left[inner] == 0 {
                open.push(inner);
            }
        }
    }
    levels
}
