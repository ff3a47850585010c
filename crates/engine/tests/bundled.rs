//! The workflows that come with the product: nothing is wrong with them, every path through them ends
//! and every step lies on one, and their checks tell honest work from lazy work.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use engine::{Budget, Checker, Progress, next};
use serde_json::{Map, Value, json};
use workflow::{Context, Format, Scrutiny, Step, Workflow, read};

#[path = "support/paths.rs"]
mod paths;

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
        let missed: Vec<&str> = plain_steps(&workflow).filter(|id| !reached.contains(id)).collect();
        assert!(missed.is_empty(), "no path through `{}` leads to {missed:?}", workflow.id);
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
    let samples: Value = serde_json::from_str(include_str!("samples.json")).unwrap();
    let checker = Checker::default();
    let mut used = 0;
    for workflow in workflows() {
        let id = &*workflow.id;
        for step in plain_steps(&workflow) {
            let has_criteria = match workflow.step(step).unwrap() {
                Step::Plain(step) => step.validation_criteria.is_some(),
                Step::Loop(_) => false,
            };
            let samples = samples[id][step].as_array().map_or(&[][..], Vec::as_slice);
            assert_eq!(has_criteria, !samples.is_empty(), "{id}/{step}: criteria need a sample");
            used += samples.len();
            for sample in samples {
                let context = sample["context"].as_object().cloned().unwrap_or_default();
                let verdict = |output: &str| {
                    checker.check(&workflow, step, output, &context, &Budget::for_call())
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
    let check = |context: &Context| {
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
    let verdict = json!(check(&Context::new()));
    assert_eq!(verdict, json!({"valid": true, "issues": [], "suggestions": []}));
    // A task with an id is taken seriously.
    let issues = check(&with_id).issues;
    assert_eq!(issues, ["Identified affected files", "Documented assumptions"]);
}

fn files() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workflows");
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn workflows() -> Vec<Workflow> {
    let read = |(name, bytes): (String, Vec<u8>)| {
        read(&bytes, Format::of(&name).unwrap(), Scrutiny::Syntax).workflow.unwrap()
    };
    files().into_iter().map(read).collect()
}

fn plain_steps(workflow: &Workflow) -> impl Iterator<Item = &str> {
    let mut ids = Vec::new();
    workflow.each_step(&mut |step| {
        if let Step::Plain(step) = step {
            ids.push(&*step.id);
        }
    });
    ids.into_iter()
}
