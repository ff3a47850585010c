//! What a caller may see of a session: where it stands and what to do now. Steps that come later are not
//! shown, neither their ids nor their titles nor their prompts.

use std::borrow::Cow;

use budget::Budget;
use serde::Serialize;
use workflow::template::{Outputs, Piece, fill, pieces, slot};
use workflow::{Step, Variables, Workflow};

use crate::check::variables_at;
use crate::decide::current;
use crate::guidance::{Guidance, Opening, opening};
use crate::loops::LoopState;
use crate::next::{Next, StepView};
use crate::refusal::{Refusal, loops_text};
use crate::reports::has_reports;
use crate::state::{Pending, State};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View<'a> {
    pub workflow_id: &'a str,
    pub revision: u64,
    pub is_complete: bool,
    /// What the workflow says before its first step, if it was asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub opening: String,
    /// None where the session is complete, or waits before a loop.
    pub step: Option<StepView<'a>>,
    pub guidance: Guidance<'a>,
    /// The step asks for variables.
    #[serde(skip)]
    pub has_reports: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting<'a>>,
}

/// A person has to confirm what was handed in, or approve that a loop begins.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting<'a> {
    /// The step, or the outermost of the loops.
    pub step_id: &'a str,
    pub reason: &'static str,
    /// Of the log, where somebody knows it: a decision names what it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The loops that begin once a person approves.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub loops: &'a [String],
    /// A person has rejected the loops, and nobody has approved them since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejection<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rejection<'a> {
    pub by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

/// Why a session waits.
const OUTPUT_REASON: &str = "a person has to confirm the output of this step";
const LOOP_REASON: &str = "a person has to approve this loop before it begins";

/// What looking at a session may take.
pub const VIEW_STEPS_MAX: u64 = 4_000_000;

pub fn view<'a>(
    workflow: &'a Workflow,
    state: &'a State,
    detail: Opening,
    outputs: &dyn Outputs,
    budget: &Budget,
) -> Result<View<'a>, Refusal> {
    let (workflow_id, revision) = (&*state.workflow_id, state.revision);
    let mut found = current(workflow, state, budget)?;
    let opening = match detail {
        Opening::Full | Opening::Terminal if found.step.is_some() => opening(workflow, detail),
        _ => String::new(),
    };
    let mut view = View {
        workflow_id,
        revision,
        is_complete: found.step.is_none(),
        opening,
        step: None,
        guidance: Guidance::default(),
        has_reports: found.step.is_some_and(|step| has_reports(workflow, step)),
        waiting: None,
    };
    if let Some(pending) = state.pending() {
        view.guidance.requires_confirmation = true;
        view.waiting = Some(Waiting::of(pending));
        // A step behind the gate of a loop is not handed out yet.
        if matches!(pending, Pending::Loops(_)) {
            return Ok(view);
        }
    }
    if state.references_outputs {
        found.variables = found.variables.with_outputs(workflow, outputs);
    }
    let Next { step, guidance, .. } = found.next(workflow, detail)?;
    view.guidance = guidance;
    view.guidance.requires_confirmation |=
        step.as_ref().is_some_and(|step| state.gated.iter().any(|gated| gated == step.id));
    view.step = step;
    Ok(view)
}

impl<'a> Waiting<'a> {
    fn of(pending: Pending<'a>) -> Self {
        let (reason, gate) = match pending {
            Pending::Output(_) => (OUTPUT_REASON, None),
            Pending::Loops(gate) => (LOOP_REASON, Some(gate)),
        };
        let rejection = gate.and_then(|gate| gate.rejection.as_ref());
        Self {
            step_id: pending.step(),
            reason,
            version: None,
            loops: gate.map(|gate| &*gate.loops).unwrap_or_default(),
            rejected: rejection.map(|rejection| Rejection {
                by: &rejection.who,
                reason: rejection.reason.as_deref(),
            }),
        }
    }
}

impl Waiting<'_> {
    /// What waits, in a sentence or two.
    pub fn text(&self) -> String {
        let step = self.step_id;
        if self.loops.is_empty() {
            return format!(
                "The output of step `{step}` passed its checks and waits for a person to confirm it."
            );
        }
        let loops = loops_text(self.loops);
        match &self.rejected {
            None => format!("A person has to approve that {loops} begins."),
            Some(Rejection { reason: None, .. }) => format!(
                "A person has rejected that {loops} begins. It does not begin unless somebody approves it after all; \
                 workflow_rewind goes back to an earlier step."
            ),
            Some(Rejection { reason: Some(reason), .. }) => format!(
                "A person has rejected that {loops} begins: {reason}. It does not begin unless somebody approves it \
                 after all; workflow_rewind goes back to an earlier step."
            ),
        }
    }
}

/// The title of a step or a loop as people read it, filled from what the session knows. Variables of loops are known
/// at the current step and for the loops around it. A slot without a value becomes an ellipsis.
pub fn title<'a>(
    workflow: &'a Workflow,
    state: &'a State,
    step: &str,
    outputs: &dyn Outputs,
    budget: &Budget,
) -> Cow<'a, str> {
    filled_title(workflow, state, step, outputs, || {
        let is_current = state.step.as_deref() == Some(step);
        let is_loop = matches!(workflow.step(step), Some(Step::Loop(_)));
        let found = (is_current || is_loop).then(|| current(workflow, state, budget).ok());
        let found = found.flatten().filter(|found| {
            is_current || found.running.iter().any(|running| *running.step.id == *step)
        });
        let context = || Variables::for_workflow(workflow, &state.context, budget);
        found.map_or_else(context, |found| found.variables)
    })
}

/// The title of a step that was finished when the loops around it stood so.
pub fn finished_title<'a>(
    workflow: &'a Workflow,
    state: &'a State,
    step: &str,
    loops: &LoopState,
    outputs: &dyn Outputs,
    budget: &Budget,
) -> Cow<'a, str> {
    filled_title(workflow, state, step, outputs, || {
        let variables = variables_at(workflow, step, loops, &state.context, budget);
        variables.unwrap_or_else(|_| Variables::for_workflow(workflow, &state.context, budget))
    })
}

fn filled_title<'a, 'v>(
    workflow: &'a Workflow,
    state: &State,
    step: &str,
    outputs: &'v dyn Outputs,
    variables: impl FnOnce() -> Variables<'v, 'v>,
) -> Cow<'a, str>
where
    'a: 'v,
{
    let Some(title) = workflow.step(step).map(Step::title) else {
        return Cow::Owned(step.to_owned());
    };
    if !title.contains("{{") {
        return Cow::Borrowed(title);
    }
    let mut variables = variables();
    if state.references_outputs {
        variables = variables.with_outputs(workflow, outputs);
    }
    let mut filled = String::with_capacity(title.len());
    for piece in pieces(title) {
        match piece {
            Piece::Slot { inner, whole } if slot(inner).is_some() => {
                match fill(whole, &variables) {
                    Ok(value) if value != whole => filled.push_str(&value),
                    Ok(_) | Err(_) => filled.push('…'),
                }
            }
            Piece::Slot { whole: text, .. } | Piece::Text(text) => filled.push_str(text),
        }
    }
    Cow::Owned(filled)
}
