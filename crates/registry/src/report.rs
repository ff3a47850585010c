//! What is found while a file is read, with its places; and an object whose fields are taken one by one, so that what
//! nobody took is known to be unknown.

use std::collections::BTreeSet;
use std::ops::Range;

use tool_schema::nearest::nearest_one;
use tool_schema::pointer::join;

use super::finding::{Code, Finding, Severity};
use super::limits::{FINDINGS_MAX, LIST_MAX, SHORT_TEXT_MAX};
use super::tree::{Field, Kind, Lines, Node};

pub(super) struct Report<'a> {
    file: Option<Box<str>>,
    lines: Lines<'a>,
    findings: Vec<Finding>,
    errors: usize,
    unset: usize,
}

/// A value, and the way to it.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    pub(super) pointer: String,
    pub(super) key_range: Range<usize>,
}

/// A text of the file, and where it stands.
#[derive(Clone)]
pub(super) struct Raw {
    pub(super) text: String,
    pub(super) pointer: String,
    pub(super) range: Range<usize>,
}

impl<'a> Report<'a> {
    pub(super) fn new(file: Option<&str>, text: &'a str) -> Self {
        let file = file.map(Box::from);
        Self { file, lines: Lines::new(text), findings: Vec::new(), errors: 0, unset: 0 }
    }

    /// In the order of the text.
    pub(super) fn findings(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| finding.place);
        self.findings
    }

    /// Where `part` stands in the range; the whole range where it is written in another way there.
    pub(super) fn narrow(&self, range: &Range<usize>, part: &str) -> Range<usize> {
        self.lines.narrow(range, part)
    }

    /// Whether more findings would only be counted.
    fn is_full(&self) -> bool {
        self.findings.len() >= FINDINGS_MAX
    }

    /// How many errors there were so far.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// What the first error says behind so many findings, where it is still known.
    pub(super) fn first_error_after(&self, count: usize) -> Option<Box<str>> {
        let later = self.findings.get(count..)?;
        later.iter().find(|finding| finding.is_error()).map(|finding| finding.message.clone())
    }

    /// How many findings there are.
    pub(super) fn count(&self) -> usize {
        self.findings.len()
    }

    /// How many of them are about variables that are not set, which may be set elsewhere.
    pub(super) fn unset(&self) -> usize {
        self.unset
    }

    pub(super) fn add(
        &mut self,
        (code, severity): (Code, Severity),
        (pointer, range): (&str, &Range<usize>),
        message: impl Into<Box<str>>,
        hint: Option<String>,
    ) {
        self.errors += usize::from(severity == Severity::Error);
        self.unset += usize::from(code == Code::UnsetVariable);
        if !self.is_full() {
            self.findings.push(Finding {
                code,
                severity,
                file: self.file.clone(),
                place: Some(self.lines.place(range)),
                pointer: pointer.into(),
                message: message.into(),
                hint: hint.map(Into::into),
            });
        }
    }

    pub(super) fn error(
        &mut self,
        code: Code,
        at: (&str, &Range<usize>),
        message: impl Into<Box<str>>,
        hint: impl Into<String>,
    ) {
        self.add((code, Severity::Error), at, message, Some(hint.into()));
    }

    pub(super) fn warn(
        &mut self,
        code: Code,
        at: (&str, &Range<usize>),
        message: impl Into<Box<str>>,
        hint: impl Into<String>,
    ) {
        self.add((code, Severity::Warning), at, message, Some(hint.into()));
    }
}

impl<'a> At<'a> {
    pub(super) fn root(node: &'a Node) -> Self {
        Self { node, pointer: String::new(), key_range: node.range.clone() }
    }

