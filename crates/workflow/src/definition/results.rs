//! The results of a loop: the variables by which its own steps end it.

use std::collections::HashSet;

use budget::{Budget, Exhausted};

use super::{Body, LoopKind, LoopStep, Step, Workflow};

impl Workflow {
    /// The steps of a loop's body, wherever they are written.
    pub fn body<'a>(&'a self, step: &'a LoopStep) -> &'a [Step] {
        match &step.body {
            Body::Steps(steps) => steps,
            Body::Named(id) => {
                let named = self.steps.iter().find(|step| step.id() == &**id);
                named.map(std::slice::from_ref).unwrap_or_default()
            }
        }
    }

    /// Every step that runs inside these, and they themselves, each once: loops can share a body, and the
    /// ways down to it can be too many to go.
    pub fn each_inside<'a>(&'a self, steps: &'a [Step], visit: &mut dyn FnMut(&'a Step)) {
        let mut seen = HashSet::new();
        let mut open: Vec<&[Step]> = vec![steps];
        while let Some(steps) = open.pop() {
            for step in steps {
                if seen.insert(step.id()) {
                    visit(step);
                    if let Step::Loop(inner) = step {
                        open.push(self.body(inner));
                    }
                }
            }
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
        let (mut inside, mut visited) = (HashSet::new(), 0);
        self.each_inside(self.body(step), &mut |step| {
            visited += 1;
            inside.extend(reports(step));
        });
        if inside.is_empty() {
            return Ok(Vec::new());
        }
        let list = enclosing.map_or(&*self.steps, |enclosing| self.body(enclosing));
        let before = list.iter().position(|sibling| sibling.id() == &*step.id).unwrap_or_default();
        let mut named = HashSet::new();
        if enclosing.is_none() {
            self.each_step(&mut |step| {
                visited += 1;
                named.extend(step.named_body());
            });
        }
        for sibling in list[..before].iter().filter(|sibling| !named.contains(sibling.id())) {
            self.each_inside(std::slice::from_ref(sibling), &mut |step| {
                visited += 1;
                reports(step).for_each(|name| _ = inside.remove(name));
            });
        }
        budget.spend(visited)?;
        let mut results = Vec::new();
        condition.each_variable(&mut |name| {
            let head = name.split('.').next().unwrap_or(name);
            if inside.remove(head) {
                results.push(head);
            }
        });
        Ok(results)
    }
}

fn reports(step: &Step) -> impl Iterator<Item = &str> {
    let entries = match step {
        Step::Plain(plain) => &*plain.reports,
        Step::Loop(_) => &[],
    };
    entries.iter().map(|entry| &*entry.name)
}
