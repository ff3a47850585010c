//! The walk: show the step, take an output, hand it in, and so on until all is done. The session decides what comes
//! next; all that is kept here is what would have been typed in vain.

use std::ops::ControlFlow;
use std::sync::Arc;

use store::sessions::Session;
use workflow::Context;

use super::super::terminal::{DIM, RED, YELLOW};
use super::super::{Ended, Failure, Outcome, Terminal};
use super::Lines;
use super::editor::Editor;
use super::input::Input;
use super::past::{Past, Returned};
use super::show::{self, Detail};
use super::typing::Wish;
use service::error::Refusal;
use service::sessions::Standing;

/// Why a walk stops where nobody can try again.
pub(super) const REFUSED: &str = "nothing more was handed in";

/// Break: the walk ends so, for now or for good.
pub(super) type Flow = ControlFlow<Outcome>;

pub(super) struct Walk<'t> {
    pub(super) open: Arc<service::sessions::Open>,
    /// As it was seen last; somebody else may have gone on meanwhile.
    pub(super) session: Arc<Session>,
    pub(super) input: Input,
    pub(super) terminal: &'t mut Terminal,
    pub(super) editor: Editor,
    /// How many steps are finished.
    pub(super) finished: usize,
    /// What the editor opens with.
    pub(super) draft: Draft,
    /// What is reported with the next output.
    pub(super) variables: Context,
    pub(super) lines: Lines,
    /// What was wrong, and what to change, with what somebody handed in before this walk began.
    last_time: Option<(Vec<String>, Vec<String>)>,
    /// The place that was shown last with all there is to read.
    shown: Option<(usize, Option<String>)>,
    /// Whether the person has been told what can be typed.
    pub(super) is_told: bool,
    /// The workflow's own guidance was shown.
    has_opened: bool,
}

/// A text that was typed and not taken.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    /// It was found wanting, so that nobody means to hand it in again as it is.
    pub(super) is_returned: bool,
}

impl<'t> Walk<'t> {
    pub(super) fn new(
        open: Arc<service::sessions::Open>,
        session: Arc<Session>,
        past: Past,
        lines: Lines,
        terminal: &'t mut Terminal,
    ) -> Self {
        let mut walk = Self {
            open,
            session,
            input: Input::new(),
            terminal,
            editor: Editor::default(),
            finished: past.finished,
            draft: Draft::default(),
            variables: Context::new(),
            lines,
            last_time: None,
            shown: None,
            is_told: false,
            has_opened: false,
        };
        if let Some(Returned { submission, issues, suggestions }) = past.returned {
            walk.draft = Draft { text: submission.output, is_returned: true };
            walk.variables = submission.context;
            walk.last_time = Some((issues, suggestions));
        }
        walk
    }

    pub(super) fn go(mut self) -> Ended {
        loop {
            let state = &self.session.state;
            let flow = if state.is_complete() {
                self.complete()?
            } else if let Some(gate) = state.loop_gate.clone() {
                self.decide_loop(&gate)?
            } else if let Some(waiting) = state.waiting.clone() {
                self.decide(&waiting)?
            } else {
                self.step()?
            };
            if let ControlFlow::Break(outcome) = flow {
                return Ok(outcome);
            }
        }
    }

    fn complete(&mut self) -> Result<Flow, Failure> {
        show::step(
            self.terminal,
            &self.open.sessions,
            &self.session,
            self.finished,
            Detail::Whole,
        )?;
        self.terminal.styled(DIM, "a report of all that was done:")?;
        self.terminal.line(&format!("  {}", self.lines.report))?;
        Ok(Flow::Break(Outcome::Good))
    }

    fn step(&mut self) -> Result<Flow, Failure> {
        let place = Some((self.finished, self.session.state.step.clone()));
        // Who tries again has read it, and should see what is wrong instead.
        let detail = match self.shown == place {
            true => Detail::Heading,
            false if self.has_opened => Detail::Whole,
            // Also for a person who resumes, and may have forgotten it.
            false => Detail::WithOpening,
        };
        self.has_opened = true;
        self.shown = place;
        show::step(self.terminal, &self.open.sessions, &self.session, self.finished + 1, detail)?;
        if let Some((issues, suggestions)) = self.last_time.take() {
            self.terminal.line("")?;
            self.terminal.styled(RED, "what was handed in last was not accepted")?;
            self.not_taken(&issues, &suggestions)?;
        }
        match self.wish(detail)? {
            Wish::HandIn(output) => self.hand_in(output),
            Wish::Back { step, reason, typed } => self.back(&step, &reason, typed),
            Wish::Leave => self.leave(),
            Wish::Stop(why) => self.stop(why),
        }
    }

    /// Takes the session as it is now, at a place that was not shown yet.
    pub(super) fn arrive(&mut self, session: Arc<Session>) -> Result<(), Failure> {
        self.finished = Past::of(&self.open.sessions, &session)?.finished;
        self.session = session;
        self.shown = None;
        Ok(())
    }

    /// Somebody else was faster. What was typed is kept.
    pub(super) fn overtaken(
        &mut self,
        session: Arc<Session>,
        typed: Option<String>,
    ) -> Result<Flow, Failure> {
        self.terminal.line("")?;
        let standing = Standing::of(&session);
        self.terminal.styled(YELLOW, "Somebody else has gone on with this session meanwhile.")?;
        self.terminal.line(&format!("Now {standing}."))?;
        if let Some(text) = typed {
            self.terminal.line("What you typed was not handed in; `:e` opens it.")?;
            self.draft = Draft { text, is_returned: false };
        }
        // What was set belonged to that; whoever set it sees that it goes with the next output.
        self.not_taken(&[], &[])?;
        self.arrive(session)?;
        Ok(Flow::Continue(()))
    }

    /// Says why something cannot be. Somebody at a terminal tries again; what comes through a pipe was meant for
    /// what was refused, and must not end up elsewhere.
    pub(super) fn refuse(&mut self, refusal: &Refusal) -> Result<Flow, Failure> {
        self.complain(refusal)?;
        if self.input.is_terminal() { Ok(Flow::Continue(())) } else { self.stop(REFUSED) }
    }

    pub(super) fn complain(&mut self, refusal: &Refusal) -> Result<(), Failure> {
        let (message, hint) = (refusal.to_string(), refusal.hint());
        Ok(self.terminal.complain(RED, "error", &message, hint.as_deref())?)
    }

    pub(super) fn leave(&mut self) -> Result<Flow, Failure> {
        self.terminal.styled(DIM, "the session stays as it is; this goes on with it:")?;
        self.terminal.line(&format!("  {}", self.lines.resume))?;
        Ok(Flow::Break(Outcome::Good))
    }

    /// Not complete, and nobody there to ask.
    pub(super) fn stop(&mut self, why: &str) -> Result<Flow, Failure> {
        let hint = format!("`{}` goes on", self.lines.resume);
        self.terminal.complain(YELLOW, "stopped", why, Some(&hint))?;
        Ok(Flow::Break(Outcome::Bad))
    }
}
