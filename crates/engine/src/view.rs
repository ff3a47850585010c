//! What a caller may see of a session: where it stands and what to do now. Steps that come later are not
//! shown, neither their ids nor their titles nor their prompts.

use serde::Serialize;
use workflow::Workflow;

use crate::decide::current;
use crate::guidance::Guidance;
use crate::next::{Next, StepView};
use crate::refusal::Refusal;
use crate::state::State;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View<'a> {
    pub workflow_id: &'a str,
    pub revision: u64,
    pub is_complete: bool,
    pub step: Option<StepView<'a>>,
    pub guidance: Guidance<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting<'a>>,
}

/// A person has to confirm what was handed in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting<'a> {
    pub step_id: &'a str,
    pub reason: &'static str,
    /// Of the log, where somebody knows it: a decision names what it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Why a session waits.
const REASON: &str = "a person has to confirm the output of this step";

pub fn view<'a>(workflow: &'a Workflow, state: &'a State) -> Result<View<'a>, Refusal> {
    let Next { step, mut guidance, is_complete, .. } = current(workflow, state)?.next();
    guidance.requires_confirmation |=
        step.as_ref().is_some_and(|step| state.gated.iter().any(|gated| gated == step.id));
    let waiting = state.waiting.as_ref();
    let waiting =
        waiting.map(|waiting| Waiting { step_id: &waiting.step, reason: REASON, version: None });
    if let Some(Waiting { step_id, .. }) = &waiting {
        guidance.prompt = format!(
            "The output of step `{step_id}` was good, and waits for a person to confirm it. Tell your user, and go \
             on once it is decided."
        );
    }
    let (workflow_id, revision) = (&*state.workflow_id, state.revision);
    Ok(View { workflow_id, revision, is_complete, step, guidance, waiting })
}
