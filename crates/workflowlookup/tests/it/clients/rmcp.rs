//! rmcp's client, as a library: the same session as in `walk.mjs` and `walk.py`, with the same report. It
//! does not look at output schemas, so we do.

mod gate;

use std::collections::HashMap;
use std::fmt::Write as _;

use jsonschema::Validator;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, GetPromptRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::{Value, json};

use super::{
    PATIENCE, Place, STEPS_MAX, WORKFLOW, merge, seen_at_the_gate, seen_by_all, text_of, walk,
};

#[test]
fn rmcp() {
    let reports = ways().map(|(way, lifecycle)| {
        let connected = seen_by_all(&in_time(session(lifecycle.clone())));
        assert_eq!(seen_at_the_gate(&in_time(gate::session(lifecycle))), connected);
        format!("{way}: {connected}")
    });
    insta::assert_snapshot!(reports.join("\n"), @"
    initialize: workflowlookup [VERSION], revision 2025-11-25
    discover: workflowlookup [VERSION], revision 2026-07-28
    ");
}

pub(super) fn ways() -> [(&'static str, ClientLifecycleMode); 2] {
    let modern = vec![ProtocolVersion::V_2026_07_28];
    [
        ("initialize", ClientLifecycleMode::Initialize),
        ("discover", ClientLifecycleMode::Discover { preferred_versions: modern }),
    ]
}

pub(super) fn in_time(session: impl Future<Output = String>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, session).await.unwrap() })
}

struct Client {
    service: RunningService<RoleClient, ()>,
    schemas: HashMap<String, Validator>,
    /// How many calls succeeded.
    called: usize,
}

impl Client {
    async fn ask(&self, name: &'static str, given: Value) -> Result<CallToolResult, ServiceError> {
        let Value::Object(given) = given else { panic!("{given} is no object") };
        self.service.call_tool(CallToolRequestParams::new(name).with_arguments(given)).await
    }

    /// A call that must succeed, with a structured result that fits its schema.
    async fn call(&mut self, name: &'static str, given: Value) -> Value {
        let result = self.ask(name, given).await.unwrap();
        assert_ne!(result.is_error, Some(true), "{name}: {:?}", result.content);
        let structured = result.structured_content.unwrap();
        self.schemas[name].validate(&structured).unwrap();
        self.called += 1;
        structured
    }
}

async fn session(lifecycle: ClientLifecycleMode) -> String {
    let place = Place::new();
    let server = tokio::process::Command::from(place.command(&["serve"]));
    let server = TokioChildProcess::new(server).unwrap();
    let service = ().serve_with_lifecycle(server, lifecycle).await.unwrap();
    let mut client = Client { service, schemas: HashMap::new(), called: 0 };
    let mut report = String::new();
    look_around(&mut client, &mut report).await;
    take_the_walk(&mut client, &mut report).await;
    meet_errors(&client, &mut report).await;
    client.service.cancel().await.unwrap();
    report
}

fn connected<H: rmcp::ClientHandler>(service: &RunningService<RoleClient, H>) -> String {
    let info = service.peer_info().unwrap();
    let server = info.server_info.as_ref().unwrap();
    format!("{} {}, revision {}", server.name, server.version, info.protocol_version.as_str())
}

