//! What a caller may see of a session: where it stands and what to do now. Steps that come later are not
//! shown, neither their ids nor their titles nor their prompts.

use budget::Budget;
use serde::Serialize;
use workflow::Workflow;

use crate::decide::current;
use crate::guidance::Guidance;
use crate::next::{Next, StepView};
use crate::refusal::{Refusal, loops_text};
use crate::state::{LoopGate, Pending, State};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View<'a> {
    pub workflow_id: &'a str,
    pub revision: u64,
    pub is_complete: bool,
    /// None where the session is complete, or waits before a loop.
    pub step: Option<StepView<'a>>,
    pub guidance: Guidance<'a>,
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
const VIEW_STEPS_MAX: u64 = 4_000_000;

pub fn view<'a>(workflow: &'a Workflow, state: &'a State) -> Result<View<'a>, Refusal> {
    let budget = Budget::with_steps(VIEW_STEPS_MAX);
    let Next { step, mut guidance, is_complete, .. } = current(workflow, state, &budget)?.next()?;
    guidance.requires_confirmation |=
        step.as_ref().is_some_and(|step| state.gated.iter().any(|gated| gated == step.id));
    let (workflow_id, revision) = (&*state.workflow_id, state.revision);
    let view = View { workflow_id, revision, is_complete, step, guidance, waiting: None };
    Ok(match state.pending() {
        None => view,
        Some(Pending::Output(submission)) => view.before_decision(Waiting {
            step_id: &submission.step,
            reason: OUTPUT_REASON,
            version: None,
            loops: &[],
            rejected: None,
        }),
        Some(pending @ Pending::Loops(LoopGate { loops, rejection })) => View {
            step: None,
            guidance: Guidance {
                prompt: String::new(),
                model_hint: None,
                requires_confirmation: true,
                validation_criteria: Vec::new(),
            },
            ..view
        }
        .before_decision(Waiting {
            step_id: pending.step(),
            reason: LOOP_REASON,
            version: None,
            loops,
            rejected: rejection.as_ref().map(|rejection| Rejection {
                by: &rejection.who,
                reason: rejection.reason.as_deref(),
            }),
        }),
    })
}

impl<'a> View<'a> {
    fn before_decision(mut self, waiting: Waiting<'a>) -> Self {
        self.guidance.prompt =
            format!("{} Tell your user, and go on once it is decided.", waiting.text());
        self.waiting = Some(waiting);
        self
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
