//! Where a running loop stands. In the stateless answer this travels with the agent: the answer
//! carries it as `state`, the agent returns it in the context. A step that is handed out counts as
//! done in the state that goes with it, so an agent that returns what it was given moves on, and
//! one that asks again with what it had before gets the same step again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workflow::definition::{Count, Loop, LoopKind, Step, index_name, item_name};
use workflow::{Context, Variables, Workflow};

use crate::refusal::Refusal;

/// The context key under which loop progress travels.
const KEY: &str = "_loops";

/// The progress of every loop that has started and is not yet reported as completed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopState {
    #[serde(rename = "_loops")]
    pub loops: BTreeMap<String, LoopProgress>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopProgress {
    /// The iteration that runs, from 1.
    pub iteration: u32,
    /// The steps of the body that are done in this iteration.
    #[serde(default)]
    pub done: Vec<String>,
    /// `forEach`: the items as they were when the loop started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Value>>,
    /// `for` with a variable: the count as it was when the loop started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The loop has ended, and the agent has not yet reported it as completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// A loop that cannot start: the context lacks what it counts or goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lacking {
    pub(crate) variable: Box<str>,
    pub(crate) wanted: &'static str,
}

impl LoopState {
    /// The progress that a context carries, if any. Refused where it is not one of ours.
    pub(crate) fn of(workflow: &Workflow, context: &Context) -> Result<Option<Self>, Refusal> {
        let Some(value) = context.get(KEY) else {
            return Ok(None);
        };
        let loops: BTreeMap<String, LoopProgress> =
            Deserialize::deserialize(value).map_err(|error| {
                bad_state(format!("`{KEY}` in the context cannot be read: {error}"))
            })?;
        for (id, progress) in &loops {
            let Some(Step::Loop(step)) = workflow.step(id) else {
                return Err(bad_state(format!(
                    "`{KEY}` names `{id}`, which is no loop of the workflow"
                )));
            };
            let bound = step.r#loop.max_iterations;
            if !(1..=bound).contains(&progress.iteration) {
                let details = format!(
                    "`{KEY}` says that loop `{id}` is in iteration {}, but it has 1 to {bound}",
                    progress.iteration
                );
                return Err(bad_state(details));
            }
            if let Some(unknown) = progress.done.iter().find(|step| workflow.step(step).is_none()) {
                let details =
                    format!("`{KEY}` says that loop `{id}` has done `{unknown}`, which is no step");
                return Err(bad_state(details));
            }
            let lacks_items = matches!(step.r#loop.kind, LoopKind::ForEach { .. })
                && !progress.ended
                && progress.items.is_none();
            if lacks_items {
                return Err(bad_state(format!("`{KEY}` lacks the items of loop `{id}`")));
            }
        }
        Ok(Some(Self { loops }))
    }
}

fn bad_state(details: String) -> Refusal {
    Refusal::BadState { details }
}

impl LoopProgress {
    /// A loop about to start: what it goes through is fixed now.
    pub(crate) fn start(settings: &Loop, variables: &Variables<'_>) -> Result<Self, Lacking> {
        let mut progress = Self::default();
        match &settings.kind {
            LoopKind::ForEach { items, .. } => match variables.get(items).as_deref() {
                Some(Value::Array(values)) => progress.items = Some(values.clone()),
                _ => return Err(Lacking { variable: items.clone(), wanted: "list" }),
            },
            LoopKind::For { count: Count::Variable(name) } => {
                let value = variables.get(name);
                match value.as_deref().and_then(Value::as_f64) {
                    // Saturates: a count beyond the bound is cut short there.
                    Some(count) => progress.count = Some(count.floor() as u32),
                    None => return Err(Lacking { variable: name.clone(), wanted: "number" }),
                }
            }
            LoopKind::For { .. } | LoopKind::While { .. } | LoopKind::Until { .. } => {}
        }
        Ok(progress)
    }

    /// How many iterations there will be, where that is known before.
    pub(crate) fn total(&self, settings: &Loop) -> Option<u32> {
        match &settings.kind {
            LoopKind::For { count: Count::Number(count) } => Some(*count),
            LoopKind::For { count: Count::Variable(_) } => self.count,
            LoopKind::ForEach { .. } => {
                let items = self.items.as_ref().map_or(0, Vec::len);
                Some(u32::try_from(items).unwrap_or(u32::MAX))
            }
            LoopKind::While { .. } | LoopKind::Until { .. } => None,
        }
    }

    /// Whether the loop wants another iteration, its bound aside. A condition may look at the number
    /// of the iteration that would begin.
    pub(crate) fn wants_more<'a>(&self, settings: &'a Loop, variables: &mut Variables<'a>) -> bool {
        let upcoming = self.iteration + 1;
        let (condition, wanted) = match &settings.kind {
            LoopKind::While { condition } => (condition, true),
            LoopKind::Until { condition } => (condition, false),
            LoopKind::For { .. } | LoopKind::ForEach { .. } => {
                return self.total(settings).is_some_and(|total| upcoming <= total);
            }
        };
        let depth = variables.depth();
        variables.bind(settings.iteration_var(), upcoming.into());
        let holds = condition.holds(variables);
        variables.unbind(depth);
        holds == wanted
    }

    /// Binds the loop's variables for its current iteration.
    pub(crate) fn bind<'a>(&self, settings: &'a Loop, variables: &mut Variables<'a>) {
        variables.bind(settings.iteration_var(), self.iteration.into());
        if let LoopKind::ForEach { item_var, index_var, .. } = &settings.kind {
            let index = self.iteration.saturating_sub(1);
            let items = self.items.as_deref().unwrap_or_default();
            let item = items.get(index as usize).cloned().unwrap_or_default();
            variables.bind(item_name(item_var), item);
            variables.bind(index_name(index_var), index.into());
        }
    }
}
