//! Compiles every pattern and schema, which loading does not: for authors, who want to know before
//! an agent does. What has a bad syntax is reported by `criteria` already.

use std::collections::HashSet;

use super::{Report, each_step};
use crate::criteria::{Check, Rule, RuleKind};
use crate::definition::{Step, Workflow};
use crate::finding::{Code, Severity};
use crate::pattern::Matcher;
use crate::pointer::Pointer;
use crate::tree::At;
use crate::{pattern, schema};

/// Compiling takes long where it fails, because that happens at the bound: after so many failures
/// nothing more is compiled.
const FAILURES_MAX: usize = 200;
/// What all that is compiled may come to. (A file that needs more is nobody's; what is beyond is
/// compiled on first use, as ever.)
const BYTES_MAX: usize = 1024 * 1024 * 1024;
/// What a pattern that backtracks or stands inside a schema is taken to come to: nobody tells.
const OPAQUE_BYTES: usize = 512 * 1024;

pub(crate) fn check(workflow: &Workflow, report: &mut Report) {
    let mut compiling = Compiling::default();
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

#[derive(Default)]
struct Compiling {
    /// Patterns that can be compiled: once is enough.
    good: HashSet<(Box<str>, Box<str>)>,
    failures: usize,
    bytes: usize,
}

impl Compiling {
    fn is_enough(&self, report: &Report) -> bool {
        let is_full = report.is_full(Severity::Error);
        is_full || self.failures >= FAILURES_MAX || self.bytes >= BYTES_MAX
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
                        self.bytes += match matcher {
                            Matcher::Linear(_) => matcher.bytes(),
                            Matcher::Backtracking(_) => OPAQUE_BYTES,
                        };
                        self.good.insert(key);
                    }
                    Err(error) => {
                        self.failures += 1;
                        let message = format!("the pattern cannot be compiled: {error}");
                        let hint = Some("repeat less, or check less with one pattern".to_owned());
                        report.add(Code::BadPattern, &at.key("pattern"), At::Value, message, hint);
                    }
                }
            }
            RuleKind::Schema { schema } => {
                let value = schema.value();
                if schema::check(&value).is_err() {
                    return;
                }
                let patterns = schema.text().matches("\"pattern").count();
                self.bytes += patterns * OPAQUE_BYTES;
                if let Err(error) = schema::compile(&value) {
                    self.failures += 1;
                    let place = format!("{at}/schema{}", error.pointer);
                    let message = format!("the schema cannot be compiled: {error}");
                    let hint =
                        Some("keep the schema self-contained, and its patterns small".to_owned());
                    report.add(Code::BadSchema, &place, At::Value, message, hint);
                }
            }
            RuleKind::Contains { .. } | RuleKind::Length { .. } => {}
        }
    }
}
