//! Real clients against the real server: each lists everything, walks a bundled workflow to its end and meets
//! errors, in every way in which it can connect. All of them must see the same. What those that are not
//! written in Rust do is in `tests/clients/`; `cargo xtask test` installs them and says where they are.

mod inspector;
mod rmcp;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::transcripts::PATIENCE;
use super::{Done, Place, repository};

/// The workflow that is walked: it has conditions and two kinds of loops.
const WORKFLOW: &str = "write-documentation";
const SERVER: &str = env!("CARGO_BIN_EXE_workflowlookup");
/// More steps than the walk has: beyond, it does not end.
const STEPS_MAX: usize = 20;

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_typescript_sdk() {
    let script = installed("typescript").join("walk.mjs");
    // Node looks for packages beside the script.
    fs::copy(scripts().join("typescript/walk.mjs"), &script).unwrap();
    let reports = ["v1", "v2", "v2-auto"].map(|way| {
        let mut node = Command::new(node());
        node.arg(&script).args([way, SERVER, &walk().to_string()]);
        format!("{way}: {}", seen_by_all(&report(node)))
    });
    insta::assert_snapshot!(reports.join("\n"), @"
    v1: workflowlookup [VERSION], revision 2025-11-25
    v2: workflowlookup [VERSION], revision 2025-11-25
    v2-auto: workflowlookup [VERSION], revision 2026-07-28
    ");
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_python_sdk() {
    let reports = ["legacy", "auto"].map(|mode| {
        let mut python = Command::new(installed("python").join("bin/python"));
        python.arg(scripts().join("python/walk.py"));
        python.args([mode, SERVER, &walk().to_string()]);
        format!("{mode}: {}", seen_by_all(&report(python)))
    });
    insta::assert_snapshot!(reports.join("\n"), @"
    legacy: workflowlookup [VERSION], revision 2025-11-25
    auto: workflowlookup [VERSION], revision 2026-07-28
    ");
}

/// Holds a report against what every client sees. The line that is left says how it is connected.
fn seen_by_all(report: &str) -> String {
    let (connected, seen) = report.split_once('\n').unwrap();
    insta::allow_duplicates! {
        insta::assert_snapshot!(seen, @"
        tools: workflow_list, workflow_get, workflow_next, workflow_validate, workflow_lint, workflow_start, workflow_advance, workflow_status, workflow_rewind
        resources: 10, first workflow-schema://definition
        templates: workflow://{id}, session://{id}
        prompts: ai-task-implementation, build-feature, handle-incident, investigate-bug, prepare-release, refactor-safely, review-change, write-a-workflow, write-documentation
        read workflow://write-documentation: application/json, Write Documentation
        prompt: - Who will read this, and what are they trying to do at that moment? Operators.
        completions of write: write-a-workflow, write-documentation
        workflow_list: 9 workflows
        workflow_get: Write Documentation
        workflow_lint: not usable
        walk of write-documentation:
          choose-reader: not valid (2), then valid
          gather-facts: not valid (2), then valid
          outline: not valid (1), then valid
          draft-section: not valid (1), then valid
          draft-section: not valid (1), then valid
          run-examples: not valid (2), then valid
          edit-pass: not valid (2), then valid
          edit-pass: not valid (2), then valid
          hand-in: not valid (1), then valid
          complete
        structured results that fit their schemas: 31
        refused: No workflow has the id `write-documentatio`. Did you mean `write-documentation`? `workflow_list` shows all ids.
        unknown tool: -32602, there is no tool `workflow_lost`
        ");
    }
    connected.replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
}

/// What an agent brings along: a good output for each step, and what it learns there.
fn walk() -> Value {
    let samples = repository().join("crates/engine/tests/samples.json");
    let samples: Value = serde_json::from_slice(&fs::read(samples).unwrap()).unwrap();
    let steps = samples[WORKFLOW].as_object().unwrap();
    let outputs = steps.iter().map(|(step, samples)| (step.clone(), samples[0]["output"].clone()));
    json!({
        "workflow": WORKFLOW,
        "outputs": outputs.collect::<serde_json::Map<_, _>>(),
        "learned": {
            "choose-reader": {"subject": "restoring a backup", "docType": "guide"},
            "outline": {"sections": ["Restore the latest backup", "Restore to a point in time"]},
        },
    })
}

/// Puts what came with an answer, or was learned, into the context.
fn merge(context: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        context[name] = value.clone();
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// What a client prints. It must end well and have nothing to complain about.
fn report(client: Command) -> String {
    let done = run(client, &Place::new());
    assert!(done.status == 0 && done.stderr.is_empty(), "{}", done.shown());
    done.stdout
}

/// Runs a client in a project where there are only the bundled workflows.
fn run(mut client: Command, place: &Place) -> Done {
    // Files, because a pipe could be kept open by what a client leaves behind.
    let files = ["stdout", "stderr"].map(|name| place.root.path().join(name));
    let [stdout, stderr] = files.each_ref().map(|path| File::create(path).unwrap());
    client.stdin(Stdio::null()).stdout(stdout).stderr(stderr).current_dir(place.project());
    client.env_clear().env("HOME", place.home());
    // A Node that knows this starts sooner the next time.
    client.env("NODE_COMPILE_CACHE", place.root.path().join("compiled"));
    // What a client starts in its turn is the same program.
    let beside = Path::new(client.get_program()).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(beside).chain(std::env::split_paths(&path));
    client.env("PATH", std::env::join_paths(path).unwrap());
    let mut child =
        client.spawn().unwrap_or_else(|error| panic!("{client:?} does not start: {error}"));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if start.elapsed() > PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    if status.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let [stdout, stderr] = files.map(|path| fs::read_to_string(path).unwrap());
    let code = status.and_then(|status| status.code()).unwrap_or(-1);
    let done = Done { status: code, stdout, stderr };
    assert!(status.is_some(), "{client:?} does not end: {}", done.shown());
    done
}

/// The real Node. What a version manager calls `node` finds it by the user's home, which clients do not see.
fn node() -> PathBuf {
    let node = Command::new("node").args(["-p", "process.execPath"]).output().unwrap();
    PathBuf::from(String::from_utf8(node.stdout).unwrap().trim())
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Where `cargo xtask test` has put a client.
fn installed(client: &str) -> PathBuf {
    let Some(clients) = std::env::var_os("WORKFLOWLOOKUP_CLIENTS") else {
        panic!("`WORKFLOWLOOKUP_CLIENTS` says where the clients are; `cargo xtask test` sets it");
    };
    Path::new(&clients).join(client)
}
