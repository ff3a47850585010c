//! A step that a person has to confirm: whoever sits at the terminal is one. They decide about what was shown to
//! them, and nothing that came in its place.

use engine::{Channel, Decision, LoopGate, Submission};
use store::Version;

use super::super::Failure;
use super::super::terminal::{GREEN, HEADING, YELLOW};
use super::show;
use super::walk::{Flow, Walk};
use service::error::Refusal;
use service::sessions::Ruling;

const QUESTION: &str = "Confirm? [y]es, [n]o with a reason, [l]ater";

/// What somebody answers.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No(Option<String>),
    Later,
}

impl Walk<'_> {
    pub(super) fn decide(&mut self, waiting: &Submission) -> Result<Flow, Failure> {
        show::waiting(self.terminal, waiting)?;
        match self.ask_answer()? {
            Ok(Answer::Yes) => self.approve(),
            Ok(Answer::No(reason)) => self.decline(waiting, reason),
            Ok(Answer::Later) => self.leave(),
            Err(flow) => Ok(flow),
        }
    }

    /// Whether loops begin. A rejection leaves the session before them, and there is nothing to do then.
    pub(super) fn decide_loop(&mut self, gate: &LoopGate) -> Result<Flow, Failure> {
        show::loop_gate(self.terminal, &self.open.sessions, &self.session, gate)?;
        let (is_approved, reason) = match self.ask_answer()? {
            Ok(Answer::Yes) => (true, None),
            Ok(Answer::No(reason)) => (false, reason),
            Ok(Answer::Later) => return self.leave(),
            Err(flow) => return Ok(flow),
        };
        let (id, version) = (&self.session.id, self.session.version);
        match self.open.rule(self.ruling(id, version, reason, is_approved)) {
            Ok(session) if is_approved => {
                self.terminal.styled(GREEN, "confirmed")?;
                self.session = session;
                Ok(Flow::Continue(()))
            }
            Ok(session) => {
                self.session = session;
                self.terminal.styled(YELLOW, "not confirmed: the loop does not begin")?;
                self.leave()
            }
            Err(error) => self.failed(error, None),
        }
    }

    /// What somebody answers, with the reason where it is no; or how the walk goes on without an answer.
    fn ask_answer(&mut self) -> Result<Result<Answer, Flow>, Failure> {
        let answer = loop {
            if self.input.is_terminal() {
                self.terminal.ask(HEADING, &format!("{QUESTION}: "))?;
            } else {
                self.terminal.line(QUESTION)?;
                self.terminal.flush()?;
            }
            let line = match self.input.line() {
                Err(Failure::Refusal(refusal)) => return self.refuse(&refusal).map(Err),
                line => line?,
            };
            let line = match line {
                None if self.input.is_terminal() => {
                    self.terminal.line("")?;
                    return self.leave().map(Err);
                }
                None => {
                    let why = "the input ended while a person has to decide";
                    return self.stop(why).map(Err);
                }
                Some(Ok(line) | Err(line)) => line,
            };
            match read(&line) {
                Some(answer) => break answer,
                None => {
                    let details = format!("`{}` is no answer", line.trim());
                    let hint = Some("`y`, `n` and why not, or `l`".to_owned());
                    let refusal = Refusal::InvalidParams { details, hint };
                    if let Flow::Break(outcome) = self.refuse(&refusal)? {
                        return Ok(Err(Flow::Break(outcome)));
                    }
                }
            }
        };
        Ok(Ok(match answer {
            Answer::No(None) => match self.why() {
                Err(Failure::Refusal(refusal)) => return self.refuse(&refusal).map(Err),
                reason => Answer::No(reason?),
            },
            answer => answer,
        }))
    }

    /// The next line, wherever it comes from. An empty one, or none, is no reason.
    fn why(&mut self) -> Result<Option<String>, Failure> {
        if self.input.is_terminal() {
            self.terminal.ask(HEADING, "Why not? ")?;
        } else {
            self.terminal.line("Why not?")?;
            self.terminal.flush()?;
        }
        let (Ok(line) | Err(line)) = self.input.line()?.unwrap_or(Ok(String::new()));
        Ok(Some(line.trim().to_owned()).filter(|reason| !reason.is_empty()))
    }

    fn approve(&mut self) -> Result<Flow, Failure> {
        let (id, version) = (&self.session.id, self.session.version);
        match self.open.rule(self.ruling(id, version, None, true)) {
            Ok(session) => {
                self.terminal.styled(GREEN, "confirmed")?;
                self.accepted(session);
                Ok(Flow::Continue(()))
            }
            Err(error) => self.failed(error, None),
        }
    }

    fn decline(&mut self, waiting: &Submission, reason: Option<String>) -> Result<Flow, Failure> {
        let (id, version) = (&self.session.id, self.session.version);
        match self.open.rule(self.ruling(id, version, reason.clone(), false)) {
            Ok(session) => {
                self.session = session;
                self.variables = waiting.context.clone();
                let why = show::declined(reason.as_deref());
                self.returned(waiting.output.clone(), &[why], &[])?;
                Ok(Flow::Continue(()))
            }
            Err(error) => self.failed(error, None),
        }
    }

    fn ruling<'a>(
        &self,
        session: &'a str,
        version: Version,
        reason: Option<String>,
        is_approved: bool,
    ) -> Ruling<'a> {
        let decision = Decision { who: self.open.user.clone(), channel: Channel::Cli, reason };
        Ruling { session, version, is_approved, decision, right: None }
    }
}

fn read(line: &str) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = word.trim_end_matches([',', ':', '.']).to_lowercase();
    let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    match (&*word, rest) {
        ("y" | "yes", None) => Some(Answer::Yes),
        ("n" | "no", reason) => Some(Answer::No(reason)),
        ("l" | "later" | ":q", None) => Some(Answer::Later),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let no = |reason: &str| Some(Answer::No(Some(reason.to_owned())));
        assert_eq!(read("y"), Some(Answer::Yes));
        assert_eq!(read(" Yes "), Some(Answer::Yes));
        assert_eq!(read("n"), Some(Answer::No(None)));
        assert_eq!(read("no, it is too short"), no("it is too short"));
        assert_eq!(read("L"), Some(Answer::Later));
        // Nothing is confirmed by a text that happens to begin so.
        for line in ["", "y but not this", "yesterday", "nothing", "."] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
