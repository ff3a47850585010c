//! Variables that a workflow uses without declaring them: which there are, what they are compared with,
//! and which step should report them, as far as that is unambiguous.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::condition::{Clause, Condition};
use crate::definition::{Confirmation, Count, LoopKind, PlainStep, RESERVED_NAMES, Step, Workflow};
use crate::limits::LOOP_LEVELS_MAX;
use crate::rules::{NAMED_BODIES_MAX, add_words};
use crate::template::{Piece, pieces, slot};

/// How many values of one variable are kept.
const VALUES_MAX: usize = 64;

/// Variables that later conditions, loops, templates and gates use, in a workflow that declares none.
#[derive(Debug, Clone, Default)]
pub struct DerivedReports {
    variables: Vec<DerivedVariable>,
    by_name: HashMap<Box<str>, usize>,
    by_step: HashMap<Box<str>, Box<[DerivedVariable]>>,
}

/// A variable that a workflow uses without declaring it.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedVariable {
    pub name: Box<str>,
    /// The values that it is compared with, distinct, in file order.
    pub values: Vec<Value>,
    pub kind: DerivedKind,
}

/// What the uses of a variable say about its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedKind {
    /// It is tested for truth, or compared with true and false.
    Flag,
    Number,
    List,
    Any,
}

impl DerivedReports {
    pub(crate) fn new(workflow: &Workflow) -> Self {
        if !workflow.variables.is_empty() {
            return Self::default();
        }
        let mut uses = Uses::new(workflow);
        uses.find(workflow);
        if uses.variables.is_empty() {
            return Self::default();
        }
        uses.find_namers();
        uses.into_reports()
    }

    /// The variables that a step should report.
    pub fn for_step(&self, step: &str) -> &[DerivedVariable] {
        self.by_step.get(step).map(|variables| &**variables).unwrap_or_default()
    }

    pub fn get(&self, name: &str) -> Option<&DerivedVariable> {
        self.by_name.get(name).map(|index| &self.variables[*index])
    }

    /// Every variable, in the order of its first use.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| &*variable.name)
    }
}

/// How a variable is used.
#[derive(Default)]
struct Usage<'w> {
    name: &'w str,
    values: Vec<&'w Value>,
    is_tested: bool,
    is_compared_to_boolean: bool,
    is_number: bool,
    is_list: bool,
    /// In a way that only some other kind of value allows.
    is_other: bool,
    is_shown: bool,
    first: usize,
    last: usize,
    loops: HashSet<usize>,
    /// The plain steps whose texts name it: none, one, or more than can be told apart.
    namers: Vec<usize>,
}

/// A plain step where it runs.
struct Visit<'w> {
    step: &'w PlainStep,
    order: usize,
    /// The loops that it runs in.
    loops: HashSet<usize>,
}

/// Moments count up: a step begins at an even one, and its output is looked at in the odd one behind.
struct Uses<'w> {
    tops: HashMap<&'w str, &'w Step>,
    variables: Vec<Usage<'w>>,
    by_name: HashMap<&'w str, usize>,
    visits: Vec<Visit<'w>>,
    by_step: HashMap<&'w str, usize>,
    /// The running loops, and what they bind.
    loops: Vec<usize>,
    bound: Vec<&'w str>,
    now: usize,
    named_left: usize,
}

impl<'w> Uses<'w> {
    fn new(workflow: &'w Workflow) -> Self {
        Self {
            tops: workflow.steps.iter().map(|step| (step.id(), step)).collect(),
            variables: Vec::new(),
            by_name: HashMap::new(),
            visits: Vec::new(),
            by_step: HashMap::new(),
            loops: Vec::new(),
            bound: Vec::new(),
            now: 0,
            named_left: NAMED_BODIES_MAX,
        }
    }

    fn find(&mut self, workflow: &'w Workflow) {
        let mut named = HashSet::new();
        workflow.each_step(&mut |step| named.extend(step.named_body()));
        for step in &workflow.steps {
            if !named.contains(step.id()) {
                self.step(step);
            }
        }
    }

