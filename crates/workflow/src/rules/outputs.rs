//! References to outputs: the step has run whenever the text is shown. That the step exists is checked
//! with the other slots, in `templates`.

use std::collections::{HashMap, HashSet};

use super::Report;
use super::assignment::{Guarantees, runs_once};
use super::gates::NAMED_BODIES_MAX;
use super::templates::each_text;
use crate::definition::{Step, Workflow};
use crate::finding::{Code, Severity};
use crate::limits::LOOP_LEVELS_MAX;
use crate::pointer::Pointer;
use crate::template::{Piece, output_reference, pieces, slot};

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    if !workflow.uses_reserved_names() {
        return;
    }
    let indexed = workflow.steps.iter().enumerate();
    let tops: HashMap<&str, usize> = indexed.map(|(index, step)| (step.id(), index)).collect();
    let mut named = HashSet::new();
    workflow.each_step(&mut |step| named.extend(step.named_body()));
    let mut walk = Walk {
        workflow,
        report,
        tops,
        known: Guarantees::default(),
        seen: HashSet::new(),
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

struct Walk<'w, 'r> {
    workflow: &'w Workflow,
    report: &'r mut Report,
    tops: HashMap<&'w str, usize>,
    /// The steps before this one, by id.
    known: Guarantees<'w>,
    /// Every step so far, also those that a loop does not guarantee.
    seen: HashSet<&'w str>,
    /// Bound by the loops around.
    bound: Vec<&'w str>,
    depth: usize,
    named_left: usize,
    /// The places and slots that are reported already: a body can run in several loops.
    told: HashSet<(String, &'w str)>,
}

impl<'w> Walk<'w, '_> {
    fn step(&mut self, step: &'w Step, pointer: &Pointer<'_>) {
        // What leads back to itself is another rule's finding.
        if self.depth > LOOP_LEVELS_MAX {
            return;
        }
        each_text(step, pointer, &mut |text, at| self.text(step, text, at));
        let run = step.run_condition();
        match step {
            Step::Plain(plain) => {
                self.known.add(&plain.id, run.into_iter().collect());
                self.seen.insert(&plain.id);
            }
            Step::Loop(outer) => {
                self.known.enter_loop(run);
                let bound = self.bound.len();
                self.bound.extend(outer.r#loop.variables());
                self.depth += 1;
                self.body(step, pointer);
                self.depth -= 1;
                self.bound.truncate(bound);
                self.known.leave_loop(|_| runs_once(outer));
            }
        }
    }

    fn body(&mut self, step: &'w Step, pointer: &Pointer<'_>) {
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
    }

    fn text(&mut self, step: &'w Step, text: &'w str, at: &Pointer<'_>) {
        for piece in pieces(text) {
            if let Piece::Slot { inner, whole } = piece
                && let Some(slot) = slot(inner)
                && let Some(reference) = output_reference(self.workflow, slot.name)
                && !self.has_run(reference.step, step)
            {
                if self.report.is_full(Severity::Warning) {
                    return self.report.cut(Severity::Warning);
                }
                self.add(reference.step, step, whole, at);
            }
        }
    }

    fn has_run(&self, id: &str, step: &Step) -> bool {
        let given: Vec<_> = step.run_condition().into_iter().collect();
        // What a loop binds says nothing about the context.
        self.known.imply(id, &given, &|var| self.bound.contains(&var))
    }

    fn add(&mut self, id: &str, step: &Step, whole: &'w str, at: &Pointer<'_>) {
        let pointer = at.to_string();
        if !self.told.insert((pointer.clone(), whole)) {
            return;
        }
        let (why, hint) = if id == step.id() {
            ("it is this step itself", "refer to an earlier step")
        } else if self.known.is_known(id) {
            let hint =
                "give this step the same `runCondition`, or refer to a step that always runs";
            ("its condition need not hold", hint)
        } else if self.seen.contains(id) {
            let hint = "refer to a step in front of the loop, or one that always runs";
            ("its loop may have ended without it", hint)
        } else {
            ("it comes later", "refer to an earlier step")
        };
        let message = format!("`{id}` may not have run when this is shown: {why}");
        let hint = Some(hint.to_owned());
        self.report.add_part(Code::OutputMayBeMissing, &pointer, whole, message, hint);
    }
}