    /// The last part of the way, as people call it.
    pub(super) fn name(&self) -> String {
        let mut way = self.pointer.rsplit('/');
        let last = way.next().unwrap_or_default();
        match way.next() {
            Some(list) if last.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{list}[{last}]")
            }
            _ => last.replace("~1", "/").replace("~0", "~"),
        }
    }

    pub(super) fn spot(&self) -> (&str, &Range<usize>) {
        (&self.pointer, &self.node.range)
    }

    pub(super) fn key(&self) -> (&str, &Range<usize>) {
        (&self.pointer, &self.key_range)
    }

    fn wrong(&self, report: &mut Report<'_>, wanted: &str) {
        let message = format!("`{}` is {}, not {wanted}", self.name(), self.node.what());
        report.error(Code::WrongType, self.spot(), message, format!("write {wanted}"));
    }

    /// A text that is not empty, and not longer than so many bytes.
    pub(super) fn text(&self, report: &mut Report<'_>, longest: usize) -> Option<Raw> {
        let raw = self.any_text(report, longest)?;
        if raw.text.trim().is_empty() {
            let message = format!("`{}` is empty", self.name());
            report.error(Code::TextLength, self.spot(), message, "write a text, or leave it out");
            return None;
        }
        Some(raw)
    }

    pub(super) fn any_text(&self, report: &mut Report<'_>, longest: usize) -> Option<Raw> {
        let Some(text) = self.node.text() else {
            self.wrong(report, "a text");
            return None;
        };
        if text.len() > longest {
            let message = format!("`{}` is longer than {longest} bytes", self.name());
            report.error(Code::TextLength, self.spot(), message, "shorten it");
            return None;
        }
        let (pointer, range) = (self.pointer.clone(), self.node.range.clone());
        Some(Raw { text: text.to_owned(), pointer, range })
    }

    pub(super) fn items(&self, report: &mut Report<'_>) -> Vec<At<'a>> {
        let Some(items) = self.node.items() else {
            self.wrong(report, "a list");
            return Vec::new();
        };
        if items.len() > LIST_MAX {
            let message = format!("`{}` has more than {LIST_MAX} items", self.name());
            report.error(Code::TextLength, self.spot(), message, "shorten it");
        }
        let items = items.iter().take(LIST_MAX).enumerate().map(|(index, node)| At {
            node,
            pointer: format!("{}/{index}", self.pointer),
            key_range: node.range.clone(),
        });
        items.collect()
    }

    pub(super) fn texts(&self, report: &mut Report<'_>, longest: usize) -> Vec<Raw> {
        let items = self.items(report);
        items.iter().filter_map(|item| item.text(report, longest)).collect()
    }

    /// The fields of an object, whatever their names are.
    pub(super) fn fields(&self, report: &mut Report<'_>) -> Vec<(&'a str, At<'a>)> {
        let Some(object) = self.object(report) else {
            return Vec::new();
        };
        let fields = object.fields.iter();
        fields.map(|field| (field.key.as_str(), object.at(field))).collect()
    }

    pub(super) fn flag(&self, report: &mut Report<'_>) -> Option<bool> {
        match self.node.kind {
            Kind::Flag(flag) => Some(flag),
            _ => {
                self.wrong(report, "`true` or `false`");
                None
            }
        }
    }

    /// A whole number within bounds.
    pub(super) fn number(&self, report: &mut Report<'_>, least: u64, most: u64) -> Option<u64> {
        let Kind::Number(number) = self.node.kind else {
            self.wrong(report, "a number");
            return None;
        };
        // Both bounds are small enough to be exact.
        if number.fract() == 0.0 && number >= least as f64 && number <= most as f64 {
            return Some(number as u64);
        }
        let message = format!("`{}` is not a whole number from {least} to {most}", self.name());
        report.error(Code::OutOfRange, self.spot(), message, "write a number within these bounds");
        None
    }

    /// Seconds, perhaps with a part of one, as milliseconds.
    pub(super) fn seconds(&self, report: &mut Report<'_>, most_ms: u64) -> Option<u64> {
        let Kind::Number(number) = self.node.kind else {
            self.wrong(report, "a number");
            return None;
        };
        let ms = (number * 1000.0).round();
        if ms >= 1.0 && ms <= most_ms as f64 {
            return Some(ms as u64);
        }
        let message = format!("`{}` is not within a day", self.name());
        report.error(Code::OutOfRange, self.spot(), message, "write a number of seconds");
        None
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, report: &mut Report<'_>, words: &[(&str, T)]) -> Option<T> {
        let raw = self.text(report, SHORT_TEXT_MAX)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == raw.text) {
            return Some(*value);
        }
        let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let message = format!("`{}` is none of {}", self.name(), all.join(", "));
        let hint = match nearest_one(&raw.text, words.iter().map(|(word, _)| *word)) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "write one of these".to_owned(),
        };
        report.error(Code::NotAllowed, self.spot(), message, hint);
        None
    }

    pub(super) fn object(&self, report: &mut Report<'_>) -> Option<Object<'a>> {
        let Some(fields) = self.node.fields() else {
            self.wrong(report, "an object");
            return None;
        };
        if fields.len() > LIST_MAX {
            let message = format!("`{}` has more than {LIST_MAX} fields", self.name());
            report.error(Code::TextLength, self.spot(), message, "shorten it");
        }
        let fields = &fields[..fields.len().min(LIST_MAX)];
        let mut seen = BTreeSet::new();
        for field in fields.iter().filter(|field| !seen.insert(&field.key)) {
            let pointer = join(&self.pointer, &field.key);
            let message = format!("`{}` stands twice", field.key);
            let hint = "remove one of them";
            report.error(Code::DuplicateKey, (&pointer, &field.key_range), message, hint);
        }
        let (pointer, range) = (self.pointer.clone(), self.node.range.clone());
        Some(Object { fields, pointer, range, known: Vec::new() })
    }
}

/// An object whose fields are taken one by one.
pub(super) struct Object<'a> {
    fields: &'a [Field],
    pub(super) pointer: String,
    pub(super) range: Range<usize>,
    /// Every name that was asked for, whether it was there or not.
    known: Vec<&'static str>,
}

impl<'a> Object<'a> {
    fn at(&self, field: &'a Field) -> At<'a> {
        At {
            node: &field.value,
            pointer: join(&self.pointer, &field.key),
            key_range: field.key_range.clone(),
        }
    }

    /// A field; what is `null` is not there.
    pub(super) fn take(&mut self, name: &'static str) -> Option<At<'a>> {
        self.known.push(name);
        let field = self.fields.iter().find(|field| field.key == name)?;
        (!matches!(field.value.kind, Kind::Null)).then(|| self.at(field))
    }

    /// Names that are known, and mean nothing to us.
    pub(super) fn pass_over(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Whatever nobody asked for. A severity says how bad that is.
    pub(super) fn finish(self, report: &mut Report<'_>, severity: Severity) {
        let unknown = |field: &&Field| !self.known.contains(&field.key.as_str());
        for field in self.fields.iter().filter(unknown) {
            // What begins with `$` is for editors, and what begins with `_` or `//` is a comment to many.
            if field.key.starts_with(['$', '_', '/']) {
                continue;
            }
            let at = self.at(field);
            // Nobody would read it, and finding names takes time.
            if report.is_full() {
                let message = "unknown field";
                report.add((Code::UnknownField, severity), at.key(), message, None);
                continue;
            }
            let hint = match nearest_one(&field.key, self.known.iter().copied()) {
                Some(name) => Some(format!("did you mean `{name}`?")),
                None if severity == Severity::Error => {
                    Some("remove it; `docs/registry.md` has all fields".to_owned())
                }
                None => None,
            };
            let message = format!("unknown field `{}`", field.key);
            report.add((Code::UnknownField, severity), at.key(), message, hint);
        }
    }
}
