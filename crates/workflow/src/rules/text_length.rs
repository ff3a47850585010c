//! Texts over the recommended length work, but agents follow short ones better.

use super::criteria::each_check;
use super::{Report, each_step};
use crate::criteria::Check;
use crate::definition::{Step, Workflow};
use crate::finding::Code;
use crate::limits::{PROMPT_MAX, PROMPT_RECOMMENDED, TEXT_RECOMMENDED};
use crate::pointer::Pointer;
use crate::shape::name_of;
use crate::tree::At;

pub(super) fn check(workflow: &Workflow, report: &mut Report) {
    for (name, list) in [
        ("preconditions", &workflow.preconditions),
        ("clarificationPrompts", &workflow.clarification_prompts),
        ("metaGuidance", &workflow.meta_guidance),
    ] {
        let list_pointer = Pointer::Root.key(name);
        for (index, text) in list.iter().enumerate() {
            measure(text, TEXT_RECOMMENDED, &list_pointer.index(index), report);
        }
    }
    each_step(workflow, &mut |step, pointer| {
        if let Step::Plain(step) = step {
            measure(&step.prompt, PROMPT_RECOMMENDED, &pointer.key("prompt"), report);
            let list = pointer.key("guidance");
            for (index, text) in step.guidance.iter().enumerate() {
                measure(text, TEXT_RECOMMENDED, &list.index(index), report);
            }
            if let Some(criteria) = &step.validation_criteria {
                let at = pointer.key("validationCriteria");
                each_check(criteria, &at, &mut |check, at| {
                    if let Check::Rule(rule) = check {
                        measure(&rule.message, TEXT_RECOMMENDED, &at.key("message"), report);
                    }
                });
            }
        }
    });
}

fn measure(text: &str, recommended: usize, pointer: &Pointer<'_>, report: &mut Report) {
    if text.len() <= recommended {
        return;
    }
    let length = text.chars().count();
    // A prompt beyond the hard limit is reported as an error already.
    let is_error = recommended == PROMPT_RECOMMENDED && length > PROMPT_MAX;
    if length > recommended && !is_error {
        let name = name_of(&pointer.to_string());
        let message =
            format!("{name} has {length} characters; up to {recommended} are recommended");
        let hint = Some("split it, or say it shorter".to_owned());
        report.add(Code::LongText, pointer, At::Value, message, hint);
    }
}
