//! What is derived from a workflow on first use, and kept beside it.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::{Step, Workflow};
use crate::derived::DerivedReports;
use crate::template::{Piece, output_reference, pieces, slot};

/// Results that depend on nothing but the workflow: equal whatever they hold so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Derived {
    reports: OnceLock<DerivedReports>,
    refers_to_outputs: OnceLock<bool>,
    plain_ids: OnceLock<HashSet<Box<str>>>,
    top_level: OnceLock<HashMap<Box<str>, usize>>,
    named_bodies: OnceLock<HashSet<Box<str>>>,
}

impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Workflow {
    /// The variables that steps should report, in a workflow that declares none.
    pub fn derived_reports(&self) -> &DerivedReports {
        self.derived.reports.get_or_init(|| DerivedReports::new(self))
    }

    /// Whether a text refers to the output of a step. A context must not set the reserved names then.
    pub fn uses_reserved_names(&self) -> bool {
        *self.derived.refers_to_outputs.get_or_init(|| self.refers_to_outputs())
    }

    fn refers_to_outputs(&self) -> bool {
        let mut refers = false;
        let mut visit = |text: &str| {
            refers |= pieces(text).any(|piece| match piece {
                Piece::Slot { inner, .. } if inner.starts_with("steps.") => {
                    slot(inner).is_some_and(|slot| output_reference(self, slot.name).is_some())
                }
                _ => false,
            });
        };
        self.each_step(&mut |step| match step {
            Step::Plain(step) => step.each_text(&mut |_, text| visit(text)),
            Step::Loop(step) => visit(&step.title),
        });
        refers
    }

    /// The place of a top-level step in the list of steps.
    pub fn top_level(&self, id: &str) -> Option<usize> {
        let places = self.derived.top_level.get_or_init(|| {
            let mut places = HashMap::new();
            for (index, step) in self.steps.iter().enumerate() {
                places.entry(step.id().into()).or_insert(index);
            }
            places
        });
        places.get(id).copied()
    }

    /// The top-level steps that are the body of a loop: they run only there.
    pub fn named_bodies(&self) -> &HashSet<Box<str>> {
        self.derived.named_bodies.get_or_init(|| {
            let mut named = HashSet::new();
            self.each_step(&mut |step| named.extend(step.named_body().map(Into::into)));
            named
        })
    }

    /// Whether a step with this id has outputs: it is not a loop.
    pub(crate) fn has_output(&self, id: &str) -> bool {
        let ids = self.derived.plain_ids.get_or_init(|| {
            let mut ids = HashSet::new();
            self.each_step(&mut |step| {
                if let Step::Plain(step) = step {
                    ids.insert(step.id.clone());
                }
            });
            ids
        });
        ids.contains(id)
    }
}
