//! The words of a text, as an index knows them: small letters without accents, cut where there is something else than
//! letters and digits.

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::export::hex;
use crate::limits::{QUERY_WORDS_MAX, SEARCH_BYTES_MAX, WORD_BYTES_MAX, cut};

/// Shorter words are only found as they are: too much begins with one letter.
const PREFIX_CHARS_MIN: usize = 3;

/// What nearly every English text has: it tells none from another, and would be a third of an index. In order.
#[rustfmt::skip]
const COMMON: [&str; 72] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been",
    "but", "by", "can", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her",
    "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "of", "on",
    "one", "or", "our", "out", "over", "so", "some", "such", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "to", "under", "up", "was", "we", "were",
    "what", "when", "where", "which", "while", "who", "will", "with", "you", "your",
];

/// Whether a word is too common to be found by.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON.binary_search(&word).is_ok()
}

/// Those that a text is found by, each once, in the order of the alphabet.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = split(cut(text, SEARCH_BYTES_MAX));
    words.retain(|word| !is_common(word));
    words.sort_unstable();
    words.dedup();
    words
}

/// The words of a query, and whether a word that only begins so counts too.
pub(crate) fn query_words(query: &str) -> Vec<(String, bool)> {
    let words = split(cut(query, SEARCH_BYTES_MAX)).into_iter().filter(|word| !is_common(word));
    words
        .take(QUERY_WORDS_MAX)
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

/// In their order.
fn split(text: &str) -> Vec<String> {
    // Most texts need nothing more.
    let plain = match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => {
            let plain: String = text.nfd().filter(|sign| !is_combining_mark(*sign)).collect();
            plain.to_lowercase()
        }
    };
    let words = plain.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| cut(word, WORD_BYTES_MAX).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_plain() {
        let found: Vec<String> =
            words("The Größe, and a GRÖSSE; o\u{308}l a\0b 日本 x_1").into_iter().collect();
        assert_eq!(found, ["1", "b", "grosse", "große", "ol", "x", "日本"].map(str::to_owned));
        let long = "ä".repeat(10_000);
        assert_eq!(words(&long).len(), 1);
        assert!(words(&long).iter().all(|word| word.len() <= WORD_BYTES_MAX));
    }

    #[test]
    fn long_words_of_a_query_count_as_beginnings() {
        let found = query_words("Is it 10 PARS");
        let word = |word: &str, is| (word.to_owned(), is);
        assert_eq!(found, [word("10", false), word("pars", true)]);
        assert!(COMMON.is_sorted());
    }
}
