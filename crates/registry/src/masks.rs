//! Everything secret in a registry, to be taken out of whatever is shown or logged. One pass over a text finds all of
//! them, also as JSON, addresses and base64 write them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::entry::HIDDEN;
use super::limits::MASK_BYTES_MAX;

/// Shorter ones would be found everywhere.
const SECRET_MIN: usize = 4;
/// In base64 a part of a secret is looked for, which must be long enough to be nothing else.
const BASE64_MIN: usize = 8;
/// Texts that are no secret whoever says so, and without which JSON would not be JSON any more.
const NEVER: &[&str] = &["true", "false", "null"];

/// What addresses escape in any place.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Hides secrets.
#[derive(Clone, Default)]
pub struct Masks {
    secrets: BTreeSet<String>,
    /// Nothing where there is nothing to hide.
    search: Option<AhoCorasick>,
}

impl Masks {
    /// Those that come first count, where they are more than can be looked for.
    pub fn new<S: Into<String>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let secrets = secrets.into_iter().map(Into::into);
        let secrets = secrets.filter(|secret: &String| {
            secret.len() >= SECRET_MIN && !NEVER.contains(&secret.as_str())
        });
        let mut bytes = 0;
        let secrets = secrets.take_while(|secret| {
            bytes += secret.len();
            bytes <= MASK_BYTES_MAX
        });
        let secrets: BTreeSet<String> = secrets.collect();
        let forms: BTreeSet<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        // All matches are wanted, those within others too: a byte of any of them is a byte too many.
        let mut builder = AhoCorasick::builder();
        // The kind that grows with the secrets and not with the alphabet.
        builder.match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::ContiguousNFA));
        let search = builder.build(forms);
        // It is built of bounded texts, so it cannot fail; where it did, `hide` would have to hide everything.
        let search = if secrets.is_empty() { None } else { search.ok() };
        Self { secrets, search }
    }

    /// The same, and more of them: a token that was obtained later, or those of a former state of the registry.
    pub fn and<S: Into<String>>(&self, more: impl IntoIterator<Item = S>) -> Self {
        let more = more.into_iter().map(Into::into);
        Self::new(more.chain(self.secrets.iter().cloned()))
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &String> {
        self.secrets.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The text without any secret.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(search) = &self.search else {
            return if self.secrets.is_empty() { text.into() } else { HIDDEN.into() };
        };
        let mut found: Vec<Range<usize>> =
            search.find_overlapping_iter(text).map(|found| found.range()).collect();
        if found.is_empty() {
            return text.into();
        }
        found.sort_by_key(|range| range.start);
        let mut hidden = String::with_capacity(text.len());
        let mut at = 0;
        for range in found {
            // What begins within the last one, or at its end, is hidden with it.
            if range.start > at || hidden.is_empty() {
                hidden.push_str(&text[at..range.start]);
                hidden.push_str(HIDDEN);
            }
            at = at.max(range.end);
        }
        hidden.push_str(&text[at..]);
        hidden.into()
    }
}

/// How many there are, and nothing about them.
impl fmt::Debug for Masks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Masks({})", self.secrets.len())
    }
}

/// Two of the same secrets hide the same.
impl PartialEq for Masks {
    fn eq(&self, other: &Self) -> bool {
        self.secrets == other.secrets
    }
}

/// A secret as it is, and as others write it.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    let json = serde_json::Value::from(secret).to_string();
    forms.push(json[1..json.len() - 1].to_owned());
    // As a query writes it, and as a path may: some leave more letters as they are.
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    forms.push(utf8_percent_encode(secret, RESERVED).to_string());
    forms.push(percent.replace("%20", "+"));
    forms.push(with_small_hex(&percent));
    forms.push(percent);
    for before in 0..3 {
        forms.extend(in_base64(secret.as_bytes(), before));
    }
    // A form is of no use where it is shorter than what is looked for at all.
    forms.retain(|form| form.len() >= SECRET_MIN);
    forms
}

/// `%2F` as `%2f`.
fn with_small_hex(percent: &str) -> String {
    let mut left = 0;
    let small = percent.chars().map(|letter| {
        left = if letter == '%' { 2 } else { i32::max(left - 1, -1) };
        if left >= 0 && letter != '%' { letter.to_ascii_lowercase() } else { letter }
    });
    small.collect()
}

/// The letters of base64 that depend on nothing but the secret, where so many bytes (modulo 3) stand before it.
fn in_base64(secret: &[u8], before: usize) -> impl Iterator<Item = String> {
    let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
    // Letters that the bytes before take part in, and whole groups of four.
    let (skipped, length) = ([0, 2, 3][before], bytes.len() / 3 * 4);
    let both = [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)];
    both.into_iter()
        .filter_map(move |text| text.get(skipped..length).map(str::to_owned))
        .filter(|text| text.len() >= BASE64_MIN)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn secrets_are_hidden_however_they_are_written() {
        let masks = Masks::new(["pass\"word/1 ä", "abc", "token-1234"]);
        let cases = [
            "pass\"word/1 ä",
            r#"{"x":"pass\"word/1 ä"}"#,
            "https://x/?p=pass%22word%2F1%20%C3%A4",
            "https://x/?p=pass%22word%2f1%20%c3%a4",
            "p=pass%22word%2F1+%C3%A4",
        ];
        for case in cases {
            let hidden = masks.hide(case);
            assert!(hidden.contains("***") && !hidden.contains("word"), "{hidden}");
        }
        assert_eq!(masks.hide("abc and more"), "abc and more");
        assert_eq!(masks.hide("token-1234token-1234 x"), "*** x");
        assert!(matches!(masks.hide("nothing"), Cow::Borrowed("nothing")));
        assert_eq!(format!("{masks:?}"), "Masks(2)");
    }

    #[test]
    fn base64_is_seen_through_at_every_offset() {
        let masks = Masks::new(["token-1234-token"]);
        for before in 0..6 {
            let text = STANDARD.encode(format!("{}token-1234-token:x", "u".repeat(before)));
            let hidden = masks.hide(&text);
            // At most the letters at the borders are left.
            assert!(
                hidden.contains("***") && hidden.len() < 3 + 8 + 8,
                "{before}: {text} {hidden}"
            );
        }
    }

    #[test]
    fn overlapping_secrets_leave_nothing() {
        let masks = Masks::new(["abcd", "cdef", "bc12"]);
        assert_eq!(masks.hide("xabcdefy"), "x***y");
        assert_eq!(masks.and(["defy"]).hide("xabcdefy"), "x***");
        assert_eq!(Masks::default().hide("abcd"), "abcd");
    }
}
