//! Files of the format's family from the wild can be used, and walk to their end. They are not ours, so they are not in
//! this repository, and the test is ignored unless they are asked for.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use std::path::{Path, PathBuf};

use workflow::{Finding, Format, Scrutiny, read};

#[path = "support/paths.rs"]
mod paths;

/// The files that are known to be wrong, with the number of their errors.
const WRONG: [(&str, usize); 2] =
    [("example-invalid-workflow.json", 7), ("example-ai-task-prompt-workflow.json", 1)];

/// Names the directory with the files.
const DIRECTORY: &str = "WORKFLOWLOOKUP_CORPUS";

#[test]
#[ignore = "needs workflow files from the wild; see CONTRIBUTING.md"]
fn files_from_the_wild_can_be_used() {
    let Some(corpus) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        panic!("`{DIRECTORY}` names the directory with the files; see CONTRIBUTING.md");
    };
    let files = files_below(&corpus);
    assert!(files.len() >= 13, "there are {}", files.len());
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let format = Format::of(name).unwrap();
        let reading = read(&std::fs::read(&path).unwrap(), format, Scrutiny::Compile);
        let errors: Vec<&Finding> = reading.findings.iter().filter(|f| f.is_error()).collect();
        let expected =
            WRONG.iter().find(|(wrong, _)| *wrong == name).map_or(0, |(_, count)| *count);
        assert_eq!(errors.len(), expected, "{name}: {errors:#?}");
        assert_eq!(reading.workflow.is_some(), expected == 0, "{name}");
        if let Some(workflow) = reading.workflow {
            let given = paths::walk_all(&workflow);
            let first = workflow.steps[0].id();
            assert!(given.iter().any(|given| given.id == first), "{name} does not begin");
            assert!(given.iter().all(|given| !given.prompt.is_empty()), "{name} says nothing");
        } else if name == "example-ai-task-prompt-workflow.json" {
            assert!(errors[0].message.contains("`version`"), "{}", errors[0].message);
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if Format::of(path.to_str().unwrap()).is_some() {
            files.push(path);
        }
    }
    files.sort();
    files
}
