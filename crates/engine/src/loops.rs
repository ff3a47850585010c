//! Where a running loop stands. In the stateless answer this travels with the agent: the answer
//! carries it as `state`, the agent returns it in the context. A step that is handed out counts as
//! done in the state that goes with it, so an agent that returns what it was given moves on, and
//! one that asks again with what it had before gets the same step again.

use std::collections::BTreeMap;

use budget::{Budget, Exhausted};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use workflow::definition::{Count, Loop, LoopKind, LoopStep, Step, index_name, item_name};
use workflow::{Context, Variables, Workflow};

use crate::refusal::Refusal;

/// The context key under which loop progress travels.
pub(crate) const KEY: &str = "_loops";

/// The progress of every loop that has started and is not yet reported as completed. A loop inside
/// another is in here while it runs; once it has ended, the outer one counts it as done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoopState {
    #[serde(rename = "_loops", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, LoopProgress>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with the loop's progress")]
pub struct LoopProgress {
    /// The iteration that runs, from 1.
    #[serde(deserialize_with = "whole")]
    pub iteration: u32,
    /// The steps of the body that are done in this iteration.
    #[serde(default)]
    pub done: Vec<String>,
    /// `forEach`: the items as they were when the loop started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<Value>>,
    /// `for` with a variable: the count as it was when the loop started.
    #[serde(default, deserialize_with = "whole_if_any", skip_serializing_if = "Option::is_none")]
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
    /// The progress that a context carries. Refused where it is not one of ours.
    pub(crate) fn of(
        workflow: &Workflow,
        context: &Context,
        budget: &Budget,
    ) -> Result<Self, Refusal> {
        let mut state = Self::default();
        let entries = match context.get(KEY) {
            None => return Ok(state),
            Some(Value::Object(entries)) => entries,
            Some(_) => return Err(bad_state(format!("`{KEY}` in the context is not an object"))),
        };
        for (id, entry) in entries {
            let Some(Step::Loop(step)) = workflow.step(id) else {
                return Err(bad_state(format!(
                    "`{KEY}` names `{id}`, which is no loop of the workflow"
                )));
            };
            let progress = LoopProgress::deserialize(entry).map_err(|error| {
                bad_state(format!("`{KEY}` says about loop `{id}` what cannot be read: {error}"))
            })?;
            budget.spend_value(entry).map_err(in_progress(id))?;
            progress.check_in(workflow, step, budget)?;
            state.loops.insert(id.clone(), progress);
        }
        Ok(state)
    }

    /// Refuses progress that no loop of the workflow can have made.
    pub(crate) fn check(&self, workflow: &Workflow, budget: &Budget) -> Result<(), Refusal> {
        for (id, progress) in &self.loops {
            let Some(Step::Loop(step)) = workflow.step(id) else {
                return Err(bad_state(format!(
                    "`{KEY}` names `{id}`, which is no loop of the workflow"
                )));
            };
            progress.check_in(workflow, step, budget)?;
        }
        Ok(())
    }

    /// Forgets the loops among these steps and inside them: they start anew in each iteration of the
    /// loop around them, whatever an agent has kept of them. Says how many steps it looked at.
    pub(crate) fn forget(&mut self, workflow: &Workflow, steps: &[Step]) -> usize {
        let mut looked_at = 0;
        if !self.loops.is_empty() {
            workflow.each_inside(steps, &mut |step| {
                looked_at += 1;
                self.loops.remove(step.id());
            });
        }
        looked_at
    }

    /// Takes out the loops of a body that have ended: the loop around them counts them as done, like
    /// any other step, and the agent has nothing to report.
    pub(crate) fn take_ended(&mut self, body: &[Step]) -> impl Iterator<Item = String> {
        body.iter().filter_map(|step| {
            self.loops.get(step.id()).filter(|progress| progress.ended)?;
            self.loops.remove_entry(step.id()).map(|(id, _)| id)
        })
    }

