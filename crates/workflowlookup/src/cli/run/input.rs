//! What is typed, a line at a time: text, or a command, which begins with a colon. Nothing here knows a session.

use std::io::{self, BufRead, IsTerminal, Read, StdinLock};
use std::path::PathBuf;

use engine::OUTPUT_BYTES_MAX;

use super::super::Failure;
use service::error::Refusal;

/// What can be typed besides an output.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    (".", "hand in what you have typed; so does Ctrl-D"),
    (":e", "write in your editor ($VISUAL or $EDITOR); it opens with what you have so far"),
    (":f PATH", "hand in a file, behind what you have typed, if anything"),
    (":set NAME=VALUE", "report a context variable with the output; the value is JSON or text"),
    (":p", "show the step again"),
    (":back STEP REASON", "go back to an earlier step; what came after it stays in the history"),
    (":q", "leave; the session stays, and can be resumed"),
    (":?", "show this"),
    ("::", "a line of text that begins with a colon"),
];

/// A terminal hands over no more of one line than this; the rest is lost before we see it.
const TERMINAL_LINE_BYTES: usize = 4095;

/// `\r\n`.
const LINE_END_BYTES: usize = 2;

pub(crate) struct Input {
    lines: StdinLock<'static>,
    is_terminal: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Line(String),
    /// A line that is no UTF-8 text, as far as it can be shown.
    Broken(String),
    Command(Command),
    /// The end of an output.
    Dot,
    /// The end of everything, or of an output where somebody types.
    End,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Edit,
    File(PathBuf),
    Set(String),
    Show,
    Back { step: String, reason: String },
    Quit,
    Help,
    Skip,
    Unknown(String),
}

impl Input {
    pub(crate) fn new() -> Self {
        let lines = io::stdin().lock();
        let is_terminal = lines.is_terminal();
        Self { lines, is_terminal }
    }

    /// Whether somebody sits there and can be asked.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Whether a terminal may have handed over only a part of a line.
    pub(super) fn may_be_cut(&self, line: &str) -> bool {
        self.is_terminal && line.len() >= TERMINAL_LINE_BYTES
    }

    pub(super) fn entry(&mut self) -> Result<Entry, Failure> {
        Ok(match self.line()? {
            None => Entry::End,
            Some(Ok(line)) => read(&line),
            Some(Err(line)) => Entry::Broken(line),
        })
    }

    /// One line without its end; an error where it is no UTF-8 text. None at the end.
    pub(crate) fn line(&mut self) -> Result<Option<Result<String, String>>, Failure> {
        let mut bytes = Vec::new();
        let bound = OUTPUT_BYTES_MAX + LINE_END_BYTES;
        (&mut self.lines).take(bound as u64 + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > OUTPUT_BYTES_MAX {
            return Err(too_large().into());
        }
        let text = String::from_utf8(line.to_vec());
        Ok(Some(text.map_err(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())))
    }
}

pub(super) fn too_large() -> Refusal {
    let limit = engine::Refusal::TooLarge { what: "an output", limit: OUTPUT_BYTES_MAX };
    Refusal::InvalidParams { details: limit.to_string(), hint: Some("make it shorter".to_owned()) }
}

fn read(line: &str) -> Entry {
    if line == "." {
        return Entry::Dot;
    }
    let Some(command) = line.strip_prefix(':') else {
        return Entry::Line(line.to_owned());
    };
    if command.starts_with(':') {
        return Entry::Line(command.to_owned());
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    Entry::Command(match name {
        "e" if rest.is_empty() => Command::Edit,
        "f" => Command::File(path(rest)),
        "set" => Command::Set(rest.to_owned()),
        "p" if rest.is_empty() => Command::Show,
        "back" => {
            let (step, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            Command::Back { step: step.to_owned(), reason: reason.trim().to_owned() }
        }
        "q" | "quit" if rest.is_empty() => Command::Quit,
        "?" | "help" if rest.is_empty() => Command::Help,
        "skip" => Command::Skip,
        _ => Command::Unknown(line.trim_end().to_owned()),
    })
}

/// No shell reads what is typed here, so the home folder is ours to find.
fn path(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Entry {
        Entry::Line(text.to_owned())
    }

    #[test]
    fn what_is_text_and_what_is_not() {
        for text in ["", "text", " :e", "..", ". ", "a :q"] {
            assert_eq!(read(text), line(text));
        }
        assert_eq!(read("."), Entry::Dot);
        assert_eq!(read("::e"), line(":e"));
        assert_eq!(read("::"), line(":"));
    }

    #[test]
    fn commands() {
        let back = |step: &str, reason: &str| Command::Back {
            step: step.to_owned(),
            reason: reason.to_owned(),
        };
        for (text, command) in [
            (":e", Command::Edit),
            (":e ", Command::Edit),
            (":f a b.md", Command::File("a b.md".into())),
            (":set a=b c", Command::Set("a=b c".to_owned())),
            (":back one  it was wrong ", back("one", "it was wrong")),
            (":back", back("", "")),
            (":q", Command::Quit),
            (":?", Command::Help),
            (":skip it", Command::Skip),
            (":", Command::Unknown(":".to_owned())),
            (":e now", Command::Unknown(":e now".to_owned())),
            (":param x: y", Command::Unknown(":param x: y".to_owned())),
        ] {
            assert_eq!(read(text), Entry::Command(command), "{text}");
        }
    }
}
