//! What a caller sees, in words that are the same every time.

use orchestrator::upstream::list::ToolList;
use orchestrator::{CallResult, Error, text};

/// So many notes are shown.
const NOTES_SHOWN: usize = 3;
/// So much of a result is shown, and of a message of ours.
const RESULT_CHARS: usize = 80;
const MESSAGE_CHARS: usize = 300;

pub(crate) fn called(result: Result<CallResult, Error>) -> String {
    let result = match result {
        Ok(result) => result,
        Err(error) => return steady(&shown(&error.to_string(), MESSAGE_CHARS)),
    };
    let kind = if result.is_error { "an error of the tool" } else { "a result" };
    let mut lines = vec![format!("{kind}: `{}`", shown(&text::of(&result.raw), RESULT_CHARS))];
    lines.extend(
        result
            .warnings
            .iter()
            .map(|warning| format!("with a warning: {}", shown(warning, MESSAGE_CHARS))),
    );
    steady(&lines.join("\n"))
}

pub(crate) fn listed(list: Result<std::sync::Arc<ToolList>, Error>) -> String {
    let list = match list {
        Ok(list) => list,
        Err(error) => return steady(&shown(&error.to_string(), MESSAGE_CHARS)),
    };
    let mut lines = vec![format!("{} tools", list.tools.len())];
    let notes = list.notes.iter().take(NOTES_SHOWN);
    lines.extend(notes.map(|note| format!("with a note: {}", shown(note, MESSAGE_CHARS))));
    if list.notes.len() > NOTES_SHOWN {
        lines.push(format!("and {} more", list.notes.len() - NOTES_SHOWN));
    }
    steady(&lines.join("\n"))
}

pub(crate) fn read(result: Result<serde_json::Value, Error>) -> String {
    match result {
        Ok(result) => steady(&format!("a result: `{}`", shown(&result.to_string(), RESULT_CHARS))),
        Err(error) => steady(&shown(&error.to_string(), MESSAGE_CHARS)),
    }
}

fn shown(text: &str, max: usize) -> String {
    let visible = |letter: char| match letter {
        '\n' => '\n',
        letter if letter.is_control() => '�',
        letter => letter,
    };
    let mut shown: String = text.chars().take(max).map(visible).collect();
    let more = text.chars().count().saturating_sub(max);
    if more > 0 {
        shown.push_str(&format!("… and {more} more characters"));
    }
    shown
}

/// Without what is another one each time: times, ports, and names that nobody can guess.
fn steady(text: &str) -> String {
    let text = blanked(text, " within ", |letter| letter.is_ascii_digit() || letter == '.');
    let text = blanked(&text, "127.0.0.1:", |letter| letter.is_ascii_digit());
    blanked(&text, "mcp-kept:", |letter| letter.is_ascii_hexdigit())
}

/// Has `…` in place of what follows each `mark`.
fn blanked(text: &str, mark: &str, varies: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut blanked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(&varies);
        let sign = if rest.len() < part.len() { "…" } else { "" };
        blanked.push_str(&format!("{mark}{sign}{rest}"));
    }
    blanked
}
