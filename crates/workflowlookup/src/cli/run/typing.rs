//! Taking an output from whoever types it: lines and commands, until something is to be done with the session.

use std::path::Path;

use engine::OUTPUT_BYTES_MAX;

use super::super::Failure;
use super::super::context::read_pair;
use super::super::input::read_file;
use super::super::terminal::{DIM, YELLOW};
use super::input::{Command, Entry, too_large};
use super::show::{self, Detail};
use super::walk::{Draft, REFUSED, Walk};
use service::error::Refusal;

/// The variable that a session keeps itself.
const RESERVED: &str = "_loops";

/// What somebody wants at a step.
pub(super) enum Wish {
    HandIn(String),
    Back { step: String, reason: String, typed: String },
    Leave,
    Stop(&'static str),
}

/// The lines so far.
#[derive(Default)]
struct Text {
    lines: Vec<String>,
    /// With an end of line behind each.
    bytes: usize,
    is_broken: bool,
}

impl Text {
    fn push(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push(line);
    }

    /// The last line has no end when it is handed in.
    fn is_too_large(&self) -> bool {
        self.bytes > OUTPUT_BYTES_MAX + 1
    }

    fn is_blank(&self) -> bool {
        self.lines.iter().all(|line| line.trim().is_empty())
    }

    fn take(&mut self) -> String {
        std::mem::take(self).lines.join("\n")
    }
}

impl Walk<'_> {
    pub(super) fn wish(&mut self, detail: Detail) -> Result<Wish, Failure> {
        self.tell(detail)?;
        let mut text = Text::default();
        loop {
            if text.is_too_large() {
                self.keep(text.take());
                if let Some(wish) = self.refused(too_large())? {
                    return Ok(wish);
                }
            }
            if self.input.is_terminal() {
                self.terminal.ask(DIM, "> ")?;
            } else {
                self.terminal.flush()?;
            }
            let entry = match self.input.entry() {
                Err(Failure::Refusal(refusal)) => match self.refused(refusal)? {
                    Some(wish) => return Ok(wish),
                    None => continue,
                },
                entry => entry?,
            };
            let is_end = match entry {
                Entry::Line(line) => {
                    if self.input.may_be_cut(&line) {
                        let why = "the terminal may have cut that line; `:e` and `:f PATH` take longer ones";
                        self.terminal.complain(YELLOW, "warning", why, None)?;
                    }
                    text.push(line);
                    continue;
                }
                Entry::Broken(line) => {
                    text.is_broken = true;
                    text.push(line);
                    continue;
                }
                Entry::Command(command) => {
                    if let Some(wish) = self.obey(command, &mut text)? {
                        return Ok(wish);
                    }
                    continue;
                }
                Entry::Dot => false,
                Entry::End => true,
            };
            if is_end && self.input.is_terminal() {
                // Ctrl-D leaves the cursor where it was.
                self.terminal.line("")?;
            }
            match (text.is_blank(), is_end) {
                (true, true) if self.input.is_terminal() => return Ok(Wish::Leave),
                (true, true) => {
                    return Ok(Wish::Stop("the input ended before the workflow was complete"));
                }
                (true, false) => {
                    text.take();
                    self.terminal.styled(YELLOW, "An empty output is not handed in.")?;
                }
                (false, _) if text.is_broken => {
                    self.keep(text.take());
                    let why = "the output is not UTF-8 text".to_owned();
                    if let Some(wish) =
                        self.refused(invalid(why, "`:e` opens what is left of it"))?
                    {
                        return Ok(wish);
                    }
                }
                (false, _) => return Ok(Wish::HandIn(text.take())),
            }
        }
    }

    /// Says what can be typed: at length once, and in a few words from then on.
    fn tell(&mut self, detail: Detail) -> Result<(), Failure> {
        if !self.input.is_terminal() {
            return Ok(());
        }
        self.terminal.line("")?;
        if !self.is_told {
            let how =
                "Type the output, and end it with a line that has only a dot, or with Ctrl-D.";
            show::prose(self.terminal, DIM, how)?;
            self.is_told = true;
        }
        let edit = if self.draft.text.is_empty() { ":e editor" } else { ":e edit what you had" };
        let show = if detail == Detail::Heading { ":p prompt · " } else { "" };
        let short =
            format!(". hand in · {edit} · :f file · :set variable · {show}:q leave · :? help");
        show::prose(self.terminal, DIM, &short)?;
        Ok(())
    }