    /// Drops a loop that the agent reports as completed, and what runs inside if it was cut short.
    pub(crate) fn drop_reported(&mut self, workflow: &Workflow, step: &Step) {
        let dropped = self.loops.remove(step.id());
        if let Step::Loop(step) = step
            && dropped.is_some_and(|progress| !progress.ended)
        {
            self.forget(workflow, workflow.body(step));
        }
    }
}

/// What a loop goes through, or what is said about it, is too much.
pub(crate) fn in_progress(id: &str) -> impl FnOnce(Exhausted) -> Refusal {
    Refusal::exhausted(id, "the progress")
}

fn bad_state(details: String) -> Refusal {
    Refusal::BadState { details }
}

impl LoopProgress {
    /// The same as [`Self::check`], and that the steps that are done belong to the body.
    fn check_in(
        &self,
        workflow: &Workflow,
        step: &LoopStep,
        budget: &Budget,
    ) -> Result<(), Refusal> {
        self.check(step)?;
        let (id, inner) = (&step.id, workflow.body(step));
        let compared = self.done.len().saturating_mul(inner.len()) as u64;
        budget.spend(compared).map_err(in_progress(id))?;
        let is_strange = |done: &&String| !inner.iter().any(|step| step.id() == **done);
        match self.done.iter().find(is_strange) {
            None => Ok(()),
            Some(strange) => Err(bad_state(format!(
                "`{KEY}` says that loop `{id}` has done `{strange}`, which is no step of its body"
            ))),
        }
    }

    /// Refuses to let a loop stand where it cannot.
    fn check(&self, step: &LoopStep) -> Result<(), Refusal> {
        let bound = step.r#loop.max_iterations;
        let most = match self.total(&step.r#loop) {
            Some(total) if !self.ended => total.min(bound),
            _ => bound,
        };
        let problem = match self.iteration {
            0 => "iteration 0, but iterations count from 1".to_owned(),
            beyond if beyond > most => format!("iteration {beyond} of at most {most}"),
            _ => return Ok(()),
        };
        let id = &step.id;
        Err(bad_state(format!("`{KEY}` says about loop `{id}` what cannot be: {problem}")))
    }

    /// A running loop whose progress came back without its items or its count: the context may still
    /// have them. Where it has not, nobody knows any more what the loop was at.
    pub(crate) fn resume(
        self,
        step: &LoopStep,
        variables: &Variables<'_, '_>,
    ) -> Result<Self, Refusal> {
        let settings = &step.r#loop;
        let is_whole = match &settings.kind {
            LoopKind::ForEach { .. } => self.items.is_some(),
            LoopKind::For { count: Count::Variable(_) } => self.count.is_some(),
            LoopKind::For { .. } | LoopKind::While { .. } | LoopKind::Until { .. } => true,
        };
        if is_whole {
            return Ok(self);
        }
        let field = match &settings.kind {
            LoopKind::ForEach { .. } => "items",
            _ => "count",
        };
        let started = Self::start(step, variables)?;
        let Self { items, count, .. } = started.map_err(|lacking| {
            bad_state(format!(
                "loop `{}` is running, but `{KEY}` lacks its `{field}`, and the context has no {} `{}`",
                step.id, lacking.wanted, lacking.variable
            ))
        })?;
        let resumed = Self { items, count, ..self };
        resumed.check(step)?;
        Ok(resumed)
    }

