//! Compiles every pattern and schema, which loading does not: for authors, who want to know before
//! an agent does. What has a bad syntax is reported by `criteria` already.

use std::collections::HashSet;

use budget::Budget;
use budget::pattern::COMPILED_BYTES_MAX;

use super::{Report, each_step};
use crate::criteria::{Check, Embedded, Rule, RuleKind};
use crate::definition::{Step, Workflow};
use crate::finding::{Code, Severity};
use crate::pattern::{self, Matcher};
use crate::pointer::Pointer;
use crate::schema::{self, Options, Schema};
use crate::tree::At;

/// Compiling takes long where it fails, because that happens at the bound: after so many failures
/// nothing more is compiled.
const FAILURES_MAX: usize = 50;
/// What all that is compiled may come to. (A file that needs more is nobody's; what is beyond is
/// compiled on first use, as ever.)
const BYTES_MAX: usize = 128 * 1024 * 1024;
/// How many steps it may take to try patterns, all of them together.
const PROBING_STEPS_MAX: u64 = 20_000_000;

pub(crate) fn check(workflow: &Workflow, report: &mut Report) {
    let mut compiling = Compiling::default();
    let list = Pointer::Root.key("variables");
    for (name, declaration) in workflow.variables.iter() {
        let Some(schema) = &declaration.schema else { continue };
        match compiling.is_enough(report) {
            false => compiling.check_schema(schema, &list.key(name), report),
            true => report.cut(Severity::Error),
        }
    }
    each_step(workflow, &mut |step, pointer| {
        if let Step::Plain(step) = step
            && let Some(criteria) = &step.validation_criteria
        {
            let at = pointer.key("validationCriteria");
            super::criteria::each_check(criteria, &at, &mut |check, at| {
                let Check::Rule(rule) = check else {
                    return;
                };
                if !compiling.is_enough(report) {
                    compiling.check_rule(rule, at, report);
                } else if matches!(rule.kind, RuleKind::Regex { .. } | RuleKind::Schema { .. }) {
                    report.cut(Severity::Error);
                }
            });
        }
    });
}

/// A pattern is tried on texts of this length, within so many steps.
const PROBE_BYTES: usize = 1_000;
const PROBE_STEPS_MAX: u64 = 300_000;

/// Whether a pattern takes long on texts that it may meet: one letter over and over, or what it looks for itself. Adds the
/// steps that it took to find out.
fn is_expensive(matcher: &Matcher, pattern: &str, steps: &mut u64) -> bool {
    let own: String = pattern.chars().filter(char::is_ascii_alphanumeric).collect();
    let probes = ["a", "0", " ", own.as_str()].into_iter().filter(|probe| !probe.is_empty());
    probes.into_iter().any(|probe| {
        let text = probe.repeat(PROBE_BYTES.div_ceil(probe.len()));
        let text = &text[..PROBE_BYTES];
        let budget = Budget::with_steps(PROBE_STEPS_MAX);
        let is_exhausted = matcher.is_match(text, &budget).is_err();
        *steps += budget.steps();
        is_exhausted
    })
}

#[derive(Default)]
struct Compiling {
    /// Patterns that can be compiled: once is enough.
    good: HashSet<(Box<str>, Box<str>)>,
    failures: usize,
    bytes: usize,
    /// What trying patterns has taken so far.
    steps: u64,
}

impl Compiling {
    fn is_enough(&self, report: &Report) -> bool {
        let is_full = report.is_full(Severity::Error);
        let is_spent = self.bytes >= BYTES_MAX || self.steps >= PROBING_STEPS_MAX;
        is_full || self.failures >= FAILURES_MAX || is_spent
    }

    /// Reports a pattern that takes long, of a rule or in its schema.
    fn probe(
        &mut self,
        matcher: &Matcher,
        pattern: &str,
        name: &str,
        at: &Pointer<'_>,
        report: &mut Report,
    ) {
        if self.steps >= PROBING_STEPS_MAX || !is_expensive(matcher, pattern, &mut self.steps) {
            return;
        }
        self.failures += 1;
        let message = format!(
            "{name} may need more than {PROBE_STEPS_MAX} steps for {PROBE_BYTES} characters"
        );
        let hint = Some("repeat less inside of repetitions".to_owned());
        report.add(Code::ExpensiveRule, at, At::Value, message, hint);
    }

    fn check_rule(&mut self, rule: &Rule, at: &Pointer<'_>, report: &mut Report) {
        match &rule.kind {
            RuleKind::Regex { pattern, flags } => {
                let key = (pattern.clone(), flags.clone());
                // A bad syntax is reported by `criteria` already.
                if pattern::parse(pattern, flags).is_err() || self.good.contains(&key) {
                    return;
                }
                match pattern::compile(pattern, flags) {
                    Ok(matcher) => {
                        self.bytes += matcher.bytes();
                        self.good.insert(key);
                        if matcher.backtracks() {
                            self.probe(
                                &matcher,
                                pattern,
                                "the pattern",
                                &at.key("pattern"),
                                report,
                            );
                        }
                    }
                    Err(error) => {
                        self.failures += 1;
                        let message = format!("the pattern cannot be compiled: {error}");
                        let hint = Some("repeat less, or check less with one pattern".to_owned());
                        report.add(Code::BadPattern, &at.key("pattern"), At::Value, message, hint);
                    }
                }
            }
            RuleKind::Schema { schema } => self.check_schema(schema, at, report),
            RuleKind::Contains { .. } | RuleKind::Length { .. } => {}
        }
    }

    /// Checks the `schema` of a rule or of a declared variable.
    fn check_schema(&mut self, schema: &Embedded, at: &Pointer<'_>, report: &mut Report) {
        let value = schema.value();
        if schema::check(&value).is_err() {
            return;
        }
        if let Some(expense) = schema::expense(&value) {
            self.failures += 1;
            let message = format!("the schema may take too long: {expense}");
            let hint = Some("write what the alternatives share once".to_owned());
            report.add(Code::ExpensiveRule, &at.key("schema"), At::Value, message, hint);
        }
        match Schema::compile(&value, Options::default()) {
            Ok(compiled) => {
                self.bytes += compiled.pattern_bytes();
                let mut patterns: Vec<_> = compiled.patterns().collect();
                patterns.retain(|(_, matcher)| matcher.backtracks());
                patterns.sort_unstable_by_key(|(text, _)| *text);
                for (text, matcher) in patterns {
                    let name = format!("the pattern `{text}`");
                    self.probe(matcher, text, &name, &at.key("schema"), report);
                }
            }
            Err(error) => {
                self.failures += 1;
                // What was compiled before it failed is not known.
                self.bytes += schema::PATTERNS_BYTES_MAX
                    .min(schema::pattern_texts(&value).len() * COMPILED_BYTES_MAX);
                let place = format!("{at}/schema{}", error.pointer);
                let message = format!("the schema cannot be compiled: {error}");
                let hint =
                    Some("keep the schema self-contained, and its patterns small".to_owned());
                report.add(Code::BadSchema, &place, At::Value, message, hint);
            }
        }
    }
}
