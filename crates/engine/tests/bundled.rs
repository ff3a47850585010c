//! The workflows that come with the product: nothing is wrong with them, every path through them ends
//! and every step lies on one, and their checks tell honest work from lazy work.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use std::collections::BTreeSet;

use engine::{Budget, Checker, Progress, next};
use serde_json::{Map, json};
use workflow::{Context, Format, Scrutiny, read};

#[path = "support/bundled.rs"]
mod bundled;
#[path = "support/paths.rs"]
mod paths;

use bundled::{files, plain_steps, samples, workflows};

/// What somebody writes who has not done the work.
const LAZY: [&str; 3] =
    ["", "Done.", "I completed this step as requested and everything looks good."];

#[test]
fn nothing_is_found_in_them() {
    let files = files();
    assert!(files.len() >= 9, "there are {}", files.len());
    for (name, bytes) in files {
        let reading = read(&bytes, Format::of(&name).unwrap(), Scrutiny::Compile);
        assert!(reading.findings.is_empty(), "{name}: {:#?}", reading.findings);
        let id = reading.workflow.unwrap().id;
        assert_eq!(name.split_once('.').unwrap().0, &*id, "a file is named after its workflow");
    }
}

#[test]
fn every_path_ends_and_every_step_lies_on_one() {
    for workflow in workflows() {
        let given = paths::walk_all(&workflow);
        let reached: BTreeSet<&str> = given.iter().map(|given| &*given.id).collect();
        let steps = plain_steps(&workflow);
        let missed: Vec<&str> =
            steps.iter().map(|step| &*step.id).filter(|id| !reached.contains(id)).collect();
        assert!(missed.is_empty(), "no path through `{}` leads to {missed:?}", workflow.id);
        // An agent can only report what it is asked for.
        for step in steps {
            for given in given.iter().filter(|given| *given.id == *step.id) {
                for report in &step.reports {
                    let line = format!("\n- `{}`", report.name);
                    assert!(given.prompt.contains(&line), "{}: {}", step.id, given.prompt);
                }
            }
        }
        // What a loop binds is there wherever a text of its body asks for it.
        let loops = paths::loops(&workflow);
        for name in loops.iter().flat_map(|step| step.r#loop.variables()) {
            let slot = format!("{{{{{name}");
            let open = given.iter().find(|given| given.prompt.contains(&slot));
            assert!(open.is_none(), "{}: {}", workflow.id, open.unwrap().prompt);
        }
    }
}

#[test]
fn honest_work_passes_and_lazy_work_fails() {
    let samples = samples();
    let checker = Checker::default();
    let mut used = 0;
    for workflow in workflows() {
        let id = &*workflow.id;
        for step in plain_steps(&workflow) {
            let has_criteria = step.validation_criteria.is_some();
            let step = &*step.id;
            let samples = samples[id][step].as_array().map_or(&[][..], Vec::as_slice);
            assert_eq!(has_criteria, !samples.is_empty(), "{id}/{step}: criteria need a sample");
            used += samples.len();
            for sample in samples {
                let context = sample["context"].as_object();
                let verdict = |output: &str| {
                    checker.check(&workflow, step, output, context, &Budget::for_call())
                };
                let honest = verdict(sample["output"].as_str().unwrap()).unwrap();
                assert!(honest.valid, "{id}/{step}: {honest:#?}");
                for lazy in LAZY {
                    assert!(!verdict(lazy).unwrap().valid, "{id}/{step} accepts {lazy:?}");
                }
            }
        }
    }
    let all = samples.as_object().unwrap().values().flat_map(|steps| steps.as_object().unwrap());
    let all: usize = all.map(|(_, samples)| samples.as_array().unwrap().len()).sum();
    assert_eq!(used, all, "a sample belongs to no step");
}

/// The first specification prints these exchanges for `ai-task-implementation`.
#[test]
fn the_first_step_of_ai_task_implementation_answers_as_printed() {
    let workflows = workflows();
    let workflow = workflows.iter().find(|workflow| &*workflow.id == "ai-task-implementation");
    let workflow = workflow.unwrap();
    let with_id: Context = Map::from_iter([("taskId".to_owned(), json!("TASK-123"))]);
    for context in [&Context::new(), &with_id] {
        let completed: &[String] = &[];
        let answer =
            next(workflow, Progress { completed, current: None, context }, &Budget::for_call())
                .unwrap();
        assert_eq!(answer.step.unwrap().id, "understand");
        assert!(answer.guidance.requires_confirmation);
        assert_eq!(answer.guidance.model_hint, Some("model-with-strong-reasoning"));
        let messages = [
            "Clear understanding of requirements",
            "Identified affected files",
            "Documented assumptions",
        ];
        assert_eq!(answer.guidance.validation_criteria, messages);
        for message in messages {
            let listed = answer.guidance.prompt.matches(&format!("- {message}")).count();
            assert_eq!(listed, 1, "{message}");
        }
    }
    let checker = Checker::default();
    let check = |context: Option<&Context>| {
        checker
            .check(
                workflow,
                "understand",
                "I have analyzed the requirements.",
                context,
                &Budget::for_call(),
            )
            .unwrap()
    };
    let verdict = json!(check(None));
    assert_eq!(verdict, json!({"valid": true, "issues": [], "suggestions": []}));
    // A task with an id is taken seriously.
    let issues = check(Some(&with_id)).issues;
    assert_eq!(issues, ["Identified affected files", "Documented assumptions"]);
}
