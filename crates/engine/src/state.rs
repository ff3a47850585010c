//! Where a session stands: a fold of its events, and nothing else. It is small, and does not grow with the
//! number of events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::Context;

use crate::event::{Event, Place, Submission};
use crate::loops::LoopState;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub workflow_id: String,
    pub goal: Option<String>,
    /// What the agent has reported so far.
    pub context: Context,
    /// Shared: a state is copied with every event.
    pub completed: Vec<Arc<str>>,
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
    /// Steps whose output had to be confirmed and was not yet. They stay so whatever is reported later: a condition
    /// that depends on what an agent says must not let it take a gate back.
    #[serde(default)]
    pub gated: Vec<String>,
    /// What waits is decided with a token that may approve, and in no other way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
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
        match event {
            Event::Started { workflow_id, goal, context, gated, strict, place, forked_from: _ } => {
                *self = Self {
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
            }
            Event::Approved { place, .. } => {
                if let Some(submission) = self.waiting.take() {
                    self.gated.retain(|step| *step != submission.step);
                    self.learn(&submission);
                }
                self.go_to(place);
                self.revision += 1;
            }
            Event::Rewound { context, place, .. } => {
                self.context = context.clone();
                self.completed.clear();
                self.go_to(place);
                self.revision += 1;
            }
        }
    }

    pub fn is_complete(&self) -> bool {
        self.step.is_none()
    }

    fn learn(&mut self, submission: &Submission) {
        self.context.extend(submission.context.clone());
    }

    fn go_to(&mut self, place: &Place) {
        self.completed.extend(place.completed.iter().map(|id| Arc::from(id.as_str())));
        self.loops = place.loops.clone();
        self.step.clone_from(&place.step);
        self.attempts = 0;
        self.waiting = None;
    }
}
