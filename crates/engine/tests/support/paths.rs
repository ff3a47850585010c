//! Every path through a workflow: contexts that between them make each of its conditions come out
//! each way, lists and counts of several lengths, variables that change while a loop runs, and an
//! agent that walks them to the end.

use std::collections::BTreeMap;

use engine::{Budget, Progress, next};
use serde_json::{Map, Value, json};
use workflow::condition::Clause;
use workflow::definition::{Confirmation, Count, LoopKind, LoopStep, Step, item_name};
use workflow::template::{Piece, pieces, slot};
use workflow::{Condition, Context, Workflow};

/// More combinations of values than this are not tried, but this many of them, spread evenly.
const CONTEXTS_MAX: usize = 1_000;
/// The same for contexts that change on the way, for each change.
const CHANGING_CONTEXTS_MAX: usize = 100;
/// No walk takes this many steps: beyond, it does not end.
const STEPS_MAX: usize = 1_000;

/// A variable that takes a value, or goes, in some iteration of a loop.
#[derive(Debug)]
struct Change<'w> {
    of: &'w LoopStep,
    iteration: u32,
    variable: &'w str,
    value: Option<Value>,
}

/// A step that was handed out, with what the agent should read.
pub(crate) struct Given {
    pub(crate) id: String,
    pub(crate) prompt: String,
}

/// Walks every path to its end and returns what was handed out, over all of them.
pub(crate) fn walk_all(workflow: &Workflow) -> Vec<Given> {
    let mut all = Vec::new();
    for context in contexts(workflow, CONTEXTS_MAX) {
        all.extend(walk(workflow, context, None));
    }
    for change in changes(workflow) {
        for context in contexts(workflow, CHANGING_CONTEXTS_MAX) {
            all.extend(walk(workflow, context, Some(&change)));
        }
    }
    all
}

/// Walks to the end, returning what it is given.
fn walk(workflow: &Workflow, start: Context, change: Option<&Change<'_>>) -> Vec<Given> {
    let mut context = start.clone();
    let mut completed: Vec<String> = Vec::new();
    let mut walked = Vec::new();
    while walked.len() < STEPS_MAX {
        let progress = Progress { completed: &completed, current: None, context: &context };
        let answer = next(workflow, progress, &Budget::for_call())
            .unwrap_or_else(|refusal| panic!("{refusal} from {start:?} with {change:?}"));
        let Some(step) = answer.step else {
            return walked;
        };
        let given = Given { id: step.id.to_owned(), prompt: answer.guidance.prompt };
        let loops = answer.state.map(|state| state.loops).unwrap_or_default();
        if loops.values().all(|progress| progress.done.last() != Some(&given.id)) {
            completed.push(given.id.clone());
        }
        walked.push(given);
        completed.extend(loops.iter().filter(|(_, p)| p.ended).map(|(id, _)| id.clone()));
        context.insert("_loops".to_owned(), json!(loops));
        if let Some(Change { of, iteration, variable, value }) = change
            && loops.get(&*of.id).is_some_and(|progress| progress.iteration == *iteration)
        {
            match value {
                Some(value) => drop(context.insert((*variable).to_owned(), value.clone())),
                None => drop(context.remove(*variable)),
            }
        }
    }
    panic!("no end after {STEPS_MAX} steps from {start:?} with {change:?}");
}

/// An empty context, and every combination of the values that matter, or `most` of them.
fn contexts(workflow: &Workflow, most: usize) -> impl Iterator<Item = Context> {
    /// Prime, and so without a common divisor with the number of combinations.
    const STRIDE: usize = 1_000_003;
    let values = telling_values(workflow);
    let combinations: usize = values.values().map(Vec::len).product();
    let combined = (0..combinations.min(most)).map(move |at| {
        let mut at = if combinations > most { at * STRIDE % combinations } else { at };
        let mut context = Context::new();
        for (name, values) in &values {
            let value = values[at % values.len()].clone();
            at /= values.len();
            context.extend(value.map(|value| (name.clone(), value)));
        }
        context
    });
    std::iter::once(Context::new()).chain(combined)
}

/// For every variable that decides where the path goes, the values to try.
fn telling_values(workflow: &Workflow) -> BTreeMap<String, Vec<Option<Value>>> {
    // All conditions at once, so that bounds on the same variable are told apart.
    let mut conditions = Vec::new();
    workflow.each_step(&mut |step| conditions.extend(conditions_of(step).into_iter().cloned()));
    let everything = Condition { var: None, clauses: Box::new([Clause::And(conditions)]) };
    let told = everything.telling_values().into_iter();
    let mut told: BTreeMap<String, Vec<Option<Value>>> =
        told.map(|(name, values)| (name.to_owned(), values)).collect();
    for step in loops(workflow) {
        let (name, values) = match &step.r#loop.kind {
            LoopKind::ForEach { items, item_var, .. } => {
                let item = |at| item(workflow, item_name(item_var), at);
                let lists = [vec![], vec![item(1)], vec![item(1), item(2)]];
                (items, lists.map(Value::from))
            }
            LoopKind::For { count: Count::Variable(name) } => (name, [0, 1, 2].map(Value::from)),
            _ => continue,
        };
        let known = told.entry(name.to_string()).or_insert_with(|| vec![None]);
        known.extend(values.map(Some));
    }
    told
}

/// What happens to the variables of a loop's condition while it runs.
fn changes(workflow: &Workflow) -> Vec<Change<'_>> {
    let mut changes = Vec::new();
    for of in loops(workflow) {
        if let LoopKind::While { condition } | LoopKind::Until { condition } = &of.r#loop.kind {
            for (variable, values) in condition.telling_values() {
                for value in values {
                    let at = |iteration| Change { of, iteration, variable, value: value.clone() };
                    changes.extend([at(1), at(2)]);
                }
            }
        }
    }
    changes
}

/// An item with every field that some text asks of it, or a plain text.
fn item(workflow: &Workflow, name: &str, at: usize) -> Value {
    let mut fields = Map::new();
    workflow.each_step(&mut |step| {
        let Step::Plain(step) = step else {
            return;
        };
        let texts = step.guidance.iter().chain(&step.agent_role).chain([&step.prompt]);
        for piece in texts.flat_map(|text| pieces(text)) {
            if let Piece::Slot { inner, .. } = piece
                && let Some(field) = slot(inner).and_then(|slot| slot.name.strip_prefix(name))
                && let Some(field) = field.strip_prefix('.')
            {
                fields.insert(field.to_owned(), json!(format!("{field} {at}")));
            }
        }
    });
    if fields.is_empty() { json!(format!("item {at}")) } else { Value::Object(fields) }
}

pub(crate) fn loops(workflow: &Workflow) -> Vec<&LoopStep> {
    let mut loops = Vec::new();
    workflow.each_step(&mut |step| {
        if let Step::Loop(step) = step {
            loops.push(&**step);
        }
    });
    loops
}

fn conditions_of(step: &Step) -> Vec<&Condition> {
    let mut conditions: Vec<&Condition> = step.run_condition().into_iter().collect();
    if let Some(Confirmation::Where(condition)) = step.require_confirmation() {
        conditions.push(condition);
    }
    match step {
        Step::Plain(step) => {
            if let Some(criteria) = &step.validation_criteria {
                criteria.each_rule(&mut |rule| conditions.extend(&rule.condition));
            }
        }
        Step::Loop(step) => {
            if let LoopKind::While { condition } | LoopKind::Until { condition } = &step.r#loop.kind
            {
                conditions.push(condition);
            }
        }
    }
    conditions
}
