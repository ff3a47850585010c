//! Real clients against the real server: each lists everything, walks a bundled workflow to its end, meets
//! errors, and takes a session through a gate, in every way in which it can connect. All of them must see the same.
//! What those that are not written in Rust do is in `tests/clients/`; `cargo xtask test` installs them and says
//! where they are.

mod code;
mod hostile;
mod inspector;
mod rmcp;
mod upstream;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent::LETTER;
use super::http_server::Listening;
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
    insta::assert_snapshot!(typescript(Reached::Stdio), @"
    v1: workflowlookup [VERSION], revision 2025-11-25
    v2: workflowlookup [VERSION], revision 2025-11-25
    v2-auto: workflowlookup [VERSION], revision 2026-07-28
    ");
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_typescript_sdk_over_http() {
    insta::assert_snapshot!(typescript(Reached::Http), @"
    v1: workflowlookup [VERSION], revision 2025-11-25
    v2: workflowlookup [VERSION], revision 2025-11-25
    v2-auto: workflowlookup [VERSION], revision 2026-07-28
    ");
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_python_sdk() {
    insta::assert_snapshot!(python(Reached::Stdio), @"
    legacy: workflowlookup [VERSION], revision 2025-11-25
    auto: workflowlookup [VERSION], revision 2026-07-28
    ");
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_python_sdk_over_http() {
    insta::assert_snapshot!(python(Reached::Http), @"
    legacy: workflowlookup [VERSION], revision 2025-11-25
    auto: workflowlookup [VERSION], revision 2026-07-28
    ");
}

/// How a client gets to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// It starts it.
    Stdio,
    /// It runs already, and is found by its URL.
    Http,
}

fn typescript(reached: Reached) -> String {
    let folder = typescript_folder();
    let reports = ["v1", "v2", "v2-auto"].map(|way| {
        let node = |script: &str, server: &str| {
            let mut node = Command::new(node());
            node.arg(folder.join(script).with_extension("mjs")).args([way, server]);
            node
        };
        format!("{way}: {}", walks_and_waits(reached, node))
    });
    reports.join("\n")
}

/// Where the scripts are, with the packages that they need.
fn typescript_folder() -> PathBuf {
    let folder = installed("typescript");
    // Node looks for packages beside the script. A rename, because another test may read it now.
    for script in ["code.mjs", "connect.mjs", "gate.mjs", "open.mjs", "upstream.mjs", "walk.mjs"] {
        let copy = tempfile::NamedTempFile::new_in(&folder).unwrap();
        fs::copy(scripts().join("typescript").join(script), copy.path()).unwrap();
        copy.persist(folder.join(script)).unwrap();
    }
    folder
}

fn python(reached: Reached) -> String {
    let reports = ["legacy", "auto"].map(|mode| {
        let python = |script: &str, server: &str| {
            let mut python = Command::new(installed("python").join("bin/python"));
            let script = scripts().join("python").join(script).with_extension("py");
            python.arg(script).args([mode, server]);
            python
        };
        format!("{mode}: {}", walks_and_waits(reached, python))
    });
    reports.join("\n")
}

/// A client walks a workflow, and takes a session through a gate. What is left of both says how it was connected.
fn walks_and_waits(reached: Reached, client: impl Fn(&str, &str) -> Command) -> String {
    let walking = |server: &str| {
        let mut walking = client("walk", server);
        walking.arg(walk().to_string());
        walking
    };
    let connected = seen_by_all(&report_of(reached, &Place::new(), walking));
    let waiting = |server: &str| client("gate", server);
    assert_eq!(seen_at_the_gate(&report_of(reached, &with_a_gate(), waiting)), connected);
    connected
}

/// What a client prints that is told where the server is.
fn report_of(reached: Reached, place: &Place, client: impl Fn(&str) -> Command) -> String {
    match reached {
        Reached::Stdio => report(client(SERVER), place),
        Reached::Http => {
            let server = Listening::start(place);
            let report = report(client(&server.url()), place);
            assert_eq!(server.end(), [""; 0], "nothing was worth a word");
            report
        }
    }
}

/// Holds a report against what every client sees. The line that is left says how it is connected.
fn seen_by_all(report: &str) -> String {
    let (connected, seen) = report.split_once('\n').unwrap();
    insta::allow_duplicates! {
        insta::assert_snapshot!(seen, @"
        tools: workflow_list, workflow_get, workflow_next, workflow_validate, workflow_lint, workflow_start, workflow_advance, workflow_status, workflow_rewind
        resources: 10, first workflow-schema://definition
        templates: workflow://{id}, session://{id}, session://{id}/outputs/{stepId}{?iteration,attempt,offset}
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

/// The same for a session with a step that a person has to confirm.
fn seen_at_the_gate(report: &str) -> String {
    let (connected, seen) = report.split_once('\n').unwrap();
    insta::allow_duplicates! {
        insta::assert_snapshot!(seen, @r#"
        with a user who can be asked:
          start: revision 0, at write-it
          write-it: not accepted, Be polite; revision 1, at write-it
          write-it: accepted; revision 2, at send-it
          asked: Workflow `letter` (thank Ada) asks you to confirm step `send-it`, Send, before it goes on. What the agent handed in: by post
          says: reject, too slow
          send-it: not accepted, A person has rejected the output: too slow; revision 3, at send-it
          asked: Workflow `letter` (thank Ada) asks you to confirm step `send-it`, Send, before it goes on. What the agent handed in: by pigeon
          says: approve
          send-it: accepted; revision 4, at file-it
          file-it: accepted; revision 5, complete
        without:
          start: revision 0, at write-it
          write-it: accepted; revision 1, at send-it
          send-it: waits, a person has to confirm the output of this step; revision 1, at send-it
          refused: `file-it` is not the current step. Session `[SESSION]` is at revision 1, step `send-it`, which waits for a person to confirm its output. Tell your user that it waits.
          status: waits; revision 1, at send-it
        somebody else, who can be asked, makes the same call:
          asked: Workflow `letter` (thank Ada) asks you to confirm step `send-it`, Send, before it goes on. What the agent handed in: by post
          says: approve, good
          send-it: accepted; revision 2, at file-it
        the first one goes on:
          status: goes on; revision 2, at file-it
          file-it: accepted; revision 3, complete
        with a variable that a later step depends on:
          start: revision 0, at weigh
          weigh: not accepted, `size` is missing from context: report "small" or "large" (how large the parcel is); later steps depend on it; revision 1, at weigh
          weigh: not accepted, `size` must be "small" or "large": write "large" instead of "Large"; revision 2, at weigh
          weigh: accepted; revision 3, at send
          to do: Send it by cart. It was: Weighed: two kilos.
          next: workflow_advance, revision 3, send
          weigh, accepted: Weighed: two kilos.
        "#);
    }
    connected.replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
}

/// A later step depends on what the first one reports, and refers to its output.
const PARCEL: &str = r#"
id: parcel
name: Parcel
description: Sends a parcel
version: 1.0.0
variables:
  size: { type: string, values: [small, large], description: how large the parcel is }
steps:
  - { id: weigh, title: Weigh, prompt: Weigh it., reports: [size] }
  - { id: post, title: Post, prompt: Post it., runCondition: { var: size, equals: small } }
  - id: send
    title: Send
    prompt: "Send it by cart. It was: {{steps.weigh.output}}"
    runCondition: { var: size, equals: large }
"#;

/// A project with such a workflow.
fn with_a_gate() -> Place {
    let place = Place::new();
    place.write("workflows/letter.json", LETTER);
    place.write("workflows/parcel.yaml", PARCEL);
    place
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
fn report(client: Command, place: &Place) -> String {
    let done = run(client, place);
    assert!(done.status == 0 && done.stderr.is_empty(), "{}", done.shown());
    done.stdout
}

/// Runs a client in a project.
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
