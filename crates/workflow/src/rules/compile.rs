//! Compiles every pattern and schema, which loading does not: for authors, who want to know before
//! an agent does. What has a bad syntax is reported by `criteria` already.

use super::{Report, each_step};
use crate::criteria::{Check, RuleKind};
use crate::definition::{Step, Workflow};
use crate::finding::Code;
use crate::tree::At;
use crate::{pattern, schema};

pub(crate) fn check(workflow: &Workflow, report: &mut Report) {
    each_step(workflow, &mut |step, pointer| {
        let Step::Plain(step) = step else {
            return;
        };
        let Some(criteria) = &step.validation_criteria else {
            return;
        };
        super::criteria::each_check(
            criteria,
            &pointer.key("validationCriteria"),
            &mut |check, at| {
                let Check::Rule(rule) = check else {
                    return;
                };
                match &rule.kind {
                    RuleKind::Regex { pattern, flags }
                        if pattern::parse(pattern, flags).is_ok() =>
                    {
                        if let Err(error) = pattern::compile(pattern, flags) {
                            let message = format!("the pattern cannot be compiled: {error}");
                            let hint =
                                Some("repeat less, or check less with one pattern".to_owned());
                            report.add(
                                Code::BadPattern,
                                &at.key("pattern"),
                                At::Value,
                                message,
                                hint,
                            );
                        }
                    }
                    RuleKind::Schema { schema } => {
                        let value = schema.value();
                        if schema::check(&value).is_ok()
                            && let Err(error) = schema::compile(&value)
                        {
                            let place = format!("{at}/schema{}", error.pointer);
                            let message = format!("the schema cannot be compiled: {error}");
                            let hint = Some(
                                "keep the schema self-contained, and its patterns small".to_owned(),
                            );
                            report.add(Code::BadSchema, &place, At::Value, message, hint);
                        }
                    }
                    _ => {}
                }
            },
        );
    });
}