    fn obey(&mut self, command: Command, text: &mut Text) -> Result<Option<Wish>, Failure> {
        match command {
            Command::Edit => return self.edit(text),
            Command::File(path) => return self.file(&path, text),
            Command::Set(pair) => return self.set(&pair),
            Command::Show => {
                show::step(
                    self.terminal,
                    &self.open.sessions,
                    &self.session,
                    self.finished + 1,
                    Detail::WithOpening,
                )?;
                self.terminal.line("")?;
            }
            Command::Help => show::commands(self.terminal)?,
            Command::Back { step, reason } => {
                if !step.is_empty() && !reason.is_empty() {
                    let typed = if text.is_blank() { String::new() } else { text.take() };
                    return Ok(Some(Wish::Back { step, reason, typed }));
                }
                let why = "going back takes a step and a reason".to_owned();
                let hint = format!("`:back STEP REASON`; {}", self.places()?);
                return self.refused(invalid(why, &hint));
            }
            Command::Quit => {
                if !text.is_blank() {
                    self.terminal.styled(YELLOW, "What you typed was not handed in.")?;
                }
                return Ok(Some(Wish::Leave));
            }
            Command::Skip => {
                let why = "a step cannot be skipped: its output is what the next one builds on";
                let hint = "`:q` leaves, and `:back STEP REASON` goes back";
                return self.refused(invalid(why.to_owned(), hint));
            }
            Command::Unknown(line) => {
                let hint = format!("`:{line}`, if it is text");
                self.complain(&invalid(format!("`{line}` is no command"), &hint))?;
                show::commands(self.terminal)?;
                return Ok(self.go_on());
            }
        }
        Ok(None)
    }

    fn edit(&mut self, text: &mut Text) -> Result<Option<Wish>, Failure> {
        let mut before = std::mem::take(&mut self.draft);
        if !text.is_blank() {
            before.is_returned = false;
            if !before.text.is_empty() {
                before.text += "\n\n";
            }
            before.text += &text.take();
        }
        self.terminal.flush()?;
        let edited = match self.editor.edit(&before.text) {
            Ok(edited) => edited,
            Err(refusal) => {
                self.draft = before;
                return self.refused(refusal);
            }
        };
        let is_same = edited.text.trim_end() == before.text.trim_end();
        let is_returned = before.is_returned && is_same;
        self.draft = Draft { text: edited.text.clone(), is_returned };
        let why = match edited.failure {
            Some(failure) => failure,
            None if edited.text.trim().is_empty() => "the text is empty".to_owned(),
            // Somebody who has set a variable may hope for more.
            None if is_returned && self.variables.is_empty() => "the text is as it was".to_owned(),
            None => return Ok(Some(Wish::HandIn(edited.text))),
        };
        let again = if self.draft.text.is_empty() { "" } else { " `:e` opens it again." };
        self.terminal.styled(YELLOW, &format!("Nothing was handed in: {why}.{again}"))?;
        Ok(self.go_on())
    }

    fn file(&mut self, path: &Path, text: &mut Text) -> Result<Option<Wish>, Failure> {
        if path.as_os_str().is_empty() {
            return self.refused(invalid("there is no file named".to_owned(), "`:f PATH`"));
        }
        let hint = "name a file; `~/` is your home folder";
        let output = match read_file(path, "output", OUTPUT_BYTES_MAX as u64, hint) {
            Ok(output) => output,
            Err(refusal) => return self.refused(refusal),
        };
        if output.trim().is_empty() {
            let why = format!("the file `{}` is empty", path.display());
            return self.refused(invalid(why, "an empty output is not handed in"));
        }
        if text.is_blank() {
            return Ok(Some(Wish::HandIn(output)));
        }
        Ok(Some(Wish::HandIn(format!("{}\n{output}", text.take()))))
    }

    fn set(&mut self, pair: &str) -> Result<Option<Wish>, Failure> {
        let Some((name, value)) = read_pair(pair) else {
            let why = format!("`{pair}` is no context variable");
            return self.refused(invalid(why, "write `:set name=value`"));
        };
        if name == RESERVED {
            let why = engine::Refusal::Reserved { variable: RESERVED }.to_string();
            return self.refused(invalid(why, "the session counts loops itself"));
        }
        // Said as it was read: text and a number look alike when they are typed.
        self.terminal.styled(DIM, &format!("with the output: {name} = {value}"))?;
        self.variables.insert(name, value);
        Ok(None)
    }

    fn keep(&mut self, text: String) {
        self.draft = Draft { text, is_returned: false };
    }

    /// Nothing typed is lost: whoever types goes on with the next line.
    fn refused(&mut self, refusal: Refusal) -> Result<Option<Wish>, Failure> {
        self.complain(&refusal)?;
        Ok(self.go_on())
    }

    /// What comes through a pipe was meant for what was refused, and must not end up elsewhere.
    fn go_on(&self) -> Option<Wish> {
        (!self.input.is_terminal()).then_some(Wish::Stop(REFUSED))
    }
}

fn invalid(details: String, hint: &str) -> Refusal {
    Refusal::InvalidParams { details, hint: Some(hint.to_owned()) }
}
