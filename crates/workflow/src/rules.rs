//! The table of rules: what the types and the shape cannot say. Each looks at the whole workflow and
//! reports everything that it finds; adding one means a file here and a line in the table.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::condition::Condition;
use crate::definition::{Step, Workflow};
use crate::finding::{Code, Severity, blocks};
use crate::pointer::Pointer;
use crate::tree::At;

mod assignment;
mod comparisons;
pub(crate) mod compile;
mod conditions;
mod criteria;
mod gates;
mod ids;
mod limits;
mod loop_nesting;
mod loop_results;
mod loops;
mod outputs;
mod reserved;
mod scope;
mod server_version;
mod templates;
mod text_length;
mod variables;

pub(crate) use gates::NAMED_BODIES_MAX;
pub(crate) use templates::add_words;

type Rule = fn(&Workflow, &mut Report);

const RULES: &[Rule] = &[
    limits::check,
    server_version::check,
    ids::check,
    loops::check,
    loop_nesting::check,
    conditions::check,
    criteria::check,
    variables::check,
    comparisons::check,
    gates::check,
    loop_results::check,
    templates::check,
    reserved::check,
    outputs::check,
    text_length::check,
];

pub(crate) fn check(workflow: &Workflow, report: &mut Report) {
    for rule in RULES {
        rule(workflow, report);
    }
}

/// More findings than this of one severity help nobody.
pub(crate) const FINDINGS_MAX: usize = 1_000;

/// What was found so far, not yet placed in the text.
#[derive(Debug, Default)]
pub(crate) struct Report {
    drafts: Vec<Draft>,
    errors: usize,
    warnings: usize,
    /// An error was found that is not among the drafts, because there are so many.
    has_more_errors: bool,
    /// Not everything of these severities was looked for, or kept.
    is_cut: [bool; 2],
    /// The places whose shape is wrong: at and below them nothing more is reported.
    misshapen: BTreeSet<String>,
    /// The shape has been looked at, and rules report now.
    is_settled: bool,
    /// The words of a definition that had to be mended, as its author wrote it.
    written: HashSet<String>,
}

#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) code: Code,
    pub(crate) pointer: String,
    pub(crate) at: At,
    /// The part of the value that is meant, where it is not the whole.
    pub(crate) part: Option<String>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Report {
    /// Adds a finding, unless it is about a value whose shape is wrong already: that would be noise.
    pub(crate) fn add(
        &mut self,
        code: Code,
        pointer: &dyn ToString,
        at: At,
        message: String,
        hint: Option<String>,
    ) {
        let pointer = pointer.to_string();
        self.add_draft(Draft { code, pointer, at, part: None, message, hint });
    }

    /// Adds a finding about a part of a text.
    pub(crate) fn add_part(
        &mut self,
        code: Code,
        pointer: &str,
        part: &str,
        message: String,
        hint: Option<String>,
    ) {
        let (pointer, part) = (pointer.to_owned(), Some(part.to_owned()));
        self.add_draft(Draft { code, pointer, at: At::Value, part, message, hint });
    }

    fn add_draft(&mut self, draft: Draft) {
        if self.is_misshapen(&draft.pointer) {
            return;
        }
        let severity = draft.code.severity();
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if *count >= FINDINGS_MAX {
            self.has_more_errors |= severity == Severity::Error;
            return self.cut(severity);
        }
        *count += 1;
        if !self.is_settled {
            self.misshapen.insert(draft.pointer.clone());
        }
        self.drafts.push(draft);
    }

    /// Whether the place is at or below one that is misshapen; for a rule also whether one lies in it,
    /// since then the rule looked at a stand-in.
    fn is_misshapen(&self, pointer: &str) -> bool {
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
        if ends.into_iter().any(|end| self.misshapen.contains(&pointer[..end])) {
            return true;
        }
        let inner = format!("{pointer}/");
        let mut inside = self.misshapen.range(inner.clone()..);
        self.is_settled && inside.next().is_some_and(|place| place.starts_with(&inner))
    }

    /// From now on nothing at or below this place is reported.
    pub(crate) fn hush(&mut self, pointer: String) {
        self.misshapen.insert(pointer);
    }

    /// From now on the rules report.
    pub(crate) fn settle(&mut self) {
        self.is_settled = true;
    }

    /// Keeps the words of a definition that is about to be mended.
    pub(crate) fn remember_words(&mut self, definition: &Value) {
        self.written = templates::written_words(definition);
    }

    /// Whether a word stood in the definition before it was mended.
    pub(crate) fn was_written(&self, word: &str) -> bool {
        self.written.contains(word)
    }

    /// Whether stand-ins were put into the definition.
    pub(crate) fn is_mended(&self) -> bool {
        !self.written.is_empty()
    }

    /// Whether more findings of this severity would not be kept.
    pub(crate) fn is_full(&self, severity: Severity) -> bool {
        match severity {
            Severity::Error => self.errors >= FINDINGS_MAX,
            Severity::Warning => self.warnings >= FINDINGS_MAX,
        }
    }

    pub(crate) fn leave_out_error(&mut self) {
        self.has_more_errors = true;
        self.cut(Severity::Error);
    }

    /// Remembers that there may be more findings of this severity.
    pub(crate) fn cut(&mut self, severity: Severity) {
        self.is_cut[severity as usize] = true;
    }

    pub(crate) fn is_cut(&self, severity: Severity) -> bool {
        self.is_cut[severity as usize]
    }

    pub(crate) fn has_more_errors(&self) -> bool {
        self.has_more_errors
    }

    /// Whether something in here keeps the whole workflow from being used.
    pub(crate) fn blocks(&self) -> bool {
        self.has_more_errors || self.drafts.iter().any(|draft| blocks(draft.code, &draft.pointer))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    pub(crate) fn into_drafts(self) -> Vec<Draft> {
        self.drafts
    }
}

/// A condition as a message names it; one that says nothing is not repeated.
fn shown(condition: &Condition) -> String {
    match condition.to_string().as_str() {
        "always" | "never" => "its condition".to_owned(),
        text => format!("`{text}`"),
    }
}

/// Calls `visit` with every step of the tree and its place.
fn each_step<'w>(workflow: &'w Workflow, visit: &mut dyn FnMut(&'w Step, &Pointer<'_>)) {
    fn walk<'w>(
        steps: &'w [Step],
        list: &Pointer<'_>,
        visit: &mut dyn FnMut(&'w Step, &Pointer<'_>),
    ) {
        for (index, step) in steps.iter().enumerate() {
            let pointer = list.index(index);
            visit(step, &pointer);
            walk(step.inline_body(), &pointer.key("body"), visit);
        }
    }
    walk(&workflow.steps, &Pointer::Root.key("steps"), visit);
}
