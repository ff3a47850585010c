//! Places of findings in the text, and what it takes to find them: as much as the text is long, whatever
//! the findings are.

use std::collections::HashSet;
use std::ops::Range;

use budget::{Budget, Exhausted};

use crate::finding::Place;
use crate::tree::{Kind, Node};

/// A pointer beyond this length is long: every finding below it repeats it.
pub(super) const POINTER_BYTES_LONG: usize = 1024;

/// What is known of a tree before places are looked for in it.
#[derive(Default)]
pub(super) struct Survey {
    /// The pointers to all values, written one after the other.
    pointer_bytes: usize,
    /// The same for the long ones alone.
    long_pointer_bytes: usize,
    /// The number of fields of the largest object.
    fields_max: usize,
    /// Whether a key stands twice in some object.
    pub(super) has_duplicates: bool,
}

impl Survey {
    /// Goes through a tree, and spends what it takes to write the pointers in it. Long ones count as
    /// text that is produced: a thousand findings below one of them repeat it a thousand times.
    pub(super) fn take(tree: &Node, budget: &Budget) -> Result<Self, Exhausted> {
        let mut survey = Self::default();
        survey.visit(tree, 0);
        budget.spend_output(survey.long_pointer_bytes)?;
        budget.spend_scan(survey.pointer_bytes)?;
        Ok(survey)
    }

    fn visit(&mut self, node: &Node, pointer_bytes: usize) {
        self.pointer_bytes += pointer_bytes;
        if pointer_bytes > POINTER_BYTES_LONG {
            self.long_pointer_bytes += pointer_bytes;
        }
        match &node.kind {
            Kind::Scalar(_) => {}
            Kind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let digits = index.checked_ilog10().unwrap_or_default() as usize + 1;
                    self.visit(item, pointer_bytes + 1 + digits);
                }
            }
            Kind::Object(fields) => {
                self.fields_max = self.fields_max.max(fields.len());
                let mut seen = HashSet::with_capacity(fields.len());
                for field in fields {
                    self.has_duplicates |= !seen.insert(field.key.as_str());
                    self.visit(&field.value, pointer_bytes + 1 + field.key.len());
                }
            }
        }
    }

    /// The steps that it takes to follow a pointer: each object on the way is searched for its field,
    /// several fields a step.
    pub(super) fn steps_to_find(&self) -> u64 {
        16 + self.fields_max as u64 / 4
    }
}

/// Turns byte ranges into lines and columns. The ranges come in the order of their starts, so the text
/// is looked through once.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    column: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, column: 1 }
    }

    pub(super) fn place(&mut self, range: &Range<usize>) -> Place {
        let start = range.start.min(self.text.len());
        let passed = self.text.get(self.at..start).unwrap_or_default();
        self.at = start.max(self.at);
        match passed.rsplit_once('\n') {
            Some((before, after)) => {
                self.line += before.matches('\n').count() + 1;
                self.column = after.chars().count() + 1;
            }
            None => self.column += passed.chars().count(),
        }
        Place { line: self.line, column: self.column, length: self.length(start, range.end) }
    }

    /// How many characters the range has on its first line: one at least.
    fn length(&self, start: usize, end: usize) -> usize {
        // A range may end within a character: whoever made it knew only where it starts.
        let end = self.text.ceil_char_boundary(end.max(start));
        let inside = &self.text[start..end];
        let line = inside.split('\n').next().unwrap_or_default();
        let is_whole = self.text[start + line.len()..].starts_with('\n');
        let line = line.strip_suffix('\r').filter(|_| is_whole).unwrap_or(line);
        line.chars().count().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Lines;

    #[test]
    fn cursor_agrees_with_the_table_of_lines() {
        for text in ["", "a", "{\"a\": 1}\n", "é\r\nab\n\n名前: x\r\n  y: 📖 z\r", "\r\n\r\n"]
        {
            let lines = Lines::new(text);
            let mut cursor = Cursor::new(text);
            let starts = (0..=text.len() + 1)
                .filter(|start| text.is_char_boundary(*start) || *start > text.len());
            for start in starts {
                for end in start..text.len() + 3 {
                    let range = start..end;
                    assert_eq!(cursor.place(&range), lines.place(&range), "{text:?} {range:?}");
                }
            }
        }
    }
}
