//! Every word that is somewhere in the index, and the term (its stem) that it stands for. Words are kept as they were written,
//! so that beginnings and slips can be looked for. Each knows how many hold it, and goes when nobody does: a server that
//! changes its tools for ever does not fill the memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::stem::stem;

/// More words than this are not looked at for one beginning.
const BEGINNING_MAX: usize = 64;
/// Shorter words have too many neighbours.
const SLIP_LENGTH_MIN: usize = 5;
/// Longer words have too many ways to be wrong.
const SLIP_LENGTH_MAX: usize = 24;

/// How many words are remembered beside the table.
const RECENT: usize = 2_048;

#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    ids: HashMap<Arc<str>, u32>,
    /// In the order of the alphabet, for beginnings.
    sorted: BTreeMap<Arc<str>, u32>,
    words: Vec<Word>,
    free_words: Vec<u32>,
    terms: HashMap<Arc<str>, u32>,
    stems: Vec<Stem>,
    free_terms: Vec<u32>,
    scratch: String,
    /// Words that came up lately, each at a place of its own. Most words of a text are among them, and found without the table;
    /// whoever chooses words that share a place only makes us use the table.
    recent: Vec<u32>,
}

#[derive(Debug)]
struct Word {
    text: Arc<str>,
    term: u32,
    holders: u32,
    /// Who held it last.
    last: u64,
}

#[derive(Debug)]
struct Stem {
    text: Arc<str>,
    words: u32,
}

/// A word that was added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    pub(super) word: u32,
    pub(super) term: u32,
    /// Whether this holder did not have it yet.
    pub(super) is_new: bool,
}

impl Vocabulary {
    /// Adds a word for a holder, whose numbers must not be used twice.
    pub(super) fn add(&mut self, text: &str, holder: u64) -> Added {
        let place = place(text);
        let word = match self.recent.get(place).copied() {
            Some(word) if *self.words[word as usize].text == *text => word,
            _ => {
                let word = match self.ids.get(text) {
                    Some(word) => *word,
                    None => self.insert(text),
                };
                self.recent.resize(RECENT, word);
                self.recent[place] = word;
                word
            }
        };
        let slot = &mut self.words[word as usize];
        let is_new = slot.last != holder;
        if is_new {
            slot.last = holder;
            slot.holders += 1;
        }
        Added { word, term: slot.term, is_new }
    }

    fn insert(&mut self, text: &str) -> u32 {
        let term = self.term_for(text);
        let text: Arc<str> = text.into();
        let word = Word { text: Arc::clone(&text), term, holders: 0, last: 0 };
        let id = match self.free_words.pop() {
            Some(id) => {
                self.words[id as usize] = word;
                id
            }
            None => {
                self.words.push(word);
                (self.words.len() - 1) as u32
            }
        };
        self.sorted.insert(Arc::clone(&text), id);
        self.ids.insert(text, id);
        id
    }

    fn term_for(&mut self, text: &str) -> u32 {
        let stem = stem(text, &mut self.scratch);
        if let Some(&term) = self.terms.get(stem) {
            self.stems[term as usize].words += 1;
            return term;
        }
        let text: Arc<str> = stem.into();
        let stem = Stem { text: Arc::clone(&text), words: 1 };
        let term = match self.free_terms.pop() {
            Some(term) => {
                self.stems[term as usize] = stem;
                term
            }
            None => {
                self.stems.push(stem);
                (self.stems.len() - 1) as u32
            }
        };
        self.terms.insert(text, term);
        term
    }

    /// A holder lets go of a word.
    pub(super) fn release(&mut self, word: u32) {
        let slot = &mut self.words[word as usize];
        slot.holders -= 1;
        if slot.holders > 0 {
            return;
        }
        // Nobody may take what is left of it for the word.
        let (text, term) = (std::mem::replace(&mut slot.text, Arc::from("")), slot.term);
        self.ids.remove(&text);
        self.sorted.remove(&text);
        self.free_words.push(word);
        let stem = &mut self.stems[term as usize];
        stem.words -= 1;
        if stem.words == 0 {
            self.terms.remove(&stem.text);
            self.free_terms.push(term);
        }
    }

    /// How many terms there have been at one time.
    pub(super) fn terms_len(&self) -> usize {
        self.stems.len()
    }