    fn step(&mut self, step: &'w Step) {
        if self.loops.len() > LOOP_LEVELS_MAX {
            return;
        }
        self.now += 2;
        if let Some(condition) = step.run_condition() {
            self.condition(condition);
        }
        match step {
            Step::Plain(plain) => {
                let visit = *self.by_step.entry(&plain.id).or_insert_with(|| {
                    let (order, loops) = (self.now, HashSet::new());
                    self.visits.push(Visit { step: plain, order, loops });
                    self.visits.len() - 1
                });
                self.visits[visit].loops.extend(&self.loops);
                plain.each_text(&mut |_, text| self.text(text));
                self.now += 1;
                self.confirmation(step);
                if let Some(criteria) = &plain.validation_criteria {
                    criteria.each_rule(&mut |rule| {
                        if let Some(condition) = &rule.condition {
                            self.condition(condition);
                        }
                    });
                }
                self.now -= 1;
            }
            Step::Loop(outer) => {
                self.text(&outer.title);
                self.confirmation(step);
                let bound = self.bound.len();
                self.bound.extend(outer.r#loop.variables());
                self.loops.push(self.now);
                match &outer.r#loop.kind {
                    LoopKind::While { condition } | LoopKind::Until { condition } => {
                        self.condition(condition);
                    }
                    LoopKind::For { count: Count::Variable(name) } => {
                        self.usage(name, |usage, is_whole| usage.is_number |= is_whole);
                    }
                    LoopKind::ForEach { items, .. } => {
                        self.usage(items, |usage, is_whole| usage.is_list |= is_whole);
                    }
                    LoopKind::For { .. } => {}
                }
                self.body(step);
                self.loops.pop();
                self.bound.truncate(bound);
            }
        }
    }

    fn body(&mut self, step: &'w Step) {
        for inner in step.inline_body() {
            self.step(inner);
        }
        if let Some(inner) = step.named_body().and_then(|name| self.tops.get(name).copied())
            && self.named_left > 0
        {
            self.named_left -= 1;
            self.step(inner);
        }
    }

    fn confirmation(&mut self, step: &'w Step) {
        if let Some(Confirmation::Where(condition)) = step.require_confirmation() {
            self.condition(condition);
        }
    }

    fn condition(&mut self, condition: &'w Condition) {
        if let Some(name) = condition.var.as_deref() {
            let is_tested = condition.tests_truth();
            self.usage(name, |usage, is_whole| {
                if is_whole {
                    usage.is_tested |= is_tested;
                    condition.clauses.iter().for_each(|clause| usage.compare(clause));
                }
            });
        }
        for clause in &condition.clauses {
            clause.members().iter().for_each(|member| self.condition(member));
        }
    }

    fn text(&mut self, text: &'w str) {
        if !text.contains("{{") {
            return;
        }
        for piece in pieces(text) {
            if let Piece::Slot { inner, .. } = piece
                && let Some(slot) = slot(inner)
            {
                self.usage(slot.name, |usage, is_whole| {
                    usage.is_shown |= is_whole;
                    usage.is_number |= is_whole && slot.plus != 0;
                });
            }
        }
    }

    /// Notes that a variable is used now: `note` learns whether the whole of it is meant.
    fn usage(&mut self, name: &'w str, note: impl FnOnce(&mut Usage<'w>, bool)) {
        let (head, path) = match name.split_once('.') {
            Some((head, path)) => (head, Some(path)),
            None => (name, None),
        };
        if head.is_empty() || RESERVED_NAMES.contains(&head) || self.bound.contains(&head) {
            return;
        }
        let index = *self.by_name.entry(head).or_insert_with(|| {
            self.variables.push(Usage { name: head, first: self.now, ..Usage::default() });
            self.variables.len() - 1
        });
        let usage = &mut self.variables[index];
        usage.first = usage.first.min(self.now);
        usage.last = usage.last.max(self.now);
        usage.loops.extend(&self.loops);
        // A list and a text have a length, other paths lead into something else.
        usage.is_other |= path.is_some_and(|path| path != "length");
        note(usage, path.is_none());
    }

    /// Finds the steps whose texts name a variable outside of slots.
    fn find_namers(&mut self) {
        for (index, visit) in self.visits.iter().enumerate() {
            let mut words = HashSet::new();
            for text in visit.step.guidance.iter().chain([&visit.step.prompt]) {
                add_words(text, &mut words);
            }
            for word in words {
                if let Some(variable) = self.by_name.get(word) {
                    self.variables[*variable].namers.push(index);
                }
            }
        }
    }

    /// The one step that should report a variable.
    fn reporter(&self, usage: &Usage<'_>) -> Option<&Visit<'w>> {
        match usage.namers.as_slice() {
            [only] => {
                let visit = &self.visits[*only];
                let is_used = usage.last > visit.order || !usage.loops.is_disjoint(&visit.loops);
                is_used.then_some(visit)
            }
            [] => {
                let mut before = self.visits.iter().filter(|visit| visit.order < usage.first);
                let only = before.next()?;
                before.next().is_none().then_some(only)
            }
            _ => None,
        }
    }

    fn into_reports(self) -> DerivedReports {
        let mut reports = DerivedReports::default();
        let mut by_step: HashMap<Box<str>, Vec<DerivedVariable>> = HashMap::new();
        for usage in &self.variables {
            let variable = usage.derive();
            if let Some(visit) = self.reporter(usage) {
                by_step.entry(visit.step.id.clone()).or_default().push(variable.clone());
            }
            reports.by_name.insert(variable.name.clone(), reports.variables.len());
            reports.variables.push(variable);
        }
        let by_step = by_step.into_iter().map(|(step, variables)| (step, variables.into()));
        reports.by_step = by_step.collect();
        reports
    }
}

