//! What happens next: which step an agent takes, and whether what it produced is good. Pure: given the
//! same workflow, progress and context, the answer is the same.

mod check;
mod compiled;
mod criteria;
mod guidance;
mod loops;
mod next;
mod refusal;

pub use check::{Checker, Verdict};
pub use guidance::Guidance;
pub use loops::{LoopProgress, LoopState};
pub use next::{Next, Progress, StepView, next};
pub use refusal::Refusal;
