//! What `approve` and `reject` share: what waits for a person, and who decides.

use std::io;

use engine::{Channel, Decision, Refusal as EngineRefusal, Submission};
use store::Version;
use store::sessions::Session;

use super::find::Found;
use super::story::step_name;
use crate::cli::Terminal;
use crate::cli::terminal::{DIM, HEADING};
use service::error::Refusal;
use service::sessions::{Denied, Ruling, Standing};
use service::words::one_line;

const NAME_CHARS_MAX: usize = 100;

/// What waits, or why there is nothing to decide.
pub(super) fn waiting(session: &Session) -> Result<&Submission, Refusal> {
    session.state.waiting.as_ref().ok_or_else(|| Refusal::Session {
        why: Denied::Engine(EngineRefusal::NotWaiting),
        at: Standing::of(session),
    })
}

/// A decision of whoever sits here, about what they saw.
pub(super) fn ruling<'a>(
    found: &'a Found,
    version: Version,
    reason: Option<&String>,
    is_approved: bool,
) -> Ruling<'a> {
    let (who, reason) = (found.open.user.clone(), reason.cloned());
    let decision = Decision { who, channel: Channel::Cli, reason };
    Ruling { session: &found.id, version, is_approved, decision, right: None }
}

/// The whole output, so that a person can decide.
pub(super) fn print_waiting(
    session: &Session,
    submission: &Submission,
    terminal: &mut Terminal,
) -> io::Result<()> {
    terminal.styled(HEADING, "Waiting for a person")?;
    terminal.line(&format!("  the output of {}:", step_name(session, &submission.step)))?;
    print_submission(submission, terminal)
}

/// All that was handed in, and nothing cut: who decides must have seen it.
pub(crate) fn print_submission(submission: &Submission, terminal: &mut Terminal) -> io::Result<()> {
    // The bar keeps what an agent wrote apart from what we say.
    for line in submission.output.lines() {
        terminal.line(format!("  │ {line}").trim_end())?;
    }
    if !submission.context.is_empty() {
        terminal.styled(DIM, "  and what it reports besides:")?;
        for (name, value) in &submission.context {
            terminal.line(&format!("  │ {} = {value}", one_line(name, NAME_CHARS_MAX)))?;
        }
    }
    Ok(())
}
