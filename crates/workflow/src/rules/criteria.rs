//! Output checks: patterns and schemas have a good syntax (they are compiled later, on first use),
//! lengths can be met, and nothing is checked for nothing.

use super::{Report, each_step};
use crate::criteria::{Check, Composition, Criteria, Rule, RuleKind};
use crate::definition::{Step, Workflow};
use crate::finding::Code;
use crate::pointer::Pointer;
use crate::tree::At;
use crate::{pattern, schema};

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    each_step(workflow, &mut |step, pointer| {
        if let Step::Plain(step) = step
            && let Some(criteria) = &step.validation_criteria
        {
            each_check(
                criteria,
                &pointer.key("validationCriteria"),
                &mut |check, at| match check {
                    Check::Rule(rule) => check_rule(rule, at, report),
                    Check::Composition(parts) => check_composition(parts, at, report),
                },
            );
        }
    });
}

/// Calls `visit` with every check, compositions before their members.
pub(super) fn each_check<'w>(
    criteria: &'w Criteria,
    pointer: &Pointer<'_>,
    visit: &mut dyn FnMut(&'w Check, &Pointer<'_>),
) {
    match criteria {
        Criteria::One(check) => walk(check, pointer, visit),
        Criteria::All(checks) => {
            for (index, check) in checks.iter().enumerate() {
                walk(check, &pointer.index(index), visit);
            }
        }
    }
}

fn walk<'w>(
    check: &'w Check,
    pointer: &Pointer<'_>,
    visit: &mut dyn FnMut(&'w Check, &Pointer<'_>),
) {
    visit(check, pointer);
    let Check::Composition(parts) = check else {
        return;
    };
    for part in parts {
        let at = pointer.key(part.name());
        match part {
            Composition::Not(member) => walk(member, &at, visit),
            Composition::And(members) | Composition::Or(members) => {
                for (index, member) in members.iter().enumerate() {
                    walk(member, &at.index(index), visit);
                }
            }
        }
    }
}

fn check_rule(rule: &Rule, pointer: &Pointer<'_>, report: &mut Report) {
    if rule.message.is_empty() {
        let message = "the message is empty, so agents read a generated one".to_owned();
        let hint = Some("say what the agent should read when the rule fails".to_owned());
        report.add(Code::EmptyMessage, &pointer.key("message"), At::Value, message, hint);
    }
    match &rule.kind {
        RuleKind::Contains { value } => {
            if value.is_empty() {
                let message = "every output contains the empty text".to_owned();
                let hint = Some("say which text is wanted".to_owned());
                report.add(Code::NothingChecked, &pointer.key("value"), At::Value, message, hint);
            }
        }
        RuleKind::Length { min, max } => {
            if let (Some(min), Some(max)) = (min, max)
                && min > max
            {
                let message = format!("no output has at least {min} and at most {max} characters");
                let hint = Some("swap `min` and `max`, or mend one of them".to_owned());
                report.add(Code::LengthRange, &pointer.key("min"), At::Value, message, hint);
            }
        }
        RuleKind::Regex { pattern, flags } => {
            check_pattern(pattern, flags, pointer, report);
        }
        RuleKind::Schema { schema } => {
            if let Err(error) = schema::check(&schema.value()) {
                let at = format!("{pointer}/schema{}", error.pointer);
                let message = format!("the schema is malformed: {error}");
                let hint = Some("see JSON Schema 2020-12 for what may stand here".to_owned());
                report.add(Code::BadSchema, &at, At::Value, message, hint);
            }
        }
    }
}

fn check_pattern(text: &str, flags: &str, pointer: &Pointer<'_>, report: &mut Report) {
    match pattern::parse(text, flags) {
        Ok(translated) if translated.inline_flags => {
            let message = "flags inside a pattern are not JavaScript".to_owned();
            let hint = Some("write the letters in `flags` instead".to_owned());
            report.add(Code::InlineFlags, &pointer.key("pattern"), At::Value, message, hint);
        }
        Ok(_) => {}
        Err(error @ (pattern::Error::Flag(_) | pattern::Error::FlagTwice(_))) => {
            let hint = Some("use any of `i`, `m`, `s`, `u`, `g` and `y`, each once".to_owned());
            report.add(Code::BadPattern, &pointer.key("flags"), At::Value, error.to_string(), hint);
        }
        Err(error) => {
            let message = format!("the pattern is malformed: {error}");
            let hint = Some(
                "write a JavaScript pattern; to match a sign such as `(` or `*` itself, put a \
                 backslash before it"
                    .to_owned(),
            );
            report.add(Code::BadPattern, &pointer.key("pattern"), At::Value, message, hint);
        }
    }
}

fn check_composition(parts: &[Composition], pointer: &Pointer<'_>, report: &mut Report) {
    for part in parts {
        if let Composition::And(members) | Composition::Or(members) = part
            && members.is_empty()
        {
            let message = format!("`{}` has no member, so nothing is checked", part.name());
            let hint = Some("add rules, or remove it".to_owned());
            report.add(Code::NothingChecked, &pointer.key(part.name()), At::Value, message, hint);
        }
    }
}
