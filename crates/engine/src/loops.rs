//! Where a running loop stands. In the stateless answer this travels with the agent: the answer
//! carries it as `state`, the agent returns it in the context. A step that is handed out counts as
//! done in the state that goes with it, so an agent that returns what it was given moves on, and
//! one that asks again with what it had before gets the same step again.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use workflow::definition::{Body, Count, Loop, LoopKind, LoopStep, Step, index_name, item_name};
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
    pub(crate) fn of(workflow: &Workflow, context: &Context) -> Result<Self, Refusal> {
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
            progress.check(step)?;
            let inner = body(workflow, step);
            let is_strange = |done: &&String| !inner.iter().any(|step| step.id() == **done);
            if let Some(strange) = progress.done.iter().find(is_strange) {
                return Err(bad_state(format!(
                    "`{KEY}` says that loop `{id}` has done `{strange}`, which is no step of its body"
                )));
            }
            state.loops.insert(id.clone(), progress);
        }
        Ok(state)
    }

    /// Forgets the loops among these steps and inside them: they start anew in each iteration of the
    /// loop around them, whatever an agent has kept of them.
    pub(crate) fn forget(&mut self, workflow: &Workflow, steps: &[Step]) {
        if !self.loops.is_empty() {
            each_inside(workflow, steps, &mut |step| drop(self.loops.remove(step.id())));
        }
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
            self.forget(workflow, body(workflow, step));
        }
    }
}

fn bad_state(details: String) -> Refusal {
    Refusal::BadState { details }
}

impl LoopProgress {
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
        variables: &Variables<'_>,
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
        let Self { items, count, .. } = Self::start(settings, variables).map_err(|lacking| {
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
                let items = self.items.as_ref()?.len();
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

/// The steps of a loop's body, wherever they are written.
pub(crate) fn body<'a>(workflow: &'a Workflow, step: &'a LoopStep) -> &'a [Step] {
    match &step.body {
        Body::Steps(steps) => steps,
        Body::Named(id) => {
            let named = workflow.steps.iter().find(|step| step.id() == &**id);
            named.map(std::slice::from_ref).unwrap_or_default()
        }
    }
}

/// Every step that runs inside these, and they themselves, each once: loops can share a body, and the
/// ways down to it can be too many to go.
pub(crate) fn each_inside<'a>(
    workflow: &'a Workflow,
    steps: &'a [Step],
    visit: &mut dyn FnMut(&'a Step),
) {
    let mut seen = HashSet::new();
    let mut open: Vec<&[Step]> = vec![steps];
    while let Some(steps) = open.pop() {
        for step in steps {
            if seen.insert(step.id()) {
                visit(step);
                if let Step::Loop(inner) = step {
                    open.push(body(workflow, inner));
                }
            }
        }
    }
}
