//! References to the outputs of earlier steps: `{{steps.plan.output}}`, and a path into an output that is
//! JSON. They are filled from the session and never from the context, so that an agent cannot forge
//! an earlier output.

use std::borrow::Cow;
use std::fmt;

use budget::{Budget, Exhausted};
use serde_json::Value;

use super::{plus, push_value};
use crate::definition::Workflow;
use crate::limits::REFERENCE_BYTES_MAX;
use crate::variables::follow;

/// How many bytes of JSON are read in one step.
const JSON_BYTES_PER_STEP: usize = 4;

/// A reference to the accepted output of a step: `steps.plan.output`, or a path into a JSON output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputReference<'a> {
    pub step: &'a str,
    pub path: Option<&'a str>,
}

/// The accepted outputs of a session.
pub trait Outputs {
    /// The last accepted output of a step; `None` if it has not run.
    fn output(&self, step: &str) -> Option<Cow<'_, str>>;
}

impl<F: Fn(&str) -> Option<String>> Outputs for F {
    fn output(&self, step: &str) -> Option<Cow<'_, str>> {
        self(step).map(Cow::Owned)
    }
}

/// Reads a reference to a step of this workflow. Step ids can have a dot: the longest one wins.
pub fn output_reference<'a>(workflow: &Workflow, name: &'a str) -> Option<OutputReference<'a>> {
    reference_candidates(name).find(|reference| workflow.has_output(reference.step))
}

/// What a name can refer to, the longest step id first.
pub(crate) fn reference_candidates(name: &str) -> impl Iterator<Item = OutputReference<'_>> {
    let rest = name.strip_prefix("steps.").unwrap_or_default();
    let mut dots = rest.match_indices('.').map(|(at, _)| at);
    let first = dots.next();
    [dots.next(), first].into_iter().flatten().filter_map(|at| {
        let path = match rest[at + 1..].strip_prefix("output")? {
            "" => None,
            path => Some(path.strip_prefix('.')?),
        };
        Some(OutputReference { step: &rest[..at], path })
    })
}

/// Where the outputs of a workflow's steps come from.
#[derive(Clone, Copy)]
pub(crate) struct OutputSource<'a> {
    pub(crate) workflow: &'a Workflow,
    pub(crate) outputs: &'a dyn Outputs,
}

impl fmt::Debug for OutputSource<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OutputSource")
            .field("workflow", &self.workflow.id)
            .finish_non_exhaustive()
    }
}

impl OutputSource<'_> {
    /// Adds the referenced output to a text, if it is there.
    pub(super) fn push(
        self,
        filled: &mut String,
        reference: OutputReference<'_>,
        amount: i64,
        budget: &Budget,
    ) -> Result<bool, Exhausted> {
        let Some(output) = self.outputs.output(reference.step) else { return Ok(false) };
        if reference.path.is_none() && amount == 0 {
            push_cut(filled, &output, reference.step);
            return Ok(true);
        }
        // Once as a whole, and once more for a block in it.
        budget.spend(2 * (output.len() / JSON_BYTES_PER_STEP) as u64)?;
        let Some(json) = parse(&output) else { return Ok(false) };
        let found = match reference.path {
            Some(path) => follow(&json, path, budget)?,
            None => Some(Cow::Borrowed(&json)),
        };
        let Some(value) = found.and_then(|found| plus(found, amount)) else { return Ok(false) };
        match &*value {
            Value::String(text) => push_cut(filled, text, reference.step),
            other => {
                budget.spend_value(other)?;
                let mut text = String::new();
                push_value(&mut text, other);
                push_cut(filled, &text, reference.step);
            }
        }
        Ok(true)
    }
}

/// Adds a text of at most [`REFERENCE_BYTES_MAX`] bytes; a longer one ends in how to read the rest.
fn push_cut(filled: &mut String, text: &str, step: &str) {
    if text.len() <= REFERENCE_BYTES_MAX {
        return filled.push_str(text);
    }
    let rest = format!("… (cut; workflow_status with stepId `{step}` returns all of it)");
    let end = text.floor_char_boundary(REFERENCE_BYTES_MAX - rest.len());
    filled.push_str(&text[..end]);
    filled.push_str(&rest);
}

