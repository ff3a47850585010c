//! What is to be changed in a source: parts that become spaces, and text that is put in. Line breaks always stay, and
//! nothing that is put in has one.

use std::borrow::Cow;

use oxc_span::Span;

use crate::places::{Places, Reader};

#[derive(Debug, Default)]
pub(crate) struct Edits {
    blanks: Vec<Blank>,
    inserts: Vec<Insert>,
    /// A line of its own after everything.
    last_line: Option<&'static str>,
}

#[derive(Debug)]
struct Blank {
    span: Span,
    /// What it begins with instead, and what its last character becomes.
    first: &'static str,
    last: Option<char>,
}

#[derive(Debug)]
struct Insert {
    offset: u32,
    text: Cow<'static, str>,
}

impl Edits {
    pub(crate) fn blank(&mut self, span: Span) {
        self.blank_after("", span);
    }

    /// Blank but for what it begins with, which is not longer than what was there.
    pub(crate) fn blank_after(&mut self, first: &'static str, span: Span) {
        if span.start < span.end {
            self.blanks.push(Blank { span, first, last: None });
        }
    }

    /// Blank but for a sign at the end.
    pub(crate) fn blank_before(&mut self, span: Span, last: char) {
        if span.start < span.end {
            self.blanks.push(Blank { span, first: "", last: Some(last) });
        }
    }

    /// What is put in at one place comes out in the order in which it was put in.
    pub(crate) fn insert(&mut self, offset: u32, text: impl Into<Cow<'static, str>>) {
        self.inserts.push(Insert { offset, text: text.into() });
    }

    pub(crate) fn append_line(&mut self, line: &'static str) {
        self.last_line = Some(line);
    }

    pub(crate) fn apply(mut self, source: &str) -> (String, Places) {
        self.blanks.sort_by_key(|blank| blank.span.start);
        self.inserts.sort_by_key(|insert| insert.offset);
        let added: usize = self.inserts.iter().map(|insert| insert.text.len()).sum();
        let mut writer = Writer {
            source,
            code: String::with_capacity(source.len() + added + 64),
            places: Places::default(),
            reader: Reader::new(source),
            inserts: self.inserts.into_iter().peekable(),
            offset: 0,
        };
        for blank in &self.blanks {
            writer.copy_to(blank.span.start as usize);
            writer.blank(blank);
        }
        writer.finish(self.last_line)
    }
}

struct Writer<'s> {
    source: &'s str,
    code: String,
    places: Places,
    reader: Reader<'s>,
    inserts: std::iter::Peekable<std::vec::IntoIter<Insert>>,
    /// How far the source is written.
    offset: usize,
}

impl Writer<'_> {
    /// Copies as far as there, and puts in what belongs before it.
    fn copy_to(&mut self, end: usize) {
        while let Some(insert) = self.inserts.next_if(|insert| insert.offset as usize <= end) {
            self.copy(insert.offset as usize);
            self.places.insert(self.reader.place(self.offset), &insert.text);
            self.code.push_str(&insert.text);
        }
        self.copy(end);
    }

    fn copy(&mut self, end: usize) {
        self.code.push_str(self.source.get(self.offset..end).unwrap_or_default());
        self.offset = self.offset.max(end);
    }

    fn blank(&mut self, blank: &Blank) {
        let end = blank.span.end as usize;
        let text = self.source.get(self.offset..end).unwrap_or_default();
        let mut first = blank.first.chars();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            self.code.push(match (char, blank.last) {
                ('\n' | '\r' | '\u{2028}' | '\u{2029}', _) => char,
                (_, Some(last)) if chars.as_str().is_empty() => last,
                _ => first.next().unwrap_or(' '),
            });
        }
        self.offset = self.offset.max(end);
    }

    fn finish(mut self, last_line: Option<&str>) -> (String, Places) {
        self.copy_to(self.source.len());
        if let Some(line) = last_line {
            self.code.push('\n');
            self.code.push_str(line);
        }
        self.places.finish(&self.code, self.reader.place(self.source.len()));
        (self.code, self.places)
    }
}