    /// The term of a word, in whichever form.
    pub(super) fn term(&self, word: &str) -> Option<u32> {
        self.terms.get(stem(word, &mut String::new())).copied()
    }

    /// The terms of words that begin so, with how much of them that is.
    pub(super) fn beginning<'v>(&'v self, start: &'v str) -> impl Iterator<Item = (u32, f32)> + 'v {
        let words = self.sorted.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        let words = words.take_while(move |(word, _)| word.starts_with(start)).take(BEGINNING_MAX);
        words.map(move |(word, id)| {
            (self.words[*id as usize].term, start.len() as f32 / word.len() as f32)
        })
    }

    /// The terms of words that one slip makes of this one: a letter too many, too few, another one, or two in the wrong order.
    /// Tried from this side, so that it does not matter how many words there are.
    pub(super) fn slips(&self, word: &str) -> Vec<u32> {
        let is_tried = (SLIP_LENGTH_MIN..=SLIP_LENGTH_MAX).contains(&word.len());
        if !is_tried || !word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Vec::new();
        }
        let letters = word.as_bytes();
        let mut found = Vec::new();
        let mut look = |candidate: &[u8]| {
            let id = std::str::from_utf8(candidate).ok().and_then(|text| self.ids.get(text));
            if let Some(&id) = id {
                let term = self.words[id as usize].term;
                if !found.contains(&term) {
                    found.push(term);
                }
            }
        };
        let mut other = Vec::with_capacity(letters.len() + 1);
        for at in 0..=letters.len() {
            for letter in (b'a'..=b'z').chain(b'0'..=b'9') {
                other.clear();
                other.extend_from_slice(letters);
                other.insert(at, letter);
                look(&other);
                if at < letters.len() {
                    other.remove(at + 1);
                    look(&other);
                }
            }
            other.clear();
            other.extend_from_slice(letters);
            if at + 1 < letters.len() {
                other.swap(at, at + 1);
                look(&other);
                other.swap(at, at + 1);
            }
            if at < letters.len() {
                other.remove(at);
                look(&other);
            }
        }
        found
    }
}

/// Where a word stands among the recent ones.
fn place(text: &str) -> usize {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    ((hash >> 16) ^ hash) as usize % RECENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_share_a_term() {
        let mut vocabulary = Vocabulary::default();
        let [issue, issues, other] =
            ["issue", "issues", "other"].map(|word| vocabulary.add(word, 1));
        assert_eq!(issue.term, issues.term);
        assert_ne!(issue.word, issues.word);
        assert_ne!(issue.term, other.term);
        assert_eq!(vocabulary.term("issuing"), Some(issue.term));
        assert!(!vocabulary.add("issue", 1).is_new);
        assert!(vocabulary.add("issue", 2).is_new);
    }

    #[test]
    fn what_nobody_holds_goes() {
        let mut vocabulary = Vocabulary::default();
        for holder in 1..1_000 {
            let words = ["same".to_owned(), format!("word{holder}")];
            let added: Vec<Added> = words.iter().map(|word| vocabulary.add(word, holder)).collect();
            added.iter().for_each(|added| vocabulary.release(added.word));
        }
        assert!(
            vocabulary.ids.is_empty()
                && vocabulary.sorted.is_empty()
                && vocabulary.terms.is_empty()
        );
        assert!(vocabulary.words.len() <= 2 && vocabulary.stems.len() <= 2);
        let again = vocabulary.add("same", 1_000);
        assert!(again.is_new);
        assert_eq!(vocabulary.term("same"), Some(again.term));
    }

    #[test]
    fn beginnings_and_slips_are_found() {
        let mut vocabulary = Vocabulary::default();
        let words = ["repository", "report", "repeat", "weather"];
        let terms = words.map(|word| vocabulary.add(word, 1).term);
        let begin = |start: &str| -> Vec<u32> {
            vocabulary.beginning(start).map(|(term, _)| term).collect()
        };
        assert_eq!(begin("repo"), [terms[1], terms[0]]);
        assert!(begin("x").is_empty());
        for slip in ["repositry", "repositoory", "repositary", "reopsitory", "epository"] {
            assert_eq!(vocabulary.slips(slip), [terms[0]], "{slip}");
        }
        for far in ["repozitary", "rport-", "wether1", "wea", "größer"] {
            assert!(vocabulary.slips(far).is_empty(), "{far}");
        }
    }
}
