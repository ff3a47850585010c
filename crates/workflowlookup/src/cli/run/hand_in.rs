//! What is done with the session from a step: an output is handed in, or somebody goes back.

use std::sync::Arc;

use engine::{Refusal as Engine, Submission, near_misses};
use store::sessions::{Advanced, Error, Session, Verdict};

use super::super::Failure;
use super::super::terminal::{DIM, GREEN, RED, YELLOW};
use super::show;
use super::walk::{Draft, Flow, Walk};
use service::error::Refusal;
use service::sessions::{now, refusal};

/// How many finished steps are looked through for one to go back to.
const STEPS_MAX: usize = 100;

impl Walk<'_> {
    pub(super) fn hand_in(&mut self, output: String) -> Result<Flow, Failure> {
        let Some(step) = self.session.state.step.clone() else {
            return Ok(Flow::Continue(()));
        };
        let context = self.variables.clone();
        let submission = Submission { step, output, context };
        let advanced = self.current().and_then(|session| {
            let revision = session.state.revision;
            self.open.sessions.advance(&session.id, revision, &submission, now())
        });
        let Submission { output, context: submission_context, .. } = submission;
        let Advanced { session, verdict } = match advanced {
            Ok(advanced) => advanced,
            Err(error) => return self.failed(error, Some(output)),
        };
        match verdict {
            Verdict::Accepted => {
                self.terminal.styled(GREEN, "accepted")?;
                for note in near_misses(&session.workflow, &submission_context) {
                    self.terminal.styled(YELLOW, &format!("note: {note}"))?;
                }
                self.accepted(session);
            }
            Verdict::Returned { issues, suggestions } => {
                self.session = session;
                self.returned(output, &issues, &suggestions)?;
            }
            Verdict::Waiting => self.session = session,
            Verdict::Declined { reason } => {
                self.session = session;
                self.returned(output, &[show::declined(reason.as_deref())], &[])?;
            }
        }
        Ok(Flow::Continue(()))
    }

    /// What was kept for another try is not needed any more.
    pub(super) fn accepted(&mut self, session: Arc<Session>) {
        self.session = session;
        self.finished += 1;
        self.draft = Draft::default();
        self.variables.clear();
    }

    /// The output was not taken. What was reported with it was not taken either, and stays.
    pub(super) fn returned(
        &mut self,
        output: String,
        issues: &[String],
        suggestions: &[String],
    ) -> Result<(), Failure> {
        self.terminal.styled(RED, "not accepted")?;
        self.draft = Draft { text: output, is_returned: true };
        self.not_taken(issues, suggestions)
    }

    pub(super) fn not_taken(
        &mut self,
        issues: &[String],
        suggestions: &[String],
    ) -> Result<(), Failure> {
        show::issues(self.terminal, issues, suggestions)?;
        if !self.variables.is_empty() {
            let names: Vec<&str> = self.variables.keys().map(String::as_str).collect();
            self.terminal.styled(DIM, &format!("still set: {}", names.join(", ")))?;
        }
        Ok(())
    }

    pub(super) fn back(
        &mut self,
        step: &str,
        reason: &str,
        typed: String,
    ) -> Result<Flow, Failure> {
        let kept = Some(typed.clone()).filter(|typed| !typed.is_empty());
        if self.session.state.step.as_deref() == Some(step) {
            self.draft.text = kept.unwrap_or_else(|| self.draft.text.clone());
            let details = format!("`{step}` is the current step");
            let hint = Some(self.places()?);
            return self.refuse(&Refusal::InvalidParams { details, hint });
        }
        let done = self.done_before()?;
        let rewound = self.current().and_then(|session| {
            let revision = session.state.revision;
            self.open.sessions.rewind(&session.id, revision, step, reason, now())
        });
        match rewound {
            Ok(session) => {
                // What was produced there then is a better beginning than nothing.
                let then = done.into_iter().rev().find(|(id, _)| id == step);
                let text = kept.or(then.map(|(_, output)| output)).unwrap_or_default();
                self.draft = Draft { text, is_returned: false };
                self.variables.clear();
                self.arrive(session)?;
                self.terminal.styled(GREEN, &format!("back at `{step}`"))?;
                if !self.draft.text.is_empty() {
                    self.terminal.styled(DIM, "`:e` opens what you had")?;
                }
                Ok(Flow::Continue(()))
            }
            Err(Error::NeverThere { .. }) => {
                if let Some(text) = kept {
                    self.draft = Draft { text, is_returned: false };
                }
                let details = format!("the session has not been at step `{step}`");
                let hint = Some(self.places()?);
                self.refuse(&Refusal::InvalidParams { details, hint })
            }
            Err(error) => self.failed(error, kept),
        }
    }

    /// Where one can go back to, in a sentence.
    pub(super) fn places(&self) -> Result<String, Failure> {
        let mut places: Vec<String> = Vec::new();
        for (step, _) in self.done_before()? {
            let place = format!("`{step}`");
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if places.is_empty() {
            return Ok("this is the first step".to_owned());
        }
        Ok(format!("you have been at {}", places.join(", ")))
    }

    /// The finished steps and what they produced, the last one last.
    fn done_before(&self) -> Result<Vec<(String, String)>, Failure> {
        let session = &*self.session;
        let summary = self.open.sessions.summary(session, STEPS_MAX);
        let steps = summary.map_err(|error| refusal(&session.id, error))?.steps;
        Ok(steps.into_iter().map(|finished| (finished.step, finished.output)).collect())
    }

    /// The session, if it is still as the person has seen it. A gate does not change the revision, so the version
    /// is compared.
    pub(super) fn current(&self) -> Result<Arc<Session>, Error> {
        let session = self.open.sessions.open(&self.session.id)?;
        if session.version == self.session.version {
            return Ok(session);
        }
        let (given, current) = (self.session.state.revision, session.state.revision);
        let refusal = Engine::WrongRevision { given, current };
        Err(Error::Refused { refusal, session: Some(session) })
    }

    /// What did not come to pass: somebody else was first, or it is refused.
    pub(super) fn failed(&mut self, error: Error, typed: Option<String>) -> Result<Flow, Failure> {
        match error {
            Error::Refused {
                refusal:
                    Engine::WrongRevision { .. } | Engine::NotCurrent { .. } | Engine::NotWaiting,
                session: Some(session),
            }
            | Error::NoLonger { session } => self.overtaken(session, typed),
            error => {
                if let Some(text) = typed {
                    self.draft = Draft { text, is_returned: false };
                }
                let refusal = refusal(&self.session.id, error);
                self.refuse(&refusal)
            }
        }
    }
}