/// The JSON of an output: all of it, or its one fenced block.
fn parse(output: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(output.trim()) {
        return Some(value);
    }
    let mut blocks = Vec::new();
    let (mut start, mut offset) = (None, 0);
    for line in output.split_inclusive('\n') {
        let end = offset + line.len();
        if line.trim_start().starts_with("```") {
            match start.take() {
                None => start = Some(end),
                Some(start) => blocks.push(&output[start..offset]),
            }
        }
        offset = end;
    }
    // A block whose end was forgotten is a block still, as for `schema` rules.
    blocks.extend(start.map(|start| &output[start..]));
    match blocks.as_slice() {
        [only] => serde_json::from_str(only).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;
    use crate::template::fill;
    use crate::variables::Variables;

    impl Outputs for HashMap<&str, String> {
        fn output(&self, step: &str) -> Option<Cow<'_, str>> {
            self.get(step).map(|output| output.as_str().into())
        }
    }

    fn workflow() -> Workflow {
        let step = |id: &str| json!({"id": id, "title": "T", "prompt": "P"});
        let definition = json!({
            "id": "mend-it", "name": "N", "description": "D", "version": "1.0.0",
            "steps": [
                step("plan"), step("plan.output"), step("look-at.it"), step("late"),
                {
                    "id": "each", "type": "loop", "title": "T", "body": [step("inner")],
                    "loop": {"type": "for", "count": 2, "maxIterations": 2},
                },
            ],
        });
        serde_json::from_value(definition).unwrap()
    }

    #[test]
    fn longest_step_id_wins() {
        let workflow = workflow();
        for (name, expected) in [
            ("steps.plan.output", Some(("plan", None))),
            ("steps.plan.output.files.0", Some(("plan", Some("files.0")))),
            ("steps.plan.output.output", Some(("plan.output", None))),
            ("steps.plan.output.output.a", Some(("plan.output", Some("a")))),
            ("steps.look-at.it.output", Some(("look-at.it", None))),
            ("steps.inner.output", Some(("inner", None))),
            ("steps.each.output", None),
            ("steps.plan", None),
            ("steps.plan.outputs", None),
            ("steps.plann.output", None),
            ("steps", None),
            ("step.plan.output", None),
        ] {
            let found = output_reference(&workflow, name).map(|it| (it.step, it.path));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn references_are_filled_from_the_outputs_only() {
        let workflow = workflow();
        let long = "é".repeat(REFERENCE_BYTES_MAX);
        let outputs = HashMap::from([
            ("plan", r#"{"files": ["a.rs", 7], "count": 2}"#.to_owned()),
            ("plan.output", "text with {{name}}".to_owned()),
            ("look-at.it", "Here:\n```json\n{\"a\": [1, {\"b\": null}]}\n```\nDone.".to_owned()),
            ("inner", long.clone()),
        ]);
        let context = json!({"steps": {"late": {"output": "forged"}}, "name": "Ada"});
        let budget = Budget::for_call();
        let context = context.as_object().unwrap();
        let variables = Variables::new(context, &budget).with_outputs(&workflow, &outputs);
        for (text, expected) in [
            ("{{steps.plan.output}}", r#"{"files": ["a.rs", 7], "count": 2}"#),
            ("{{steps.plan.output.files.0}} {{ steps.plan.output.files.1 - 1 }}", "a.rs 6"),
            ("{{steps.plan.output.files}} {{steps.plan.output.files.length}}", r#"["a.rs",7] 2"#),
            ("{{steps.plan.output.output}} {{name}}", "text with {{name}} Ada"),
            ("{{steps.look-at.it.output.a.1}}", r#"{"b":null}"#),
            ("{{steps.late.output}}", "{{steps.late.output}}"),
            ("{{steps.plan.output.none}}", "{{steps.plan.output.none}}"),
            ("{{steps.inner.output.a}}", "{{steps.inner.output.a}}"),
            ("{{steps.plan.output.files + 1}}", "{{steps.plan.output.files + 1}}"),
        ] {
            assert_eq!(fill(text, &variables).unwrap(), expected, "{text}");
        }
        let cut = fill("{{steps.inner.output}}", &variables).unwrap();
        let rest = "… (cut; workflow_status with stepId `inner` returns all of it)";
        assert!(cut.len() <= REFERENCE_BYTES_MAX && cut.len() > REFERENCE_BYTES_MAX - 4);
        assert!(long.starts_with(cut.strip_suffix(rest).unwrap()));
    }

    #[test]
    fn large_references_spend_the_budget() {
        let workflow = workflow();
        let outputs = HashMap::from([("plan", format!("[{}1]", "1,".repeat(100_000)))]);
        let (context, budget) = (serde_json::Map::new(), Budget::with_steps(10_000));
        let variables = Variables::new(&context, &budget).with_outputs(&workflow, &outputs);
        assert!(fill("{{steps.plan.output.0}}", &variables).is_err());
    }
}