    /// A loop about to start: what it goes through is fixed now.
    pub(crate) fn start(
        step: &LoopStep,
        variables: &Variables<'_, '_>,
    ) -> Result<Result<Self, Lacking>, Refusal> {
        let mut progress = Self::default();
        match &step.r#loop.kind {
            LoopKind::ForEach { items, .. } => {
                let value = variables.get(items).map_err(in_progress(&step.id))?;
                match value.as_deref() {
                    Some(list @ Value::Array(values)) => {
                        variables.budget().spend_value(list).map_err(in_progress(&step.id))?;
                        progress.items = Some(values.clone());
                    }
                    _ => return Ok(Err(Lacking { variable: items.clone(), wanted: "list" })),
                }
            }
            LoopKind::For { count: Count::Variable(name) } => {
                let value = variables.get(name).map_err(in_progress(&step.id))?;
                match value.as_deref().and_then(Value::as_f64) {
                    // Saturates: a count beyond the bound is cut short there.
                    Some(count) => progress.count = Some(count.floor() as u32),
                    None => return Ok(Err(Lacking { variable: name.clone(), wanted: "number" })),
                }
            }
            LoopKind::For { .. } | LoopKind::While { .. } | LoopKind::Until { .. } => {}
        }
        Ok(Ok(progress))
    }

    /// How many iterations there will be, where that is known before.
    pub(crate) fn total(&self, settings: &Loop) -> Option<u32> {
        match &settings.kind {
            LoopKind::For { count: Count::Number(count) } => Some(*count),
            LoopKind::For { count: Count::Variable(_) } => self.count,
            LoopKind::ForEach { .. } => {
                let items = self.items.as_ref()?.len();
                Some(u32::try_from(items).unwrap_or(u32::MAX))
            }
            LoopKind::While { .. } | LoopKind::Until { .. } => None,
        }
    }

    /// Whether the loop wants another iteration, its bound aside. A condition may look at the number
    /// of the iteration that would begin. Before the first one it does not see the loop's results.
    pub(crate) fn wants_more<'a>(
        &self,
        workflow: &'a Workflow,
        step: &'a LoopStep,
        enclosing: Option<&'a LoopStep>,
        variables: &mut Variables<'a, '_>,
    ) -> Result<bool, Refusal> {
        let settings = &step.r#loop;
        let upcoming = self.iteration + 1;
        let (condition, wanted) = match &settings.kind {
            LoopKind::While { condition } => (condition, true),
            LoopKind::Until { condition } => (condition, false),
            LoopKind::For { .. } | LoopKind::ForEach { .. } => {
                return Ok(self.total(settings).is_some_and(|total| upcoming <= total));
            }
        };
        let depth = variables.depth();
        if self.iteration == 0 {
            let results = workflow.loop_results(step, enclosing, variables.budget());
            for name in results.map_err(in_progress(&step.id))? {
                if !variables.is_bound(name) {
                    variables.hide(name);
                }
            }
        }
        variables.bind(settings.iteration_var(), upcoming.into());
        let holds = condition.holds(variables);
        variables.unbind(depth);
        Ok(holds.map_err(Refusal::exhausted(&step.id, "the condition"))? == wanted)
    }

    /// Binds the loop's variables for its current iteration.
    pub(crate) fn bind<'a>(
        &self,
        step: &'a LoopStep,
        variables: &mut Variables<'a, '_>,
    ) -> Result<(), Refusal> {
        let settings = &step.r#loop;
        variables.bind(settings.iteration_var(), self.iteration.into());
        if let LoopKind::ForEach { item_var, index_var, .. } = &settings.kind {
            let index = self.iteration.saturating_sub(1);
            let items = self.items.as_deref().unwrap_or_default();
            let item = items.get(index as usize);
            if let Some(item) = item {
                variables.budget().spend_value(item).map_err(in_progress(&step.id))?;
            }
            variables.bind(item_name(item_var), item.cloned().unwrap_or_default());
            variables.bind(index_name(index_var), index.into());
        }
        Ok(())
    }
}

fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    // Some clients write every number with a fraction.
    let float = value.as_f64().filter(|float| float.fract() == 0.0);
    let float = float.filter(|float| (0.0..=f64::from(u32::MAX)).contains(float));
    number.or(float.map(|float| float as u32)).ok_or_else(|| {
        let found = match &value {
            Value::Number(number) if value.as_f64() > Some(f64::from(u32::MAX)) => {
                return de::Error::custom(format!("{number} is too large a number"));
            }
            Value::Number(number) => number.to_string(),
            Value::String(_) => "a text".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
            Value::Bool(_) | Value::Null => value.to_string(),
        };
        de::Error::custom(format!("{found} instead of a whole number"))
    })
}

fn whole_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    value.map(|value| whole(value).map_err(de::Error::custom)).transpose()
}
