//! What happens next: which step an agent takes, and whether what it produced is good. Pure: given the
//! same workflow, progress and context, the answer is the same. `next` and `check` are for an agent that keeps
//! track itself; for a session, `decide` makes events of commands, `State` is their fold, and `view` what may be
//! seen of it.

mod check;
mod command;
mod compiled;
mod criteria;
mod decide;
mod event;
mod guidance;
mod loops;
mod next;
mod refusal;
mod state;
mod view;

pub use check::{Checker, Verdict};
pub use command::Command;
pub use decide::{CONTEXT_BYTES_MAX, OUTPUT_BYTES_MAX, REASON_BYTES_MAX, decide};
pub use event::{Channel, Decision, Event, Origin, Place, Submission};
pub use guidance::Guidance;
pub use loops::{LoopProgress, LoopState};
pub use next::{Next, Progress, StepView, next};
pub use refusal::Refusal;
pub use state::State;
pub use view::{View, Waiting, view};
