//! The table of rules: what the types and the shape cannot say. Each looks at the whole workflow and
//! reports everything that it finds; adding one means a file here and a line in the table.

use crate::definition::{Step, Workflow};
use crate::finding::Code;
use crate::pointer::{Pointer, is_within};
use crate::tree::At;

pub(crate) mod compile;
mod conditions;
mod criteria;
mod ids;
mod limits;
mod loops;
mod server_version;
mod templates;
mod text_length;

type Rule = fn(&Workflow, &mut Report);

const RULES: &[Rule] = &[
    limits::check,
    server_version::check,
    ids::check,
    loops::check,
    conditions::check,
    criteria::check,
    templates::check,
    text_length::check,
];

pub(crate) fn check(workflow: &Workflow, report: &mut Report) {
    for rule in RULES {
        rule(workflow, report);
    }
}

/// What was found so far, not yet placed in the text.
#[derive(Debug, Default)]
pub(crate) struct Report {
    drafts: Vec<Draft>,
    /// How many of the drafts are about shape: below those, rules stay silent.
    settled: usize,
}

#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) code: Code,
    pub(crate) pointer: String,
    pub(crate) at: At,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Report {
    /// Adds a finding, unless it is about a value whose shape is wrong already: that would be noise.
    pub(crate) fn add(
        &mut self,
        code: Code,
        pointer: &dyn ToString,
        at: At,
        message: String,
        hint: Option<String>,
    ) {
        let pointer = pointer.to_string();
        let settled = &self.drafts[..self.settled];
        if settled.iter().any(|draft| is_within(&pointer, &draft.pointer)) {
            return;
        }
        self.drafts.push(Draft { code, pointer, at, message, hint });
    }

    /// From now on, nothing at or below what is reported is reported again.
    pub(crate) fn settle(&mut self) {
        self.settled = self.drafts.len();
    }

    pub(crate) fn pointers(&self) -> impl Iterator<Item = &str> {
        self.drafts.iter().map(|draft| draft.pointer.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    pub(crate) fn into_drafts(self) -> Vec<Draft> {
        self.drafts
    }
}

/// Calls `visit` with every step of the tree and its place.
fn each_step<'w>(workflow: &'w Workflow, visit: &mut dyn FnMut(&'w Step, &Pointer<'_>)) {
    fn walk<'w>(
        steps: &'w [Step],
        list: &Pointer<'_>,
        visit: &mut dyn FnMut(&'w Step, &Pointer<'_>),
    ) {
        for (index, step) in steps.iter().enumerate() {
            let pointer = list.index(index);
            visit(step, &pointer);
            walk(step.inline_body(), &pointer.key("body"), visit);
        }
    }
    walk(&workflow.steps, &Pointer::Root.key("steps"), visit);
}
