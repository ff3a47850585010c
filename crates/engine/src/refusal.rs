//! A refusal: not allowed now, or arguments that make no sense. Never our fault.

use budget::Exhausted;
use workflow::Workflow;
use workflow::nearest::nearest;

/// How many steps that do not exist are named.
const UNKNOWN_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No step of the workflow has this id.
    #[error("the workflow has no step `{step}`")]
    StepNotFound {
        step: String,
        nearest: Option<String>,
        /// The ids that there are.
        steps: Vec<String>,
    },
    /// Steps are reported as completed that the workflow does not have.
    #[error("the workflow has no step {}", quoted(unknown.iter().map(|(step, _)| step)))]
    UnknownCompleted {
        /// Each with the id that may have been meant.
        unknown: Vec<(String, Option<String>)>,
        /// The ids that there are.
        steps: Vec<String>,
    },
    /// Only the current step can be advanced.
    #[error("`{step}` is not the current step")]
    NotCurrent { step: String, current: Option<String> },
    /// The session has moved on, or never was there.
    #[error("the session is at revision {current}, not {given}")]
    WrongRevision { given: u64, current: u64 },
    /// There is nothing to decide.
    #[error("no step of the session waits for a person")]
    NotWaiting,
    /// The first step of a loop is not handed out before a person has approved the loop.
    #[error("a person has to approve that {} begins", loops_text(loops))]
    LoopGate { loops: Vec<String> },
    /// Somebody decides who has shown no token that may approve.
    #[error("only a decision with a token that may approve counts in this session")]
    StrictGate,
    #[error("{what} may have {limit} bytes")]
    TooLarge { what: &'static str, limit: usize },
    /// A name that the session uses itself.
    #[error("`{variable}` is kept by the session and cannot be reported")]
    Reserved { variable: &'static str },
    /// Declared variables with values that their declarations do not accept.
    #[error("{}", issues.join("; "))]
    BadVariables { issues: Vec<String> },
    /// The loop progress in the context does not fit the workflow, or is missing.
    #[error("{details}")]
    BadState { details: String },
    /// A rule of the step cannot be used: a bad pattern, an unknown type, a missing field.
    #[error("the criteria of step `{step}` cannot be used: {}", details.join("; "))]
    UnusableCriteria { step: String, details: Vec<String> },
    /// A rule, a condition or a template takes more work than one call may cause. Nothing was decided.
    #[error("{what} of step `{step}` takes {why}")]
    Exhausted { step: String, what: String, why: Exhausted },
    /// A JSON Schema in a rule of the step is malformed.
    #[error("the criteria of step `{step}` cannot be used: {}", details.join("; "))]
    MalformedSchema { step: String, details: Vec<String> },
}

impl Refusal {
    pub(crate) fn step_not_found(workflow: &Workflow, step: &str) -> Self {
        let nearest = nearest_step(workflow, step);
        Self::StepNotFound { step: step.to_owned(), nearest, steps: all_steps(workflow) }
    }

    pub(crate) fn unknown_completed(workflow: &Workflow, unknown: Vec<String>) -> Self {
        let with_nearest = unknown.into_iter().take(UNKNOWN_MAX).map(|step| {
            let nearest = nearest_step(workflow, &step);
            (step, nearest)
        });
        Self::UnknownCompleted { unknown: with_nearest.collect(), steps: all_steps(workflow) }
    }

    /// Says which part of a step exhausted the budget. Called for every step that a search looks at, so nothing is
    /// allocated before it is.
    pub(crate) fn exhausted<'a>(
        step: &'a str,
        what: impl Into<String> + 'a,
    ) -> impl FnOnce(Exhausted) -> Self + 'a {
        move |why| Self::Exhausted { step: step.to_owned(), what: what.into(), why }
    }

    /// Says which declared variable exhausted the budget.
    pub(crate) fn exhausted_variable(name: &str) -> impl FnOnce(Exhausted) -> Self {
        Self::exhausted(name, "the value of variable")
    }

    /// What to try instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::StepNotFound { nearest, .. } => {
                nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?"))
            }
            Self::UnknownCompleted { unknown, .. } => {
                let meant = quoted(unknown.iter().filter_map(|(_, nearest)| nearest.as_ref()));
                (!meant.is_empty()).then(|| format!("did you mean {meant}?"))
            }
            Self::NotCurrent { current: Some(current), .. } => {
                Some(format!("the current step is `{current}`"))
            }
            Self::NotCurrent { current: None, .. } => Some("the session is complete".to_owned()),
            Self::WrongRevision { .. } => {
                Some("look at where the session stands, and go on from there".to_owned())
            }
            Self::StrictGate => Some(
                "send `POST /sessions/ID/approve` or `/reject` to the server, with a token that was made with `--right \
                 approve`"
                    .to_owned(),
            ),
            Self::LoopGate { .. } => {
                Some("tell your user that it waits, and go on once it is decided".to_owned())
            }
            Self::NotWaiting
            | Self::TooLarge { .. }
            | Self::Reserved { .. }
            | Self::BadVariables { .. } => None,
            Self::BadState { .. } => {
                Some("pass back the `state` of the last answer, as part of the context".to_owned())
            }
            Self::Exhausted { .. } => Some(
                "hand in less, or have the author simplify it; `workflowlookup validate` names what is expensive"
                    .to_owned(),
            ),
            Self::UnusableCriteria { .. } | Self::MalformedSchema { .. } => {
                Some("`workflowlookup validate` shows what is wrong with the file".to_owned())
            }
        }
    }
}

fn all_steps(workflow: &Workflow) -> Vec<String> {
    let mut steps = Vec::new();
    workflow.each_step(&mut |step| steps.push(step.id().to_owned()));
    steps
}

fn nearest_step(workflow: &Workflow, step: &str) -> Option<String> {
    let mut ids = Vec::new();
    workflow.each_step(&mut |step| ids.push(step.id()));
    nearest(step, ids).map(str::to_owned)
}

fn quoted<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Loops as the subject of a sentence: they begin together, the outermost first.
pub(crate) fn loops_text(loops: &[String]) -> String {
    match loops {
        [outer, inner @ ..] if !inner.is_empty() => {
            format!("loop `{outer}` (and inside it {})", quoted(inner.iter()))
        }
        loops => format!("loop {}", quoted(loops.iter())),
    }
}
