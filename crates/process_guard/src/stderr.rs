//! What a child says on its standard error: read for ever, whatever it is, so that no child waits for us. The last
//! lines are kept for when it ends, and some are handed on to the log.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout_at};

/// How much of a line is kept, in bytes.
pub const LINE_BYTES: usize = 4 * 1024;
/// How many lines are kept for later.
pub const KEPT_LINES: usize = 20;
/// How many lines are handed on in a second. Of the others only the number is.
const LINES_A_SECOND: u32 = 50;

/// What is read at once.
const READ_BYTES: usize = 16 * 1024;
const SECOND: Duration = Duration::from_secs(1);

/// The last lines of a child. A copy sees the same ones.
#[derive(Clone, Default)]
pub struct LastWords(Arc<Mutex<VecDeque<Line>>>);

/// The beginning of a line, as it came.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// Reads to the end, which is when the child and everybody who has its standard error has closed it. Each line is
/// handed on without its end, without what would steer a terminal, and with `…` where it was cut; some are left out
/// where there are too many, and a line of ours says how many.
pub async fn drain(
    mut stderr: impl AsyncRead + Unpin,
    last_words: LastWords,
    mut tell: impl FnMut(&str),
) {
    let mut buffer = vec![0; READ_BYTES];
    let mut line = Line::default();
    let mut pace = Pace::new();
    loop {
        // Who falls silent after too much is told about too.
        let count = match pace.due() {
            Some(due) => match timeout_at(due, stderr.read(&mut buffer)).await {
                Ok(count) => count,
                Err(_) => {
                    pace.next_second(&mut tell);
                    continue;
                }
            },
            None => stderr.read(&mut buffer).await,
        };
        let Some(read) = count.ok().and_then(|count| buffer.get(..count)) else { break };
        if read.is_empty() {
            break;
        }
        pace.look(&mut tell);
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            line.add(part);
            if part.ends_with(b"\n") {
                pace.hand_on(&line, &mut tell);
                line = last_words.keep(line);
            }
        }
    }
    if !line.bytes.is_empty() {
        pace.hand_on(&line, &mut tell);
        last_words.keep(line);
    }
    pace.next_second(&mut tell);
}

impl Line {
    /// A part of it, up to its end at most.
    fn add(&mut self, part: &[u8]) {
        let text = part.strip_suffix(b"\n").unwrap_or(part);
        let room = LINE_BYTES.saturating_sub(self.bytes.len());
        let taken = text.get(..room).unwrap_or(text);
        self.bytes.extend_from_slice(taken);
        self.is_cut |= taken.len() < text.len();
    }

    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = anstream::adapter::strip_str(&text).to_string();
        let harmless = |letter: char| if letter.is_control() { ' ' } else { letter };
        let mut text: String = text.trim_end_matches('\r').chars().map(harmless).collect();
        if self.is_cut {
            text.push('…');
        }
        text
    }
}

/// How many lines were handed on in this second.
struct Pace {
    since: Instant,
    told: u32,
    left_out: u64,
}

impl Pace {
    fn new() -> Self {
        Self { since: Instant::now(), told: 0, left_out: 0 }
    }

    /// When lines that were left out are to be told of.
    fn due(&self) -> Option<Instant> {
        (self.left_out > 0).then(|| self.since + SECOND)
    }

    /// Before lines are handed on; once for many, as a flood has millions.
    fn look(&mut self, tell: &mut impl FnMut(&str)) {
        if self.since.elapsed() >= SECOND {
            self.next_second(tell);
        }
    }

    fn hand_on(&mut self, line: &Line, tell: &mut impl FnMut(&str)) {
        if self.told < LINES_A_SECOND {
            self.told += 1;
            tell(&line.text());
        } else {
            self.left_out += 1;
        }
    }

    fn next_second(&mut self, tell: &mut impl FnMut(&str)) {
        if self.left_out > 0 {
            tell(&format!("({} more lines were left out)", self.left_out));
        }
        *self = Self::new();
    }
}

impl LastWords {
    /// Oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().iter().map(Line::text).collect()
    }

    /// A line that came another way.
    pub fn add(&self, text: &[u8]) {
        let mut line = Line::default();
        line.add(text);
        self.keep(line);
    }

    /// Gives back an empty one, with the room of one that is forgotten, as there may be very many.
    fn keep(&self, line: Line) -> Line {
        let mut lines = self.0.lock();
        let forgotten = if lines.len() < KEPT_LINES { None } else { lines.pop_front() };
        lines.push_back(line);
        let mut room = forgotten.unwrap_or_default();
        room.bytes.clear();
        room.is_cut = false;
        room
    }
}

/// `; its last words:` and the lines, to be put behind a message; nothing where it said nothing.
impl fmt::Display for LastWords {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines();
        if !lines.is_empty() {
            write!(out, "; its last words:")?;
        }
        lines.iter().try_for_each(|line| write!(out, "\n  {line}"))
    }
}

impl fmt::Debug for LastWords {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LastWords({} lines)", self.0.lock().len())
    }
}
