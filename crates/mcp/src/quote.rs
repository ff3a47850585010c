//! Texts as JSON. What a tool answers is mostly text, so this is where an answer's cost is: plain stretches
//! are found eight bytes at a time and copied whole, where `serde_json` goes byte by byte.

use std::fmt::Write as _;

/// A text as it stands between the quotes of a JSON string. What is quoted once need not be quoted again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quoted(String);

impl Quoted {
    pub fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    pub fn push(&mut self, text: &str) {
        escape(text, &mut self.0);
    }

    pub fn append(&mut self, quoted: &Self) {
        self.0.push_str(&quoted.0);
    }

    /// What stands between the quotes.
    pub fn inner(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Quoted {
    fn from(text: T) -> Self {
        let text = text.as_ref();
        let mut quoted = Self::with_capacity(text.len() + text.len() / 8);
        quoted.push(text);
        quoted
    }
}

/// Appends a text as a JSON string.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    escape(text, out);
    out.push('"');
}

fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = first_special(rest.as_bytes()) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            // Writing to a string cannot fail.
            control => drop(write!(out, "\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Where the first byte is that cannot stand in a JSON string as it is: a control, a quote, a backslash.
fn first_special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is less than `limit`. The lowest mark is right; those above it may be
    // made by a borrow, and are not looked at.
    let less = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let is = |word: u64, byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
    let (words, tail) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = less(word, 0x20) | is(word, b'"') | is(word, b'\\');
        if found != 0 {
            return Some(number * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let at = tail.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'))?;
    Some(words.len() * 8 + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_quoted_as_serde_does() {
        let mut alphabet: Vec<char> = (0..0x80).filter_map(char::from_u32).collect();
        alphabet.extend(['\u{80}', 'é', '\u{2028}', '€', '\u{ffff}', '😀']);
        // Every letter, in every place of a word, alone and beside every other.
        for first in &alphabet {
            for second in &alphabet {
                for before in 0..9 {
                    let text = format!("{}{first}{second}plain", "x".repeat(before));
                    let mut quoted = String::new();
                    quote(&text, &mut quoted);
                    let parsed: String = serde_json::from_str(&quoted).unwrap();
                    assert_eq!(parsed, text);
                }
            }
        }
    }
}
