//! Texts that others wrote, for people to read. Characters that steer a terminal, reorder what is read or cannot be seen are
//! shown instead of obeyed. Data that goes to a program stays as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces each deceptive character by U+FFFD, for texts that no program reads back.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if text.contains(is_deceptive) {
        Cow::Owned(text.replace(is_deceptive, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The beginning of a text, with `…` where it is longer than so many bytes.
pub fn cut(text: &str, bytes_max: usize) -> String {
    match text.floor_char_boundary(bytes_max) {
        end if end < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// Writes each deceptive character as JSON does inside a string, so that nothing is lost: `\u202e`. Applied to JSON, the
/// result means the same.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    let mut units = [0; 2];
    for letter in text.chars() {
        if is_deceptive(letter) {
            for unit in letter.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// Spells out every invisible character, also the useful ones, for a person who decides by what they see. Lines stay lines.
pub fn spell_out(text: &str) -> Cow<'_, str> {
    let is_odd = |letter: char| letter != '\n' && is_invisible(letter);
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

/// Whether a character does something else than being read. Names must not have any.
pub fn is_invisible(letter: char) -> bool {
    let is_format = matches!(
        letter,
        '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    );
    is_format || is_joiner(letter) || letter.is_control()
}

/// Whether a text must not be shown with this character in it: a control character, one that changes the direction of
/// writing, or one that hides text. Lines and tabs stay, and so does what ordinary words and emoji are made with.
fn is_deceptive(letter: char) -> bool {
    !matches!(letter, '\n' | '\t') && !is_joiner(letter) && is_invisible(letter)
}

/// Joins, parts or varies the characters around it, and does nothing else.
fn is_joiner(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180d}' | '\u{180f}'
            | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that Unicode has to turn the direction of writing around.
    const BIDI: &str = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";

    #[test]
    fn deceptive_characters_are_replaced() {
        assert_eq!(
            sanitize("a\u{1b}[2J\u{7}b\u{9b}c\u{202e}d\u{200b}e"),
            "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e"
        );
        assert_eq!(sanitize(BIDI), "\u{fffd}".repeat(12));
        for text in ["two\nlines\tand 名", "⚠\u{fe0f} 👩\u{200d}🔬", "co\u{ad}operate"] {
            assert!(matches!(sanitize(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn escaped_json_means_the_same() {
        assert_eq!(escape("a\u{202e}b\u{e0041}c"), "a\\u202eb\\udb40\\udc41c");
        assert_eq!(escape("\u{1b}[31m\tred\n"), "\\u001b[31m\tred\n");
        assert!(escape(BIDI).is_ascii());
        assert!(matches!(escape("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_is_invisible_once_spelled_out() {
        assert_eq!(
            spell_out("a\u{1b}\r\tb\u{202e}\u{200b}\u{200d}\u{2028}\u{feff}\u{e0041}c\n名 é"),
            "a\\u001b\\u000d\\u0009b\\u202e\\u200b\\u200d\\u2028\\ufeff\\u{e0041}c\n名 é"
        );
        assert!(matches!(spell_out("plain\ntext"), Cow::Borrowed(_)));
    }
}
