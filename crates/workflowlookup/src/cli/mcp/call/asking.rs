//! Asks whoever sits at the terminal what a server wants to know in the middle of a call. Where nobody sits there, it
//! says so. What is asked, and in which order, is in `form`.

use std::io::{self, IsTerminal as _, Write as _};
use std::pin::Pin;
use std::sync::Arc;

use orchestrator::{Answer, Asker, Form};
use tokio::sync::{Mutex, oneshot};
use unicode_width::UnicodeWidthChar as _;

mod form;

use form::Said;

use super::progress::Line;
use crate::cli::run::{Input, lines};
use crate::cli::terminal::{HEADING, sanitize};

/// The width of a terminal that does not tell.
const WIDTH_UNKNOWN: usize = 80;

#[derive(Debug, Clone, Default)]
pub(in crate::cli::mcp) struct AtTerminal {
    /// Nothing else is written while somebody answers.
    line: Arc<Line>,
    /// Two questions at a time would be typed into each other.
    turn: Arc<Mutex<()>>,
}

impl AtTerminal {
    /// The line that says how far the call is.
    pub(in crate::cli::mcp) fn line(&self) -> &Arc<Line> {
        &self.line
    }
}

impl Asker for AtTerminal {
    fn ask(&self, form: Form) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            // Standard output may go elsewhere.
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                say(Said::Ours(&format!(
                    "`{}` asks, and nobody is at a terminal to answer; it is told so:",
                    form.server
                )));
                say(Said::Theirs(&form.message));
                return Answer::Cancelled;
            }
            let _held = self.line.hold();
            let (tell, told) = oneshot::channel();
            // Reading what is typed waits, and the call goes on meanwhile. A thread of its own, for nobody waits for it at
            // the end.
            let asking = std::thread::Builder::new().spawn(move || {
                let mut input = Input::new();
                let _ = tell.send(form::fill_in(
                    &form,
                    &mut |prompt| typed(&mut input, prompt),
                    &mut say,
                ));
            });
            match asking {
                Ok(_) => told.await.unwrap_or(Answer::Cancelled),
                Err(_) => Answer::Cancelled,
            }
        })
    }
}

/// A line that is typed behind a prompt. None where somebody ends the input, or types what is no text.
fn typed(input: &mut Input, prompt: &str) -> Option<String> {
    let mut err = anstream::stderr().lock();
    let _ = write!(err, "{HEADING}{}{HEADING:#} ", sanitize(prompt));
    let _ = err.flush();
    drop(err);
    match input.line() {
        Ok(Some(Ok(line))) => Some(line),
        Ok(None) => {
            say(Said::Ours(""));
            None
        }
        Ok(Some(Err(_))) | Err(_) => None,
    }
}

/// In front of every line that is a server's.
const MARK: &str = "| ";

/// Lines on the terminal, broken to its width.
fn say(said: Said<'_>) {
    let (mark, text) = match said {
        Said::Ours(text) => ("", text),
        Said::Theirs(text) => (MARK, text),
    };
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    let width = if columns == 0 { WIDTH_UNKNOWN } else { columns };
    let width = width.saturating_sub(mark.len()).max(1);
    let is_terminal = io::stderr().is_terminal();
    let mut err = anstream::stderr().lock();
    // Where it cannot be said, what is answered decides.
    for line in lines(text, is_terminal.then_some(width)) {
        // What is not broken at words would go on in the next line without its mark.
        for piece in pieces(&line.text, if is_terminal { width } else { usize::MAX }) {
            let _ = writeln!(err, "{mark}{}", sanitize(piece));
        }
    }
    if text.is_empty() {
        let _ = writeln!(err);
    }
}

/// A line in pieces of so many columns at most; an empty one is a piece too.
fn pieces(line: &str, width: usize) -> Vec<&str> {
    let (mut pieces, mut begin, mut columns) = (Vec::new(), 0, 0);
    for (at, letter) in line.char_indices() {
        let wide = letter.width().unwrap_or(1);
        if columns + wide > width && at > begin {
            pieces.push(&line[begin..at]);
            (begin, columns) = (at, 0);
        }
        columns += wide;
    }
    pieces.push(&line[begin..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn lines_are_broken_where_the_terminal_would() {
        assert_eq!(pieces("", 3), [""]);
        assert_eq!(pieces("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(pieces("日本語", 3), ["日", "本", "語"]);
        assert_eq!(pieces("abc", usize::MAX), ["abc"]);
    }
}
