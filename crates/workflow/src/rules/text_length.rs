//! Texts over the recommended length work, but agents follow short ones better.

use super::{Report, each_step};
use crate::definition::{Step, Workflow};
use crate::finding::Code;
use crate::limits::{PROMPT_MAX, PROMPT_RECOMMENDED, TEXT_RECOMMENDED};
use crate::pointer::Pointer;
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
            // Beyond the hard limit the text is reported as an error already.
            if step.prompt.len() <= PROMPT_MAX {
                measure(&step.prompt, PROMPT_RECOMMENDED, &pointer.key("prompt"), report);
            }
            let list = pointer.key("guidance");
            for (index, text) in step.guidance.iter().enumerate() {
                measure(text, TEXT_RECOMMENDED, &list.index(index), report);
            }
        }
    });
}

fn measure(text: &str, recommended: usize, pointer: &Pointer<'_>, report: &mut Report) {
    if text.len() <= recommended {
        return;
    }
    let length = text.chars().count();
    if length > recommended {
        let message =
            format!("the text has {length} characters; up to {recommended} are recommended");
        let hint = Some("split it, or say it shorter".to_owned());
        report.add(Code::LongText, pointer, At::Value, message, hint);
    }
}
