//! Texts that strangers wrote, for people to read: what would steer a terminal, turn the direction of writing around or
//! cannot be seen at all is shown, and not obeyed.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What would steer a terminal, as JSON and TOML write it inside a string.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if steers(letter) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

/// The same for texts that nobody reads back.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(steers) {
        Cow::Owned(text.replace(steers, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// For who decides by what they see: nothing of it is unseen. Lines stay lines.
pub(crate) fn spelled_out(text: &str) -> Cow<'_, str> {
    let is_odd = |letter: char| letter != '\n' && is_unseen(letter);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len());
    for letter in text.chars() {
        match u32::from(letter) {
            _ if !is_odd(letter) => spelled.push(letter),
            code @ ..=0xffff => drop(write!(spelled, "\\u{code:04x}")),
            code => drop(write!(spelled, "\\u{{{code:x}}}")),
        }
    }
    Cow::Owned(spelled)
}

/// Whether a letter does something else than being read: also where it has its uses, such as joining letters of some
/// scripts and emoji.
pub(crate) fn is_unseen(letter: char) -> bool {
    let is_invisible = matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    );
    is_invisible || letter.is_control()
}

/// Control characters, and those that turn the direction of writing around.
fn steers(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (letter.is_control() && letter != '\n' && letter != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_and_not_obeyed() {
        assert_eq!(
            harmless("a\u{1b}[2J\u{7}b\u{9b}c\u{202e}d"),
            "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}d"
        );
        assert_eq!(harmless("two\nlines\tand 名"), "two\nlines\tand 名");
    }

    #[test]
    fn nothing_is_unseen() {
        assert_eq!(
            spelled_out("a\u{1b}\r\tb\u{202e}\u{200b}\u{200d}\u{2028}\u{feff}\u{e0041}c\n名 é"),
            "a\\u001b\\u000d\\u0009b\\u202e\\u200b\\u200d\\u2028\\ufeff\\u{e0041}c\n名 é"
        );
        assert!(matches!(spelled_out("plain\ntext"), Cow::Borrowed(_)));
        // Whatever steers is unseen too.
        for code in 0..0x11_0000 {
            let Some(letter) = char::from_u32(code) else { continue };
            assert!(!steers(letter) || is_unseen(letter), "{code:x}");
        }
    }
}
