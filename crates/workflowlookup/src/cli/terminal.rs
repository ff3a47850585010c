//! Where commands print. Colour and tables are for terminals; a pipe gets plain, stable lines.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
pub(crate) const RED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
pub(crate) const CYAN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));
pub(crate) const YELLOW: Style =
    Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// The width of a terminal that does not tell.
const WIDTH_UNKNOWN: usize = 80;

pub(crate) struct Terminal {
    out: io::BufWriter<AutoStream<io::Stdout>>,
    is_terminal: bool,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let out = io::BufWriter::new(AutoStream::auto(stdout));
        Self { out, is_terminal }
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", harmless(text))
    }

    pub(crate) fn styled(&mut self, style: Style, text: &str) -> io::Result<()> {
        writeln!(self.out, "{style}{}{style:#}", harmless(text))
    }

    /// Prints several lines at once.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{}", harmless(text))
    }

    /// Prints a value as indented JSON. What would steer a terminal is escaped, so that nothing is lost.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line(&escaped(&serde_json::to_string_pretty(value)?))?;
        self.flush()
    }

    /// Prints JSON to the byte, for a file or another program. Only a terminal gets what would steer it escaped.
    pub(crate) fn verbatim(&mut self, json: &str) -> io::Result<()> {
        if self.is_terminal {
            return self.text(&escaped(json));
        }
        self.flush()?;
        // Past the stream that takes colours out: it would take more.
        io::stdout().lock().write_all(json.as_bytes())
    }

    /// A line with a word in front that says how it is meant.
    pub(crate) fn labelled(&mut self, style: Style, label: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "{style}{label}{style:#}: {}", harmless(text))
    }

    /// A line in pieces, each in its own style.
    pub(crate) fn pieces(&mut self, pieces: &[(Style, &str)]) -> io::Result<()> {
        for (style, text) in pieces {
            write!(self.out, "{style}{}{style:#}", harmless(text))?;
        }
        writeln!(self.out)
    }

    /// Something to answer on the same line.
    pub(crate) fn ask(&mut self, style: Style, text: &str) -> io::Result<()> {
        write!(self.out, "{style}{}{style:#}", harmless(text))?;
        self.flush()
    }

    /// How many columns there are. None where nobody looks: lines stay as long as they are.
    pub(crate) fn width(&self) -> Option<usize> {
        if !self.is_terminal {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        Some(if columns == 0 { WIDTH_UNKNOWN } else { columns })
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Rows under headings: aligned on a terminal, tab-separated and without headings otherwise.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
        if !self.is_terminal {
            for row in rows {
                self.line(&row.join("\t"))?;
            }
            return Ok(());
        }
        let width_of = |column: usize| {
            let cells = rows.iter().map(|row| row[column].width());
            cells.chain([headings[column].width()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..headings.len()).map(width_of).collect();
        let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
        self.styled(HEADING, &aligned(&headings, &widths))?;
        for row in rows {
            self.line(&aligned(row, &widths))?;
        }
        Ok(())
    }

    /// Says what is wrong, on standard error, with what to try on a line of its own.
    pub(crate) fn complain(
        &mut self,
        style: Style,
        label: &str,
        message: &str,
        hint: Option<&str>,
    ) -> io::Result<()> {
        // What was printed comes first; where that fails, this is still said.
        let printed = self.flush();
        let mut err = anstream::stderr().lock();
        writeln!(err, "{style}{label}{style:#}: {}", harmless(message))?;
        if let Some(hint) = hint {
            writeln!(err, "  try: {}", harmless(hint))?;
        }
        printed
    }
}

/// What would steer a terminal, as JSON and TOML write it inside a string.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if steers(letter) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// Texts come from files that strangers wrote: what would steer a terminal is shown, not obeyed.
fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(steers) {
        Cow::Owned(text.replace(steers, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Control characters, and those that turn the direction of writing around.
fn steers(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (letter.is_control() && letter != '\n' && letter != '\t')
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Who wants to know whether all was printed has flushed before.
        let _ = self.out.flush();
    }
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| {
        let padding = width.saturating_sub(cell.width());
        format!("{cell}{}", " ".repeat(padding))
    });
    let cells: Vec<String> = cells.collect();
    cells.join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_obeyed() {
        assert_eq!(
            harmless("a\u{1b}[2J\u{7}b\u{9b}c\u{202e}d"),
            "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}d"
        );
        assert_eq!(harmless("two\nlines\tand 名"), "two\nlines\tand 名");
    }
}
