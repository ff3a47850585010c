//! The Inspector's command line. Each command is a process that connects, asks for one thing, prints the
//! answer as JSON and goes.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use super::{Done, Place, SERVER, STEPS_MAX, WORKFLOW, installed, merge, node, run, text_of, walk};
use crate::http_server::Listening;

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_inspector_in_each_era() {
    for connect in [Inspector::new, Inspector::over_http] {
        let connected = ["legacy", "auto", "modern"].map(|era| {
            let inspector = connect(era);
            let session = inspector.ask(&["--method", "initialize"]);
            let revision = text_of(&session["protocolVersion"]);
            // This error has another code in each revision. The Inspector prints the message only.
            let lost = inspector.run(&["--method", "resources/read", "--uri", "workflow://lost"]);
            let error: Value = serde_json::from_str(&lost.stderr).unwrap();
            let message = text_of(&error["error"]["message"]);
            format!("{era}: revision {revision}, no such resource: exit {}, {message}", lost.status)
        });
        insta::allow_duplicates! {
            insta::assert_snapshot!(connected.join("\n"), @"
            legacy: revision 2025-11-25, no such resource: exit 1, Resource not found
            auto: revision 2026-07-28, no such resource: exit 1, Invalid params
            modern: revision 2026-07-28, no such resource: exit 1, Invalid params
            ");
        }
    }
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_inspector_by_the_revision_with_a_handshake() {
    walks(&Inspector::new("legacy"));
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_inspector_by_the_revision_without_a_handshake() {
    walks(&Inspector::new("modern"));
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_inspector_over_http_with_a_handshake() {
    walks(&Inspector::over_http("legacy"));
}

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_inspector_over_http_without_a_handshake() {
    walks(&Inspector::over_http("modern"));
}

fn walks(inspector: &Inspector) {
    let mut report = String::new();
    let mut list = |method: &str, name: &str| {
        let done = inspector.run(&["--method", &format!("{method}/list")]);
        let listed = answer(&done);
        let items = listed.as_object().unwrap().values().find_map(Value::as_array).unwrap();
        let names: Vec<&str> = items.iter().map(|item| text_of(&item[name])).collect();
        writeln!(report, "{method}: {}", names.join(", ")).unwrap();
        // What it makes of the tools' schemas.
        for line in done.stderr.lines() {
            writeln!(report, "  {line}").unwrap();
        }
    };
    list("tools", "name");
    list("resources", "uri");
    list("resources/templates", "uriTemplate");
    list("prompts", "name");
    let uri = format!("workflow://{WORKFLOW}");
    let read = inspector.ask(&["--method", "resources/read", "--uri", &uri]);
    writeln!(report, "read: {}", text_of(&read["contents"][0]["uri"])).unwrap();
    let prompt = ["--method", "prompts/get", "--prompt-name", WORKFLOW, "--prompt-args"];
    let prompt = inspector.ask(&[&prompt[..], &["q1=Operators."]].concat());
    let mut lines = text_of(&prompt["messages"][0]["content"]["text"]).lines();
    let settled = lines.find(|line| line.ends_with("Operators.")).unwrap();
    writeln!(report, "prompt: {settled}").unwrap();

    writeln!(report, "walk of {WORKFLOW}:").unwrap();
    let walk = walk();
    let mut completed: Vec<Value> = Vec::new();
    let mut context = json!({});
    for count in 0.. {
        assert!(count < STEPS_MAX, "the walk does not end");
        let asked =
            json!({"workflowId": WORKFLOW, "completedSteps": completed, "context": context});
        let next = inspector.call("workflow_next", &asked)["structuredContent"].take();
        if next["isComplete"] == true {
            break;
        }
        let step = &next["step"]["id"];
        writeln!(report, "  {}", text_of(step)).unwrap();
        merge(&mut context, &next["state"]);
        merge(&mut context, &walk["learned"][text_of(step)]);
        if !completed.contains(step) {
            completed.push(step.clone());
        }
    }
    writeln!(report, "  complete").unwrap();
    for output in [&json!("Done."), &walk["outputs"]["hand-in"]] {
        let made = json!({"workflowId": WORKFLOW, "stepId": "hand-in", "output": output});
        let verdict = &inspector.call("workflow_validate", &made)["structuredContent"];
        let (valid, issues) = (&verdict["valid"], &verdict["issues"]);
        writeln!(report, "check of hand-in: {valid}, {issues}").unwrap();
    }

    let refused = inspector.run(&call("workflow_get", r#"{"id": "write-documentatio"}"#));
    let result = &refused.json()["result"];
    assert_eq!(result["isError"], true);
    let text = text_of(&result["content"][0]["text"]);
    writeln!(report, "refused: exit {}, {text}", refused.status).unwrap();
    writeln!(report, "  {}", refused.stderr.trim_end()).unwrap();
    insta::allow_duplicates! {
        insta::assert_snapshot!(report, @r#"
        tools: workflow_list, workflow_get, workflow_next, workflow_validate, workflow_lint, workflow_start, workflow_advance, workflow_status, workflow_rewind
        resources: workflow-schema://definition, workflow://ai-task-implementation, workflow://build-feature, workflow://handle-incident, workflow://investigate-bug, workflow://prepare-release, workflow://refactor-safely, workflow://review-change, workflow://write-a-workflow, workflow://write-documentation
        resources/templates: workflow://{id}, session://{id}, session://{id}/outputs/{stepId}{?iteration,attempt,offset}
        prompts: ai-task-implementation, build-feature, handle-incident, investigate-bug, prepare-release, refactor-safely, review-change, write-a-workflow, write-documentation
        read: workflow://write-documentation
        prompt: - Who will read this, and what are they trying to do at that moment? Operators.
        walk of write-documentation:
          choose-reader
          gather-facts
          outline
          draft-section
          draft-section
          run-examples
          edit-pass
          edit-pass
          hand-in
          complete
        check of hand-in: false, ["Hand in the whole text, at least 400 characters, not a note about it"]
        check of hand-in: true, []
        refused: exit 5, No workflow has the id `write-documentatio`. Did you mean `write-documentation`? `workflow_list` shows all ids.
          {"error":{"code":"tool_is_error","message":"Tool 'workflow_get' returned isError:true."}}
        "#);
    }
}

struct Inspector {
    era: &'static str,
    /// The server, where the Inspector does not start it.
    server: Option<Listening>,
    place: Place,
}

impl Inspector {
    fn new(era: &'static str) -> Self {
        Self { era, server: None, place: Place::new() }
    }

    fn over_http(era: &'static str) -> Self {
        let inspector = Self::new(era);
        Self { server: Some(Listening::start(&inspector.place)), ..inspector }
    }

    fn run(&self, arguments: &[&str]) -> Done {
        let mut command = command_line();
        match &self.server {
            None => command.args([SERVER, "serve"]),
            Some(server) => command.args([&server.url(), "--transport", "http"]),
        };
        command.args(["--format", "json", "--protocol-era", self.era]).args(arguments);
        run(command, &self.place)
    }

    /// The answer to something that it has nothing to complain about.
    fn ask(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        assert!(done.stderr.is_empty(), "{arguments:?}: {}", done.shown());
        answer(&done)
    }

    fn call(&self, tool: &str, given: &Value) -> Value {
        self.ask(&call(tool, &given.to_string()))
    }
}

/// The Inspector's command line, which wants to know the server next.
pub(super) fn command_line() -> Command {
    // It is there where the system's Node is too old for the Inspector.
    let own = installed("inspector").join("bin/node");
    let mut command = Command::new(if own.exists() { own } else { node() });
    command.arg(installed("inspector").join("node_modules/.bin/mcp-inspector")).arg("--cli");
    command
}

pub(super) fn call<'a>(tool: &'a str, given: &'a str) -> [&'a str; 6] {
    ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", given]
}

fn answer(done: &Done) -> Value {
    assert_eq!(done.status, 0, "{}", done.shown());
    done.json()["result"].take()
}
