//! The workflows that come with the product, and honest work on each of their steps.

use std::path::PathBuf;

use serde_json::Value;
use workflow::definition::PlainStep;
use workflow::{Format, Scrutiny, Step, Workflow, read};

/// The files by name.
pub(crate) fn files() -> Vec<(String, Vec<u8>)> {
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

pub(crate) fn workflows() -> Vec<Workflow> {
    let read = |(name, bytes): (String, Vec<u8>)| {
        read(&bytes, Format::of(&name).unwrap(), Scrutiny::Syntax).workflow.unwrap()
    };
    files().into_iter().map(read).collect()
}

pub(crate) fn plain_steps(workflow: &Workflow) -> Vec<&PlainStep> {
    let mut steps = Vec::new();
    workflow.each_step(&mut |step| {
        if let Step::Plain(step) = step {
            steps.push(&**step);
        }
    });
    steps
}

/// Outputs by workflow and step, with what the agent reports or knows, if the checks depend on it.
pub(crate) fn samples() -> Value {
    serde_json::from_str(include_str!("../samples.json")).unwrap()
}
