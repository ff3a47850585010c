//! Where a session stands: a fold of its events, and nothing else. It is small, and does not grow with the
//! number of events.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::Context;

use crate::completed::Completed;
use crate::event::{Decision, Event, ImportOrigin, OutputLocation, Place, Submission};
use crate::loops::LoopState;
use crate::rules::Rules;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    #[serde(default, skip_serializing_if = "Rules::is_first")]
    pub rules: Rules,
    pub workflow_id: String,
    pub goal: Option<String>,
    /// What the agent has reported so far.
    pub context: Context,
    pub completed: Completed,
    /// Where the loops stood when the current step was found.
    #[serde(flatten)]
    pub loops: LoopState,
    /// The current step; none where everything is done.
    pub step: Option<String>,
    /// How often the current step was tried in vain.
    pub attempts: u32,
    /// Grows by one with each answered advance, and with going back.
    pub revision: u64,
    /// What a person has to confirm.
    pub waiting: Option<Submission>,
    /// What a person has to approve before the current step is handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_gate: Option<LoopGate>,
    /// Steps whose output had to be confirmed and was not yet, and loops that had to be approved. They stay so whatever is reported later: a condition
    /// that depends on what an agent says must not let it take a gate back.
    #[serde(default)]
    pub gated: Vec<String>,
    /// What waits is decided with a token that may approve, and in no other way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Texts of the workflow refer to outputs of earlier steps, so their locations are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub references_outputs: bool,
    /// Where the last accepted output of each step is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<Arc<str>, OutputLocation>,
    /// How many events led here: the version of the log. Counted if outputs are located.
    #[serde(default, skip_serializing_if = "is_zero")]
    events: u64,
    /// The event with the output that waits.
    #[serde(default, skip_serializing_if = "is_zero")]
    submitted_at: u64,
    /// The last import that the session, or the original of a copy, came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportOrigin>,
}

/// Loops that begin with the current step and wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopGate {
    /// Their ids, outermost first; at least one.
    pub loops: Vec<String>,
    /// The last decision, where it was no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Decision>,
}

/// What a session waits for a person with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pending<'a> {
    /// The output of the current step.
    Output(&'a Submission),
    /// The beginning of loops; the current step is not handed out yet.
    Loops(&'a LoopGate),
}

impl<'a> Pending<'a> {
    /// The step or the outermost loop that it is about.
    pub fn step(self) -> &'a str {
        match self {
            Self::Output(submission) => &submission.step,
            Self::Loops(gate) => gate.loops.first().map(String::as_str).unwrap_or_default(),
        }
    }
}

impl State {
    /// The state after all of these; none where there is no beginning.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut state = Self::default();
        state.apply(events.next()?);
        events.for_each(|event| state.apply(event));
        Some(state)
    }

    pub fn apply(&mut self, event: &Event) {
        if self.references_outputs {
            self.events += 1;
        }
        match event {
            Event::Started {
                rules,
                workflow_id,
                goal,
                context,
                gated,
                strict,
                imported,
                references_outputs,
                outputs,
                place,
                forked_from: _,
            } => {
                *self = Self {
                    rules: *rules,
                    references_outputs: *references_outputs,
                    outputs: outputs.clone(),
                    events: u64::from(*references_outputs),
                    imported: imported.clone(),
                    workflow_id: workflow_id.clone(),
                    goal: goal.clone(),
                    context: context.clone(),
                    gated: gated.clone(),
                    strict: *strict,
                    ..Self::default()
                };
                self.go_to(place);
            }
            Event::Accepted { submission, place } => {
                self.learn(submission);
                self.locate_output(&submission.step, self.events);
                self.go_to(place);
                self.revision += 1;
            }
            Event::Returned { .. } | Event::Declined { .. } => {
                self.waiting = None;
                self.attempts += 1;
                self.revision += 1;
            }
            Event::Submitted { submission } => {
                if !self.gated.contains(&submission.step) {
                    self.gated.push(submission.step.clone());
                }
                self.waiting = Some(submission.clone());
                self.submitted_at = self.events;
            }
            Event::Approved { place, .. } => {
                if let Some(submission) = self.waiting.take() {
                    self.gated.retain(|step| *step != submission.step);
                    self.learn(&submission);
                    self.locate_output(&submission.step, self.submitted_at);
                }
                self.go_to(place);
                self.revision += 1;
            }
            Event::Rewound { context, outputs, place, .. } => {
                self.context = context.clone();
                self.outputs.clone_from(outputs);
                self.completed = Completed::default();
                self.go_to(place);
                self.revision += 1;
            }
            Event::LoopApproved { .. } => {
                if let Some(gate) = self.loop_gate.take() {
                    self.gated.retain(|id| !gate.loops.contains(id));
                }
                self.revision += 1;
            }
            Event::LoopDeclined { decision } => {
                if let Some(gate) = &mut self.loop_gate {
                    gate.rejection = Some(decision.clone());
                }
                self.revision += 1;
            }
            Event::Imported { origin } => self.imported = Some(origin.clone()),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.step.is_none()
    }

    /// What a person has to decide before the session goes on.
    pub fn pending(&self) -> Option<Pending<'_>> {
        let output = self.waiting.as_ref().map(Pending::Output);
        output.or(self.loop_gate.as_ref().map(Pending::Loops))
    }

    /// Where the session stands, as others may know it: a step that is not handed out yet is not named, but the loop that
    /// waits.
    pub fn position(&self) -> Option<&str> {
        self.loop_gate
            .as_ref()
            .map_or(self.step.as_deref(), |gate| Some(Pending::Loops(gate).step()))
    }

    /// The locations of outputs as a copy of this session knows them.
    pub(crate) fn outputs_from(&self, session: &str) -> BTreeMap<Arc<str>, OutputLocation> {
        let own: Arc<str> = session.into();
        let located = self.outputs.iter().map(|(step, location)| {
            let mut location = location.clone();
            location.session.get_or_insert_with(|| Arc::clone(&own));
            (Arc::clone(step), location)
        });
        located.collect()
    }

    fn locate_output(&mut self, step: &str, version: u64) {
        if self.references_outputs {
            self.outputs.insert(step.into(), OutputLocation { session: None, version });
        }
    }

    fn learn(&mut self, submission: &Submission) {
        self.context.extend(submission.context.clone());
    }

    fn go_to(&mut self, place: &Place) {
        self.completed.extend(&place.completed);
        self.loops = place.loops.clone();
        self.step.clone_from(&place.step);
        self.attempts = 0;
        self.waiting = None;
        for id in &place.gates {
            if !self.gated.contains(id) {
                self.gated.push(id.clone());
            }
        }
        self.loop_gate = Some(LoopGate { loops: place.gates.clone(), rejection: None })
            .filter(|gate| !gate.loops.is_empty());
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
