//! What `approve` and `reject` share: what waits for a person, and a decision about what was seen.

use std::io::{self, BufRead, IsTerminal, Read};

use anstyle::Style;
use engine::{Channel, Decision, LoopGate, Pending, Refusal as EngineRefusal, Submission};
use store::Version;
use store::sessions::{Session, Sessions};

use super::find::Found;
use super::story::{decider, loop_name, step_name};
use crate::cli::terminal::{DIM, GREEN, HEADING, RED, YELLOW, escape};
use crate::cli::{Ended, Outcome, Terminal};
use service::error::Refusal;
use service::sessions::{Denied, Ruling, Standing, refusal};
use service::words::one_line;

const NAME_CHARS_MAX: usize = 100;
const REASON_CHARS_MAX: usize = 1_000;
/// No answer to a yes-or-no question is longer.
const ANSWER_BYTES_MAX: u64 = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Approve,
    Reject,
}

/// Decides about the version that was named, or else about the one that is shown here. Never about a newer one.
pub(super) fn decide(
    verdict: Verdict,
    found: &Found,
    seen: Option<Version>,
    reason: Option<&str>,
    terminal: &mut Terminal,
) -> Ended {
    let session = found.session()?;
    let pending = session.state.pending().ok_or_else(|| Refusal::Session {
        why: Denied::Engine(EngineRefusal::NotWaiting),
        at: Standing::of(&session),
    })?;
    let version = match seen {
        Some(version) => version,
        None if is_confirmed(verdict, found, &session, pending, terminal)? => session.version,
        None => return Ok(Outcome::Bad),
    };
    let name = pending_name(&found.open.sessions, &session, pending);
    let (who, reason) = (found.open.user.clone(), reason.map(str::to_owned));
    let decision = Decision { who, channel: Channel::Cli, reason };
    let is_approved = verdict == Verdict::Approve;
    let ruling = Ruling { session: &found.id, version, is_approved, decision, right: None };
    let after = found.open.rule(ruling).map_err(|error| refusal(&found.id, error))?;
    terminal.styled(verdict.style(), &format!("{} {name}", verdict.done()))?;
    terminal.line(&Standing::of(&after).to_string())?;
    Ok(Outcome::Good)
}

/// Shows what waits, and asks whoever sits at the terminal. A program has to name what it has seen.
fn is_confirmed(
    verdict: Verdict,
    found: &Found,
    session: &Session,
    pending: Pending<'_>,
    terminal: &mut Terminal,
) -> io::Result<bool> {
    print_waiting(&found.open.sessions, session, pending, terminal)?;
    if !io::stdin().is_terminal() {
        let message =
            "nothing was decided: `--version` is missing, and there is no terminal to ask at";
        let Session { id, version, .. } = session;
        let hint = format!("`workflowlookup session {} {id} --version {version}`", verdict.name());
        terminal.complain(RED, "error", message, Some(&hint))?;
        return Ok(false);
    }
    terminal.text(verdict.question())?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer)?;
    let is_confirmed = matches!(&*answer.trim().to_lowercase(), "y" | "yes");
    if !is_confirmed {
        terminal.styled(DIM, "nothing was decided")?;
    }
    Ok(is_confirmed)
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }

    fn question(self) -> &'static str {
        match self {
            Self::Approve => "Approve? [y/N] ",
            Self::Reject => "Reject? [y/N] ",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Approve => GREEN,
            Self::Reject => YELLOW,
        }
    }
}

/// What is decided, as the object of a sentence.
fn pending_name(sessions: &Sessions, session: &Session, pending: Pending<'_>) -> String {
    match pending {
        Pending::Output(submission) => {
            format!("the output of {}", step_name(sessions, session, &submission.step))
        }
        Pending::Loops(gate) => {
            let loops = gate.loops.iter().map(|id| loop_name(sessions, session, id));
            loops.collect::<Vec<_>>().join(" and ")
        }
    }
}

/// Everything about it, so that a person can decide, and the version that they decide about.
pub(super) fn print_waiting(
    sessions: &Sessions,
    session: &Session,
    pending: Pending<'_>,
    terminal: &mut Terminal,
) -> io::Result<()> {
    terminal.styled(HEADING, "Waiting for a person")?;
    let (name, version) = (pending_name(sessions, session, pending), session.version);
    match pending {
        Pending::Output(submission) => {
            terminal.line(&format!("  {name}, version {version}:"))?;
            print_submission(submission, terminal)
        }
        Pending::Loops(LoopGate { rejection, .. }) => {
            terminal.line(&format!("  whether {name} begins, version {version}"))?;
            let Some(rejection) = rejection else { return Ok(()) };
            let reason =
                rejection.reason.as_deref().map(|reason| one_line(reason, REASON_CHARS_MAX));
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            terminal.styled(DIM, &format!("  rejected before {}{reason}", decider(rejection)))
        }
    }
}

/// All that was handed in, and nothing cut: who decides must have seen it.
pub(crate) fn print_submission(submission: &Submission, terminal: &mut Terminal) -> io::Result<()> {
    // The bar keeps what an agent wrote apart from what we say.
    for line in submission.output.lines() {
        terminal.line(format!("  │ {}", escape(line)).trim_end())?;
    }
    if !submission.context.is_empty() {
        terminal.styled(DIM, "  and what it reports besides:")?;
        for (name, value) in &submission.context {
            let (name, value) = (one_line(name, NAME_CHARS_MAX), value.to_string());
            terminal.line(&format!("  │ {} = {}", escape(&name), escape(&value)))?;
        }
    }
    Ok(())
}
