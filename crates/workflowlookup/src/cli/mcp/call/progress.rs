//! One line on standard error that says how far a call is, where somebody looks. It is redrawn in place, and gone at the
//! end.

use std::future::Future;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use orchestrator::Progress;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::cli::terminal::{sanitize, shortened};
use service::words::one_line;

/// Calls that take no longer than this show nothing.
const PATIENCE: Duration = Duration::from_millis(300);
const REDRAWN_EVERY: Duration = Duration::from_millis(100);
/// The width of a terminal that does not tell.
const WIDTH_UNKNOWN: usize = 80;
/// To the beginning of the line, and nothing behind that.
const CLEAR: &str = "\r\u{1b}[2K";

/// Waits for what is done, and shows how far it is.
pub(in crate::cli::mcp) async fn shown<T>(
    what: &str,
    told: watch::Receiver<Option<Progress>>,
    line: &Line,
    act: impl Future<Output = T>,
) -> T {
    if !io::stderr().is_terminal() || std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
        return act.await;
    }
    let began = Instant::now();
    // Also where nobody waits any more.
    let _gone = Gone(line);
    let mut ticks = interval_at(tokio::time::Instant::now() + PATIENCE, REDRAWN_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut act = std::pin::pin!(act);
    loop {
        tokio::select! {
            biased;
            done = &mut act => return done,
            _ = ticks.tick() => {}
        }
        let text = text(what, told.borrow().as_ref(), began.elapsed());
        line.draw(&text);
    }
}

fn text(what: &str, progress: Option<&Progress>, elapsed: Duration) -> String {
    let mut text = format!("{what}: ");
    match progress {
        None => text.push_str("waiting"),
        Some(Progress { done, total, message }) => {
            match total.filter(|total| *total > 0.0) {
                Some(total) => {
                    let percent = (done / total * 100.0).clamp(0.0, 100.0);
                    text.push_str(&format!("{percent:.0} % ({done} of {total})"));
                }
                None => text.push_str(&format!("{done} done")),
            }
            if let Some(message) = message {
                text.push_str(&format!(", {}", one_line(message, WIDTH_UNKNOWN)));
            }
        }
    }
    text.push_str(&format!(" · {} s", elapsed.as_secs()));
    text
}

/// The line on the terminal, if one is there.
#[derive(Debug, Default)]
pub(in crate::cli::mcp) struct Line(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    drawn: String,
    /// Somebody else writes on the terminal.
    is_held: bool,
}

impl Line {
    fn draw(&self, text: &str) {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        // A line that reaches the last column may be broken there.
        let width = if columns == 0 { WIDTH_UNKNOWN } else { columns }.saturating_sub(1);
        let text = shortened(&sanitize(text), width);
        let mut state = self.lock();
        if text != state.drawn && !state.is_held {
            // Where it cannot be drawn, the call goes on all the same.
            let _ = write!(io::stderr().lock(), "{CLEAR}{text}");
            state.drawn = text;
        }
    }

    /// Writes a line that stays, above.
    pub(in crate::cli::mcp) fn write(&self, text: &str) {
        let mut state = self.lock();
        state.clear();
        // Where it cannot be written, what goes on goes on all the same.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Takes the line away until what is returned goes.
    pub(super) fn hold(&self) -> Held<'_> {
        let mut state = self.lock();
        state.clear();
        state.is_held = true;
        Held(self)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn clear(&mut self) {
        if !self.drawn.is_empty() {
            let _ = write!(io::stderr().lock(), "{CLEAR}");
            self.drawn.clear();
        }
    }
}

pub(super) struct Held<'l>(&'l Line);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.lock().is_held = false;
    }
}

struct Gone<'l>(&'l Line);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is() {
        let progress = |done, total, message: Option<&str>| {
            let progress = Progress { done, total, message: message.map(str::to_owned) };
            text("s.t", Some(&progress), Duration::from_millis(2_900))
        };
        assert_eq!(text("s.t", None, Duration::ZERO), "s.t: waiting · 0 s");
        assert_eq!(progress(3.0, Some(8.0), None), "s.t: 38 % (3 of 8) · 2 s");
        assert_eq!(progress(9.0, Some(8.0), Some("a\nb")), "s.t: 100 % (9 of 8), a b · 2 s");
        assert_eq!(progress(2.5, None, Some("half")), "s.t: 2.5 done, half · 2 s");
        assert_eq!(progress(1.0, Some(0.0), None), "s.t: 1 done · 2 s");
        assert_eq!(progress(f64::NAN, Some(1.0), None), "s.t: NaN % (NaN of 1) · 2 s");
    }
}
