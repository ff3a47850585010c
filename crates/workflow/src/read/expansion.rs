//! How large a YAML text becomes once its aliases are expanded. The tree counts its values, but a value
//! may be a long text: two kilobytes of aliases to one of them would come to a gigabyte.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser};

use crate::finding::{Code, Finding};
use crate::limits::NESTING_MAX;

/// How many bytes a YAML file may come to once its aliases are expanded.
const EXPANDED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a value takes beside its text.
const VALUE_BYTES: usize = 128;

/// What is wrong with a text whose aliases would make too much of it. What is malformed or too deep is for
/// the tree to say.
pub(super) fn check(text: &str) -> Option<Finding> {
    // Without an anchor nothing is kept for an alias.
    let is_too_large = text.contains('&') && Expansion::default().exceeds(text);
    is_too_large.then(|| {
        Finding::on_file(
            Code::TooManyValues,
            format!("more than {EXPANDED_BYTES_MAX} bytes once aliases are expanded"),
            "use fewer aliases, or let them stand for shorter texts",
        )
    })
}

#[derive(Default)]
struct Expansion {
    /// What all values so far take, each alias counted as what it stands for.
    bytes: usize,
    /// What the copies take that are kept for aliases.
    kept: usize,
    /// The lists and objects that are open.
    open: Vec<OpenContainer>,
    anchors: HashMap<usize, AliasSize>,
}

/// A list or an object whose end has not come yet.
struct OpenContainer {
    anchor: usize,
    /// What there was before it.
    before: usize,
    /// How many levels of lists and objects are in it so far.
    height: usize,
}

/// The size of what an alias stands for.
#[derive(Clone, Copy, Default)]
struct AliasSize {
    bytes: usize,
    height: usize,
}

impl Expansion {
    fn exceeds(mut self, text: &str) -> bool {
        let mut parser = Parser::new_from_str(text);
        while let Some(Ok((event, _))) = parser.next_event() {
            match event {
                Event::Alias(anchor) => {
                    let anchored = self.anchors.get(&anchor).copied().unwrap_or_default();
                    self.bytes += anchored.bytes;
                    self.reach(anchored.height);
                    if self.open.len() + anchored.height > NESTING_MAX {
                        return false;
                    }
                }
                Event::Scalar(text, _, anchor, _) => {
                    let before = self.bytes;
                    self.bytes += VALUE_BYTES + text.len();
                    self.keep(OpenContainer { anchor, before, height: 0 });
                }
                Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                    self.open.push(OpenContainer { anchor, before: self.bytes, height: 1 });
                    self.bytes += VALUE_BYTES;
                    if self.open.len() > NESTING_MAX {
                        return false;
                    }
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    if let Some(closed) = self.open.pop() {
                        self.reach(closed.height);
                        self.keep(closed);
                    }
                }
                Event::StreamEnd => break,
                _ => {}
            }
            if self.bytes + self.kept > EXPANDED_BYTES_MAX {
                return true;
            }
        }
        false
    }

    /// Notes how high something in the innermost open value is.
    fn reach(&mut self, height: usize) {
        if let Some(outer) = self.open.last_mut() {
            outer.height = outer.height.max(1 + height);
        }
    }

    /// Keeps a copy of a value that has an anchor. Anchors count from 1.
    fn keep(&mut self, OpenContainer { anchor, before, height }: OpenContainer) {
        if anchor > 0 {
            let bytes = self.bytes - before;
            self.anchors.insert(anchor, AliasSize { bytes, height });
            self.kept += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_of_long_texts_are_counted() {
        let text = |length: usize, aliases: usize| {
            format!("a: &a {}\nb: [{}]\n", "x".repeat(length), vec!["*a"; aliases].join(", "))
        };
        assert_eq!(check(&text(100, 50)), None);
        assert_eq!(check(&text(8_000, 1_000)), None);
        let finding = check(&text(100_000, 1_000)).unwrap();
        assert_eq!(finding.code, Code::TooManyValues);
        assert_eq!(&*finding.message, "more than 33554432 bytes once aliases are expanded");
    }

    #[test]
    fn anchors_inside_each_other_are_counted() {
        let open: String = (0..60).map(|level| format!("&a{level} [")).collect();
        let text = format!("{open}{}{}", "1,".repeat(20_000), "]".repeat(60));
        assert!(check(&text).is_some());
    }
}
