//! The variables that loops bind where a step runs: the loops around it, and the loops that run
//! it by name, wherever those are themselves run by name.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::definition::{Step, Workflow};
use crate::pointer::Pointer;

/// The names that are bound at a step.
pub(super) struct Scope<'w, 's> {
    /// The index of the top-level step that the step belongs to.
    top: usize,
    /// Bound by the loops that it is written in.
    bound: &'s [&'w str],
    workflow: &'w Workflow,
    runners: &'s OnceCell<Runners<'w>>,
}

impl<'w> Scope<'w, '_> {
    pub(super) fn names(&self) -> impl Iterator<Item = &'w str> {
        let runners = self.runners.get_or_init(|| Runners::new(self.workflow));
        self.bound.iter().copied().chain(runners.bound(self.top))
    }

    pub(super) fn binds(&self, name: &str) -> bool {
        self.bound.contains(&name) || self.names().any(|bound| bound == name)
    }
}

/// Calls `visit` with every step of the tree, its place and its scope. The names that a loop
/// binds itself are not in its own scope.
pub(super) fn each_step<'w>(
    workflow: &'w Workflow,
    visit: &mut dyn FnMut(&'w Step, &Pointer<'_>, &Scope<'w, '_>),
) {
    let (runners, list) = (OnceCell::new(), Pointer::Root.key("steps"));
    for (top, step) in workflow.steps.iter().enumerate() {
        let mut walk = Walk { workflow, top, bound: Vec::new(), runners: &runners, visit };
        walk.step(step, &list.index(top));
    }
}

struct Walk<'w, 's, 'v> {
    workflow: &'w Workflow,
    top: usize,
    bound: Vec<&'w str>,
    runners: &'s OnceCell<Runners<'w>>,
    visit: &'v mut dyn FnMut(&'w Step, &Pointer<'_>, &Scope<'w, '_>),
}

impl<'w> Walk<'w, '_, '_> {
    fn step(&mut self, step: &'w Step, pointer: &Pointer<'_>) {
        let (workflow, runners) = (self.workflow, self.runners);
        let scope = Scope { top: self.top, bound: &self.bound, workflow, runners };
        (self.visit)(step, pointer, &scope);
        let Step::Loop(outer) = step else { return };
        let depth = self.bound.len();
        self.bound.extend(outer.r#loop.variables());
        let list = pointer.key("body");
        for (index, inner) in step.inline_body().iter().enumerate() {
            self.step(inner, &list.index(index));
        }
        self.bound.truncate(depth);
    }
}

/// The loops that run steps by name.
struct Runners<'w> {
    /// For each top-level step: which top-level steps run it, and what is bound on the way there.
    of: Vec<Vec<(usize, Vec<&'w str>)>>,
}

impl<'w> Runners<'w> {
    fn new(workflow: &'w Workflow) -> Self {
        let indexed = workflow.steps.iter().enumerate();
        let tops: HashMap<&str, usize> = indexed.map(|(top, step)| (step.id(), top)).collect();
        let mut runners = Self { of: vec![Vec::new(); workflow.steps.len()] };
        for (top, step) in workflow.steps.iter().enumerate() {
            runners.add(step, top, &tops, &mut Vec::new());
        }
        runners
    }

    fn add(
        &mut self,
        step: &'w Step,
        top: usize,
        tops: &HashMap<&str, usize>,
        bound: &mut Vec<&'w str>,
    ) {
        let Step::Loop(outer) = step else {
            return;
        };
        let depth = bound.len();
        bound.extend(outer.r#loop.variables());
        if let Some(&body) = step.named_body().and_then(|name| tops.get(name)) {
            self.of[body].push((top, bound.clone()));
        }
        for inner in step.inline_body() {
            self.add(inner, top, tops, bound);
        }
        bound.truncate(depth);
    }

    /// The variables that are bound where a top-level step runs.
    fn bound(&self, top: usize) -> impl Iterator<Item = &'w str> {
        let mut seen = HashSet::from([top]);
        let mut open = vec![top];
        let ways = std::iter::from_fn(move || {
            let ways = &self.of[open.pop()?];
            open.extend(ways.iter().map(|(top, _)| *top).filter(|top| seen.insert(*top)));
            Some(ways)
        });
        ways.flatten().flat_map(|(_, bound)| bound.iter().copied())
    }
}
