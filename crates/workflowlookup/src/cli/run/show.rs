//! How a session is shown to the person who walks it: where it stands, what to do, what is wrong with what they did.
//! Only looks, and never asks.

use std::io;

use anstyle::Style;
use engine::{Budget, LoopGate, Opening, Submission, VIEW_STEPS_MAX};
use store::sessions::{Error, Session, Sessions, Summary};
use unicode_width::UnicodeWidthStr;

use super::super::Failure;
use super::super::session::print_submission;
use super::super::terminal::{CYAN, DIM, GREEN, HEADING, RED, Terminal, YELLOW};
use super::input::COMMANDS;
use super::wrap::{self, Kind, Line};
use service::sessions::refusal;
use service::words::one_line;

/// How many finished steps a summary shows.
pub(super) const SUMMARY_MAX: usize = 10;
/// How much of an output a summary shows, in columns.
const GLIMPSE_WIDTH: usize = 60;
/// How much of a title, which may quote an output.
const TITLE_CHARS_MAX: usize = 200;

pub(super) fn beginning(
    terminal: &mut Terminal,
    session: &Session,
    going_on: &str,
) -> io::Result<()> {
    heading(terminal, session)?;
    terminal.styled(DIM, "leave when you like; this goes on from where you were:")?;
    terminal.line(&format!("  {going_on}"))
}

/// Where a session stands that somebody comes back to.
pub(super) fn resumed(
    terminal: &mut Terminal,
    session: &Session,
    summary: &Summary,
    finished: usize,
) -> io::Result<()> {
    heading(terminal, session)?;
    let count = match finished {
        0 => "no step is finished yet".to_owned(),
        1 => "one step is finished:".to_owned(),
        count => format!("{count} steps are finished:"),
    };
    if session.state.is_complete() {
        terminal.styled(GREEN, &format!("complete; {count}"))?;
    } else {
        terminal.line(&count)?;
    }
    if summary.is_cut {
        terminal.styled(DIM, "  …")?;
    }
    for finished in &summary.steps {
        let (step, output) = (&*finished.step, glimpse(&finished.output));
        terminal.pieces(&[(Style::new(), "  "), (CYAN, step), (DIM, ": "), (DIM, &output)])?;
    }
    Ok(())
}

fn heading(terminal: &mut Terminal, session: &Session) -> io::Result<()> {
    let (name, id) = (&*session.workflow.name, &*session.state.workflow_id);
    terminal.pieces(&[(HEADING, name), (DIM, &format!(" ({id})"))])?;
    if let Some(goal) = &session.state.goal {
        terminal.labelled(DIM, "goal", goal)?;
    }
    terminal.labelled(DIM, "session", &session.id)
}

/// What an output begins with, on one line.
fn glimpse(output: &str) -> String {
    let mut shown = String::new();
    for word in output.trim_start_matches('#').split_whitespace() {
        if shown.width() + 1 + word.width() > GLIMPSE_WIDTH && !shown.is_empty() {
            return shown + " …";
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.extend(word.chars().take(GLIMPSE_WIDTH));
    }
    shown
}

/// Whether a step is shown with all there is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// With the workflow's own guidance before it.
    WithOpening,
    Whole,
    Heading,
}

/// The current step. What its output is checked for, and whether a person confirms it, is part of the prompt.
pub(super) fn step(
    terminal: &mut Terminal,
    sessions: &Sessions,
    session: &Session,
    number: usize,
    detail: Detail,
) -> Result<(), Failure> {
    let outputs = sessions.outputs(session);
    let budget = Budget::with_steps(VIEW_STEPS_MAX);
    let view =
        engine::view(&session.workflow, &session.state, Opening::Terminal, &outputs, &budget)
            .map_err(|refused| {
                let state = Error::Refused { refusal: refused, session: None };
                refusal(&session.state.workflow_id, state)
            })?;
    outputs.finish().map_err(|error| refusal(&session.id, error))?;
    terminal.line("")?;
    if detail == Detail::WithOpening && !view.opening.is_empty() {
        prose(terminal, Style::new(), &view.opening)?;
        terminal.line("")?;
    }
    let Some(step) = &view.step else {
        prose(terminal, GREEN, &view.guidance.prompt)?;
        return Ok(());
    };
    let attempt = match session.state.attempts {
        0 => String::new(),
        tried => format!(", attempt {}", u64::from(tried) + 1),
    };
    let title = format!("Step {number}{attempt}: {}", step.title);
    terminal.pieces(&[(HEADING, &title), (DIM, &format!(" ({})", step.id))])?;
    if detail != Detail::Heading {
        terminal.line("")?;
        prose(terminal, Style::new(), &view.guidance.prompt)?;
    }
    Ok(())
}

/// A text in Markdown, broken to the width of the terminal.
pub(super) fn prose(terminal: &mut Terminal, style: Style, text: &str) -> io::Result<()> {
    for Line { kind, text } in wrap::lines(text, terminal.width()) {
        match kind {
            Kind::Heading => terminal.styled(HEADING, &text)?,
            Kind::Code => terminal.styled(CYAN, &text)?,
            Kind::Text => {
                let spans = wrap::spans(&text).into_iter();
                let pieces =
                    spans.map(|(is_code, text)| (if is_code { CYAN } else { style }, text));
                terminal.pieces(&pieces.collect::<Vec<_>>())?;
            }
        }
    }
    Ok(())
}

/// What waits for a person.
pub(super) fn waiting(terminal: &mut Terminal, submission: &Submission) -> io::Result<()> {
    let step = &submission.step;
    terminal.line("")?;
    terminal.styled(YELLOW, &format!("A person has to confirm the output of `{step}`:"))?;
    terminal.line("")?;
    print_submission(submission, terminal)?;
    terminal.line("")
}

/// Loops that wait for a person before they begin.
pub(super) fn loop_gate(
    terminal: &mut Terminal,
    sessions: &Sessions,
    session: &Session,
    gate: &LoopGate,
) -> io::Result<()> {
    terminal.line("")?;
    let (outputs, budget) = (sessions.outputs(session), Budget::for_call());
    for id in &gate.loops {
        let title = engine::title(&session.workflow, &session.state, id, &outputs, &budget);
        let title = one_line(&title, TITLE_CHARS_MAX);
        let what = format!("A person has to approve that loop `{id}` begins: {title}");
        terminal.styled(YELLOW, &what)?;
    }
    if let Some(rejection) = &gate.rejection {
        terminal.styled(DIM, &declined(rejection.reason.as_deref()))?;
    }
    terminal.line("")
}

pub(super) fn issues(
    terminal: &mut Terminal,
    issues: &[String],
    suggestions: &[String],
) -> io::Result<()> {
    for issue in issues {
        prose(terminal, RED, &format!("  - {issue}"))?;
    }
    if suggestions.is_empty() {
        return Ok(());
    }
    terminal.styled(DIM, "what to change:")?;
    for suggestion in suggestions {
        prose(terminal, YELLOW, &format!("  - {suggestion}"))?;
    }
    Ok(())
}

/// What is wrong with an output that a person has not confirmed.
pub(super) fn declined(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("not confirmed: {reason}"),
        None => "not confirmed".to_owned(),
    }
}

pub(super) fn commands(terminal: &mut Terminal) -> io::Result<()> {
    terminal
        .line("Type the output of the step, over as many lines as you like. A line by itself:")?;
    let width = COMMANDS.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (command, meaning) in COMMANDS {
        let command = format!("  {command:width$}  ");
        terminal.pieces(&[(CYAN, &command), (Style::new(), meaning)])?;
    }
    Ok(())
}
