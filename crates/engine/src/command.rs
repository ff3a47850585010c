//! What can be asked of a session.

use workflow::Context;

use crate::event::{Decision, Origin, Submission};
use crate::rules::Rules;
use crate::state::State;

#[derive(Debug, Clone)]
pub enum Command<'a> {
    /// For a session that is not there yet.
    Start {
        goal: Option<String>,
        context: Context,
        /// Its gates are decided with a token that may approve, and in no other way.
        strict: bool,
        rules: Rules,
    },
    /// For a session that is not there yet: begins where another one stood.
    Fork {
        from: Origin,
        state: &'a State,
    },
    Advance {
        revision: u64,
        submission: Submission,
    },
    /// About what waits: an output, or the beginning of loops.
    Approve(Decision),
    Decline(Decision),
    /// `then` is the state as it was when the step to go back to was current, after event `version`.
    Rewind {
        revision: u64,
        version: u64,
        then: &'a State,
        reason: String,
    },
}
