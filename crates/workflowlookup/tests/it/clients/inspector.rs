//! The Inspector's command line. Each command is a process that connects, asks for one thing, prints the
//! answer as JSON and goes.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::{Done, Place, SERVER, STEPS_MAX, WORKFLOW, installed, merge, node, run, text_of, walk};

#[test]
#[ignore = "needs the clients that `cargo xtask test` installs"]
fn the_inspector() {
    let inspector = Inspector::new();
    let mut report = String::new();
    let mut list = |method: &str, name: &str| {
        let listed = inspector.ask(&["--method", &format!("{method}/list")]);
        let items = listed.as_object().unwrap().values().next().unwrap().as_array().unwrap();
        let names: Vec<&str> = items.iter().map(|item| text_of(&item[name])).collect();
        writeln!(report, "{method}: {}", names.join(", ")).unwrap();
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

    let refused = inspector.call("workflow_get", &json!({"id": "write-documentatio"}));
    assert_eq!(refused["isError"], true);
    writeln!(report, "refused: {}", text_of(&refused["content"][0]["text"])).unwrap();
    let unknown = inspector.run(&["--method", "tools/call", "--tool-name", "workflow_lost"]);
    let complaint = unknown.stderr.lines().find(|line| line.contains("workflow_lost")).unwrap();
    writeln!(report, "unknown tool: exit {}, {complaint}", unknown.status).unwrap();
    insta::assert_snapshot!(report, @r#"
    tools: workflow_list, workflow_get, workflow_next, workflow_validate, workflow_lint
    resources: workflow-schema://definition, workflow://ai-task-implementation, workflow://build-feature, workflow://handle-incident, workflow://investigate-bug, workflow://prepare-release, workflow://refactor-safely, workflow://review-change, workflow://write-a-workflow, workflow://write-documentation
    resources/templates: workflow://{id}
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
    refused: No workflow has the id `write-documentatio`. Did you mean `write-documentation`? `workflow_list` shows all ids.
    unknown tool: exit 1, Failed to call tool workflow_lost: MCP error -32602: Invalid params
    "#);
}

struct Inspector {
    place: Place,
}

impl Inspector {
    fn new() -> Self {
        let place = Place::new();
        // It looks for its own file of this name in the folder above the current one, by mistake.
        fs::write(place.root.path().join("package.json"), "{}").unwrap();
        Self { place }
    }

    fn run(&self, arguments: &[&str]) -> Done {
        let mut node = node();
        node.arg(installed("typescript").join("node_modules/.bin/mcp-inspector-cli"));
        node.args(["--cli", SERVER, "serve"]).args(arguments);
        run(node, &self.place)
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        assert_eq!(done.status, 0, "{arguments:?}: {}", done.shown());
        done.json()
    }

    /// Arguments are `name=value` pairs; a value that is JSON is taken as such.
    fn call(&self, tool: &str, given: &Value) -> Value {
        let mut arguments = vec!["--method", "tools/call", "--tool-name", tool, "--tool-arg"];
        let given = given.as_object().unwrap().iter();
        let pairs: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
        arguments.extend(pairs.iter().map(String::as_str));
        self.ask(&arguments)
    }
}
