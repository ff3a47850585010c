//! The words of a text, as an index knows them: small letters without accents, cut where there is something else than
//! letters and digits.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::export::hex;
use crate::limits::{QUERY_WORDS_MAX, SEARCH_BYTES_MAX, WORD_BYTES_MAX, cut};

/// Shorter words are only found as they are: too much begins with one letter.
const PREFIX_CHARS_MIN: usize = 3;

/// Each once.
pub(crate) fn words(text: &str) -> BTreeSet<String> {
    split(cut(text, SEARCH_BYTES_MAX)).collect()
}

/// The words of a query, and whether a word that only begins so counts too.
pub(crate) fn query_words(query: &str) -> Vec<(String, bool)> {
    let words = split(cut(query, SEARCH_BYTES_MAX)).take(QUERY_WORDS_MAX);
    words
        .map(|word| {
            let counts_as_beginning = word.chars().count() >= PREFIX_CHARS_MIN;
            (word, counts_as_beginning)
        })
        .collect()
}

/// One word that stands for an owner, whatever its name is made of.
pub(crate) fn owner_word(owner: &str) -> String {
    format!("o{}", hex(&Sha256::digest(owner.as_bytes())[..16]))
}

fn split(text: &str) -> impl Iterator<Item = String> {
    let plain: String = text.nfd().filter(|sign| !is_combining_mark(*sign)).collect();
    let plain = plain.to_lowercase();
    let words = plain.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| cut(word, WORD_BYTES_MAX).to_owned()).collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_plain() {
        let found: Vec<String> =
            words("Größe, GRÖSSE; o\u{308}l a\0b 日本 x_1").into_iter().collect();
        assert_eq!(found, ["1", "a", "b", "grosse", "große", "ol", "x", "日本"].map(str::to_owned));
        let long = "ä".repeat(10_000);
        assert_eq!(words(&long).len(), 1);
        assert!(words(&long).iter().all(|word| word.len() <= WORD_BYTES_MAX));
    }

    #[test]
    fn long_words_of_a_query_count_as_beginnings() {
        let found = query_words("Is it PARS");
        let word = |word: &str, is| (word.to_owned(), is);
        assert_eq!(found, [word("is", false), word("it", false), word("pars", true)]);
    }
}
