//! What happens next: which step an agent takes, and whether what it produced is good. Pure: given the
//! same workflow, progress and context, the answer is the same. `next` and `check` are for an agent that keeps
//! track itself; for a session, `decide` makes events of commands, `State` is their fold, and `view` what may be
//! seen of it.

mod check;
mod command;
mod compiled;
mod completed;
mod criteria;
mod decide;
mod distinct;
mod event;
mod guidance;
mod loops;
mod next;
mod refusal;
mod reports;
mod rules;
mod state;
mod view;

pub use budget::{Budget, Exhausted, INPUT_BYTES_MAX};
pub use check::{Checker, Verdict};
pub use command::Command;
pub use completed::Completed;
pub use decide::{CONTEXT_BYTES_MAX, OUTPUT_BYTES_MAX, REASON_BYTES_MAX, check_state, decide};
pub use event::{
    Channel, Decision, Event, ImportOrigin, Origin, OutputLocation, Place, Submission,
};
pub use guidance::{Guidance, Opening};
pub use loops::{LoopProgress, LoopState};
pub use next::{Next, Progress, SESSION_STEPS_MAX, StepView, next};
pub use refusal::Refusal;
pub use reports::near_misses;
pub use rules::Rules;
pub use state::{LoopGate, Pending, State};
pub use view::{Rejection, VIEW_STEPS_MAX, View, Waiting, finished_title, title, view};