async fn look_around(client: &mut Client, report: &mut String) {
    writeln!(report, "{}", connected(&client.service)).unwrap();
    let tools = client.service.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    writeln!(report, "tools: {}", names.join(", ")).unwrap();
    for tool in &tools {
        let schema = json!(tool.output_schema.as_ref().unwrap());
        client.schemas.insert(tool.name.to_string(), jsonschema::validator_for(&schema).unwrap());
    }
    let resources = client.service.list_all_resources().await.unwrap();
    writeln!(report, "resources: {}, first {}", resources.len(), resources[0].uri).unwrap();
    let templates = client.service.list_all_resource_templates().await.unwrap();
    let templates: Vec<&str> = templates.iter().map(|template| &*template.uri_template).collect();
    writeln!(report, "templates: {}", templates.join(", ")).unwrap();
    let prompts = client.service.list_all_prompts().await.unwrap();
    let prompts: Vec<&str> = prompts.iter().map(|prompt| &*prompt.name).collect();
    writeln!(report, "prompts: {}", prompts.join(", ")).unwrap();

    let uri = ReadResourceRequestParams::new(format!("workflow://{WORKFLOW}"));
    let contents = client.service.read_resource(uri).await.unwrap().contents;
    let [ResourceContents::TextResourceContents { uri, mime_type, text, .. }] = &contents[..]
    else {
        panic!("{contents:?}");
    };
    let definition: Value = serde_json::from_str(text).unwrap();
    let kind = mime_type.as_ref().unwrap();
    writeln!(report, "read {uri}: {kind}, {}", text_of(&definition["name"])).unwrap();
    let Value::Object(answers) = json!({"q1": "Operators."}) else { unreachable!() };
    let prompt = GetPromptRequestParams::new(WORKFLOW).with_arguments(answers);
    let prompt = client.service.get_prompt(prompt).await.unwrap();
    let text = &prompt.messages[0].content.as_text().unwrap().text;
    let settled = text.lines().find(|line| line.ends_with("Operators.")).unwrap();
    writeln!(report, "prompt: {settled}").unwrap();
    let completions = client.service.complete_resource_simple("workflow://{id}", "id", "write");
    writeln!(report, "completions of write: {}", completions.await.unwrap().join(", ")).unwrap();
}

async fn take_the_walk(client: &mut Client, report: &mut String) {
    let listed = client.call("workflow_list", json!({})).await;
    let count = listed["workflows"].as_array().unwrap().len();
    writeln!(report, "workflow_list: {count} workflows").unwrap();
    let definition = client.call("workflow_get", json!({"id": WORKFLOW})).await;
    writeln!(report, "workflow_get: {}", text_of(&definition["name"])).unwrap();
    let lint = client.call("workflow_lint", json!({"definition": "id: x"})).await;
    let usable = if lint["usable"] == true { "usable" } else { "not usable" };
    writeln!(report, "workflow_lint: {usable}").unwrap();

    writeln!(report, "walk of {WORKFLOW}:").unwrap();
    let walk = walk();
    let mut completed: Vec<String> = Vec::new();
    let mut context = json!({});
    for count in 0.. {
        assert!(count < STEPS_MAX, "the walk does not end");
        let asked =
            json!({"workflowId": WORKFLOW, "completedSteps": completed, "context": context});
        let next = client.call("workflow_next", asked).await;
        if next["isComplete"] == true {
            break;
        }
        let step = text_of(&next["step"]["id"]).to_owned();
        merge(&mut context, &next["state"]);
        merge(&mut context, &walk["learned"][&step]);
        let mut verdicts = Vec::new();
        for output in [&json!("Done."), &walk["outputs"][&step]] {
            let made = json!({"workflowId": WORKFLOW, "stepId": step, "output": output, "context": context});
            let answer = client.call("workflow_validate", made).await;
            verdicts.push(match answer["valid"] == true {
                true => "valid".to_owned(),
                false => format!("not valid ({})", answer["issues"].as_array().unwrap().len()),
            });
        }
        writeln!(report, "  {step}: {}", verdicts.join(", then ")).unwrap();
        if !completed.contains(&step) {
            completed.push(step);
        }
    }
    writeln!(report, "  complete").unwrap();
    writeln!(report, "structured results that fit their schemas: {}", client.called).unwrap();
}

async fn meet_errors(client: &Client, report: &mut String) {
    let misspelt = &WORKFLOW[..WORKFLOW.len() - 1];
    let refused = client.ask("workflow_get", json!({"id": misspelt})).await.unwrap();
    assert!(refused.is_error == Some(true) && refused.structured_content.is_none());
    writeln!(report, "refused: {}", refused.content[0].as_text().unwrap().text).unwrap();
    match client.ask("workflow_lost", json!({})).await {
        Err(ServiceError::McpError(error)) => {
            let data = error.data.unwrap();
            let details = text_of(&data["details"]);
            writeln!(report, "unknown tool: {}, {details}", error.code.0).unwrap();
        }
        other => panic!("an unknown tool is an error, not {other:?}"),
    }
}
