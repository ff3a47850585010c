//! Where commands print. Colour and tables are for terminals; a pipe gets plain, stable lines.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

mod fit;

pub(crate) use untrusted_text::{escape, sanitize};

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
        writeln!(self.out, "{}", sanitize(text))
    }

    pub(crate) fn styled(&mut self, style: Style, text: &str) -> io::Result<()> {
        writeln!(self.out, "{style}{}{style:#}", sanitize(text))
    }

    /// Prints several lines at once.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{}", sanitize(text))
    }

    /// Prints a value as indented JSON. What would steer a terminal is escape, so that nothing is lost.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line(&escape(&serde_json::to_string_pretty(value)?))?;
        self.flush()
    }

    /// Prints JSON to the byte, for a file or another program. Only a terminal gets what would steer it escape.
    pub(crate) fn verbatim(&mut self, json: &str) -> io::Result<()> {
        if self.is_terminal {
            return self.text(&escape(json));
        }
        self.bytes(json.as_bytes())
    }

    /// Prints what a stranger says: to the byte for a file or another program, and on a terminal without what would
    /// steer it. There it ends with a line.
    pub(crate) fn foreign(&mut self, text: &str) -> io::Result<()> {
        if !self.is_terminal {
            return self.bytes(text.as_bytes());
        }
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.text(text)?;
        self.text(end)
    }

    /// Prints to the byte, whatever is there.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        // Past the stream that takes colours out: it would take more.
        io::stdout().lock().write_all(bytes)
    }

    /// A line with a word in front that says how it is meant.
    pub(crate) fn labelled(&mut self, style: Style, label: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "{style}{label}{style:#}: {}", sanitize(text))
    }

    /// A line in pieces, each in its own style.
    pub(crate) fn pieces(&mut self, pieces: &[(Style, &str)]) -> io::Result<()> {
        for (style, text) in pieces {
            write!(self.out, "{style}{}{style:#}", sanitize(text))?;
        }
        writeln!(self.out)
    }

    /// Something to answer on the same line.
    pub(crate) fn ask(&mut self, style: Style, text: &str) -> io::Result<()> {
        write!(self.out, "{style}{}{style:#}", sanitize(text))?;
        self.flush()
    }

    /// Whether somebody looks.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
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

    /// The same, with long cells of some columns cut on a terminal that is not wide enough.
    pub(crate) fn fitted_table(
        &mut self,
        headings: &[&str],
        mut rows: Vec<Vec<String>>,
        may_be_cut: &[usize],
    ) -> io::Result<()> {
        if let Some(width) = self.width() {
            fit::fit(headings, &mut rows, may_be_cut, width);
        }
        self.table(headings, &rows)
    }

    /// Lines on standard error, as they are.
    pub(crate) fn aside(&mut self, text: &str) -> io::Result<()> {
        let printed = self.flush();
        writeln!(anstream::stderr().lock(), "{}", sanitize(text))?;
        printed
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
        // In one piece: others write there too.
        let mut text = format!("{style}{label}{style:#}: {}\n", sanitize(message));
        if let Some(hint) = hint {
            text.push_str(&format!("  try: {}\n", sanitize(hint)));
        }
        anstream::stderr().lock().write_all(text.as_bytes())?;
        printed
    }
}

/// As much of a text as so many columns have room for.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width { text.to_owned() } else { fit::cut(text, width) }
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
