//! Texts that are told once. A step has a few, for which comparing costs less than hashing; a hostile one has thousands.

use std::collections::HashSet;

/// How many texts are compared one by one.
const COMPARED_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Distinct<'a> {
    first: Vec<&'a str>,
    more: HashSet<&'a str>,
}

impl<'a> Distinct<'a> {
    /// Whether the text is new.
    pub(crate) fn insert(&mut self, text: &'a str) -> bool {
        if self.first.contains(&text) {
            return false;
        }
        if self.first.len() < COMPARED_MAX {
            self.first.push(text);
            return true;
        }
        self.more.insert(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_new_once() {
        let texts: Vec<String> = (0..3 * COMPARED_MAX).map(|at| at.to_string()).collect();
        let mut distinct = Distinct::default();
        assert!(texts.iter().all(|text| distinct.insert(text)));
        assert!(!texts.iter().any(|text| distinct.insert(text)));
    }
}