impl<'w> Usage<'w> {
    fn compare(&mut self, clause: &'w Clause) {
        match clause {
            Clause::Equals(value) | Clause::NotEquals(value) => self.compare_value(value),
            Clause::In(values) => values.iter().for_each(|value| self.compare_value(value)),
            Clause::Gt(_) | Clause::Gte(_) | Clause::Lt(_) | Clause::Lte(_) => {
                self.is_number = true
            }
            // It holds for a text and for a list.
            Clause::Contains(_) => self.is_shown = true,
            Clause::And(_) | Clause::Or(_) | Clause::Not(_) => {}
        }
    }

    fn compare_value(&mut self, value: &'w Value) {
        match value {
            Value::Bool(_) => self.is_compared_to_boolean = true,
            Value::Number(_) => self.is_number = true,
            Value::Array(_) => self.is_list = true,
            // It says whether there is a value, not which.
            Value::Null => return self.is_shown = true,
            Value::String(_) | Value::Object(_) => self.is_other = true,
        }
        if self.values.len() < VALUES_MAX && !self.values.contains(&value) {
            self.values.push(value);
        }
    }

    fn derive(&self) -> DerivedVariable {
        let seen = (self.is_compared_to_boolean, self.is_number, self.is_list, self.is_other);
        let kind = match seen {
            (true, false, false, false) => DerivedKind::Flag,
            (false, true, false, false) => DerivedKind::Number,
            // A path into it may lead to an item.
            (false, false, true, _) => DerivedKind::List,
            // A text that is shown is tested for truth too.
            (false, false, false, false) if self.is_tested && !self.is_shown => DerivedKind::Flag,
            _ => DerivedKind::Any,
        };
        let values = self.values.iter().map(|value| (*value).clone()).collect();
        DerivedVariable { name: self.name.into(), values, kind }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workflow(steps: Value) -> Workflow {
        let definition = json!({
            "id": "mend-it", "name": "N", "description": "D", "version": "1.0.0", "steps": steps,
        });
        serde_json::from_value(definition).unwrap()
    }

    fn step(id: &str, prompt: &str, more: Value) -> Value {
        let mut step = json!({"id": id, "title": "T", "prompt": prompt});
        step.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        step
    }

    fn told(workflow: &Workflow, id: &str) -> Vec<(String, DerivedKind, Vec<Value>)> {
        let variables = workflow.derived_reports().for_step(id).iter();
        variables.map(|it| (it.name.to_string(), it.kind, it.values.clone())).collect()
    }

    #[test]
    fn one_step_names_the_variable() {
        let workflow = workflow(json!([
            step(
                "understand",
                "Set in the context:\n- `taskId`: a ticket\n- `taskSize`: small or large",
                json!({
                    "validationCriteria": {
                        "type": "contains", "value": "x", "message": "M", "condition": {"var": "taskId"},
                    },
                })
            ),
            step(
                "plan-it",
                "Plan {{taskId}}.",
                json!({
                    "requireConfirmation": {"var": "taskSize", "not_equals": "small"},
                })
            ),
            step(
                "review",
                "Review.",
                json!({
                    "runCondition": {"var": "taskSize", "in": ["medium", "large", "small"]},
                })
            ),
        ]));
        let sizes = vec![json!("small"), json!("medium"), json!("large")];
        assert_eq!(
            told(&workflow, "understand"),
            [
                ("taskId".to_owned(), DerivedKind::Any, vec![]),
                ("taskSize".to_owned(), DerivedKind::Any, sizes),
            ]
        );
        assert!(told(&workflow, "plan-it").is_empty());
        assert_eq!(workflow.derived_reports().names().collect::<Vec<_>>(), ["taskId", "taskSize"]);
    }

    #[test]
    fn several_steps_name_the_variable() {
        let workflow = workflow(json!([
            step("verify", "Set `openProblems` in the context.", json!({})),
            {
                "id": "repair", "type": "loop", "title": "T", "body": "repair-round",
                "loop": {
                    "type": "while", "maxIterations": 5,
                    "condition": {"not": {"var": "openProblems", "equals": 0}},
                },
            },
            step("repair-round", "{{currentIteration}}: set `openProblems` in the context.", json!({})),
        ]));
        assert!(told(&workflow, "verify").is_empty() && told(&workflow, "repair-round").is_empty());
        let variable = workflow.derived_reports().get("openProblems").unwrap();
        assert_eq!((variable.kind, &*variable.values), (DerivedKind::Number, &[json!(0)][..]));
        assert_eq!(workflow.derived_reports().get("currentIteration"), None);
    }

    #[test]
    fn step_in_the_loop_that_uses_the_variable() {
        let workflow = workflow(json!([
            {
                "id": "clear-findings", "type": "loop", "title": "T", "body": "validate-file",
                "loop": {
                    "type": "until", "maxIterations": 5,
                    "condition": {"var": "findingCount", "equals": 0},
                },
            },
            step("validate-file", "Run {{currentIteration}}. Set `findingCount` in the context.", json!({})),
        ]));
        let expected = ("findingCount".to_owned(), DerivedKind::Number, vec![json!(0)]);
        assert_eq!(told(&workflow, "validate-file"), [expected]);
    }

    #[test]
    fn no_step_names_the_variable() {
        let steps = |first: Value| {
            json!([
                first,
                step("fix-it", "Fix it.", json!({"runCondition": {"var": "fixRequested"}})),
                step("after-it", "Then {{other.name}}.", json!({})),
                {
                    "id": "each-file", "type": "loop", "title": "T",
                    "loop": {"type": "forEach", "items": "files", "maxIterations": 5},
                    "body": [step("look-at", "Look at {{currentItem}} of {{files.length}}.", json!({}))],
                },
            ])
        };
        let workflow = workflow(steps(step("find-it", "Find it.", json!({}))));
        let expected = ("fixRequested".to_owned(), DerivedKind::Flag, vec![]);
        assert_eq!(told(&workflow, "find-it"), [expected]);
        let reports = workflow.derived_reports();
        assert_eq!(reports.names().collect::<Vec<_>>(), ["fixRequested", "other", "files"]);
        assert_eq!(reports.get("files").unwrap().kind, DerivedKind::List);
        assert_eq!(reports.get("other").unwrap().kind, DerivedKind::Any);
    }

    #[test]
    fn gate_of_the_only_step_depends_on_what_it_reports() {
        let workflow = workflow(json!([step(
            "publish",
            "Publish.",
            json!({"requireConfirmation": {"var": "risky", "equals": true}})
        ),]));
        let expected = ("risky".to_owned(), DerivedKind::Flag, vec![json!(true)]);
        assert_eq!(told(&workflow, "publish"), [expected]);
    }

    #[test]
    fn workflow_with_declarations_derives_nothing() {
        let mut workflow = workflow(json!([
            step("first-step", "Set `a`.", json!({})),
            step("second-step", "P", json!({"runCondition": {"var": "a"}})),
        ]));
        assert_eq!(told(&workflow, "first-step").len(), 1);
        workflow = serde_json::from_value({
            let mut written = serde_json::to_value(&workflow).unwrap();
            written["variables"] = json!({"a": {"type": "boolean"}});
            written
        })
        .unwrap();
        assert!(workflow.derived_reports().names().next().is_none());
    }
}
