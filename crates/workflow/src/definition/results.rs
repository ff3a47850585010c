//! The results of a loop: the variables by which its own steps end it.

use std::collections::HashSet;

use budget::{Budget, Exhausted};

use super::{Body, LoopKind, LoopStep, Step, Workflow};

/// What visiting a step costs: its id is looked up in a set.
const VISIT_STEPS: u64 = 10;

impl Workflow {
    /// The steps of a loop's body, wherever they are written.
    pub fn body<'a>(&'a self, step: &'a LoopStep) -> &'a [Step] {
        match &step.body {
            Body::Steps(steps) => steps,
            Body::Named(id) => {
                let named = self.top_level(id).map(|index| &self.steps[index]);
                named.map(std::slice::from_ref).unwrap_or_default()
            }
        }
    }

    /// Every step that runs inside these, and they themselves, each once: loops can share a body, and the
    /// ways down to it can be too many to go.
    pub fn each_inside<'a>(&'a self, steps: &'a [Step], visit: &mut dyn FnMut(&'a Step)) {
        let mut walk = Walk::default();
        walk.open.push(steps);
        while let Some(step) = walk.next(self) {
            visit(step);
        }
    }

    /// The variables of a loop's condition that its own steps report, and no step before it in the list where it
    /// stands. The loop begins without a value of them: one that the context has was reported too early, or in an
    /// earlier iteration of the enclosing loop. Only for workflows that declare their variables.
    pub fn loop_results<'a>(
        &'a self,
        step: &'a LoopStep,
        enclosing: Option<&'a LoopStep>,
        budget: &Budget,
    ) -> Result<Vec<&'a str>, Exhausted> {
        let (LoopKind::While { condition } | LoopKind::Until { condition }) = &step.r#loop.kind
        else {
            return Ok(Vec::new());
        };
        if self.variables.is_empty() {
            return Ok(Vec::new());
        }
        let (mut heads, mut inside) = (HashSet::new(), Vec::new());
        condition.each_variable(&mut |name| {
            heads.insert(name.split('.').next().unwrap_or(name));
        });
        let mut walk = Walk::default();
        walk.open.push(self.body(step));
        while !heads.is_empty()
            && let Some(step) = walk.next(self)
        {
            budget.spend(VISIT_STEPS)?;
            inside.extend(reports(step).filter(|name| heads.remove(name)));
        }
        let list = match enclosing {
            Some(enclosing) => self.body(enclosing),
            // It is all that another loop repeats.
            None if self.named_bodies().contains(&*step.id) => &[],
            None => &*self.steps,
        };
        let mut walk = Walk::default();
        for sibling in list.iter().take_while(|sibling| sibling.id() != &*step.id) {
            // At the top level there are also steps that only run inside loops.
            if inside.is_empty()
                || (enclosing.is_none() && self.named_bodies().contains(sibling.id()))
            {
                continue;
            }
            walk.open.push(std::slice::from_ref(sibling));
            while let Some(step) = walk.next(self) {
                budget.spend(VISIT_STEPS)?;
                for name in reports(step) {
                    inside.retain(|result| *result != name);
                }
            }
        }
        Ok(inside)
    }
}

/// Steps that are still to be visited, and those that were.
#[derive(Default)]
struct Walk<'a> {
    open: Vec<&'a [Step]>,
    seen: HashSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn next(&mut self, workflow: &'a Workflow) -> Option<&'a Step> {
        while let Some(steps) = self.open.pop() {
            let Some((step, rest)) = steps.split_first() else { continue };
            self.open.push(rest);
            if self.seen.insert(step.id()) {
                if let Step::Loop(inner) = step {
                    self.open.push(workflow.body(inner));
                }
                return Some(step);
            }
        }
        None
    }
}

fn reports(step: &Step) -> impl Iterator<Item = &str> {
    let entries = match step {
        Step::Plain(plain) => &*plain.reports,
        Step::Loop(_) => &[],
    };
    entries.iter().map(|entry| &*entry.name)
}
