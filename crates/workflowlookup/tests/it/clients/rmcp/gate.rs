//! A session up to a step that a person has to confirm, and beyond: the same as in `gate.mjs` and `gate.py`, with the
//! same report.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, Implementation,
};
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ErrorData};
use serde_json::{Value, json};

use super::super::with_a_gate;
use super::{Place, connected, text_of};
use crate::agent::advance;

/// A client's user, who has decided what to say one time after the other. Without decisions nobody can be asked.
struct User {
    decisions: Option<Mutex<VecDeque<Value>>>,
    report: Report,
}

type Report = Arc<Mutex<String>>;

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            self.decisions.as_ref().map(|_| ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("gate", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            panic!("not a form: {request:?}");
        };
        let decisions = self.decisions.as_ref().expect("we have not said that we can be asked");
        let content = decisions.lock().unwrap().pop_front().expect("asked once too often");
        let words: Vec<&str> = message.split_whitespace().collect();
        let says: Vec<&str> = content.as_object().unwrap().values().map(text_of).collect();
        say(&self.report, format_args!("  asked: {}", words.join(" ")));
        say(&self.report, format_args!("  says: {}", says.join(", ")));
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

fn say(report: &Report, line: std::fmt::Arguments<'_>) {
    writeln!(report.lock().unwrap(), "{line}").unwrap();
}

/// A client, and the session that it works on.
struct Agent {
    service: RunningService<RoleClient, User>,
    session: String,
    report: Report,
}

impl Agent {
    async fn connect(
        place: &Place,
        lifecycle: &ClientLifecycleMode,
        report: &Report,
        decisions: Option<Vec<Value>>,
    ) -> Self {
        let server = tokio::process::Command::from(place.command(&["serve"]));
        let server = TokioChildProcess::new(server).unwrap();
        let decisions = decisions.map(|all| Mutex::new(all.into()));
        let user = User { decisions, report: Arc::clone(report) };
        let service = user.serve_with_lifecycle(server, lifecycle.clone()).await.unwrap();
        Self { service, session: String::new(), report: Arc::clone(report) }
    }

    async fn ask(&self, name: &'static str, given: Value) -> CallToolResult {
        let Value::Object(given) = given else { panic!("{given} is no object") };
        let params = CallToolRequestParams::new(name).with_arguments(given);
        self.service.call_tool(params).await.unwrap()
    }

    async fn call(&mut self, name: &'static str, given: Value) -> Value {
        let result = self.ask(name, given).await;
        assert_ne!(result.is_error, Some(true), "{name}: {:?}", result.content);
        let structured = result.structured_content.unwrap();
        text_of(&structured["sessionId"]).clone_into(&mut self.session);
        structured
    }

    async fn start(&mut self, workflow: &str) {
        let given = json!({"workflowId": workflow, "goal": "thank Ada"});
        let started = self.call("workflow_start", given).await;
        say(&self.report, format_args!("  start: {}", place_of(&started)));
    }

    async fn advance(&mut self, revision: u64, step: &str, output: &str) {
        self.report(revision, step, output, json!({})).await;
    }

    async fn report(&mut self, revision: u64, step: &str, output: &str, context: Value) {
        let mut given = advance(&self.session, revision, step, output);
        given["context"] = context;
        let answer = self.call("workflow_advance", given).await;
        let checked = match (answer.get("waiting"), &answer["accepted"]) {
            (Some(waiting), _) => format!("waits, {}", text_of(&waiting["reason"])),
            (None, Value::Bool(true)) => "accepted".to_owned(),
            (None, _) => {
                let issues: Vec<&str> =
                    answer["issues"].as_array().unwrap().iter().map(text_of).collect();
                format!("not accepted, {}", issues.join(", "))
            }
        };
        say(&self.report, format_args!("  {step}: {checked}; {}", place_of(&answer)));
    }

    async fn status(&mut self) {
        let status = self.call("workflow_status", json!({"sessionId": self.session})).await;
        let waits = if status.get("waiting").is_some() { "waits" } else { "goes on" };
        say(&self.report, format_args!("  status: {waits}; {}", place_of(&status)));
    }

    /// What an agent reads that has lost everything else.
    async fn resume(&mut self, step: &str) {
        let given = json!({"sessionId": self.session});
        let status = self.call("workflow_status", given.clone()).await;
        let to_do = text_of(&status["instruction"]).lines().nth(2).unwrap();
        say(&self.report, format_args!("  to do: {to_do}"));
        let (tool, arguments) = (&status["next"]["tool"], &status["next"]["arguments"]);
        let (revision, next) = (&arguments["revision"], text_of(&arguments["stepId"]));
        say(&self.report, format_args!("  next: {}, revision {revision}, {next}", text_of(tool)));
        let mut given = given;
        given["stepId"] = json!(step);
        let read = self.call("workflow_status", given).await;
        let (outcome, output) = (text_of(&read["outcome"]), text_of(&read["output"]));
        say(&self.report, format_args!("  {step}, {outcome}: {output}"));
    }

    async fn close(self) {
        self.service.cancel().await.unwrap();
    }
}

fn place_of(answer: &Value) -> String {
    let at = match answer["isComplete"] == true {
        true => "complete".to_owned(),
        false => format!("at {}", text_of(&answer["step"]["id"])),
    };
    format!("revision {}, {at}", answer["revision"])
}

pub(super) async fn session(lifecycle: ClientLifecycleMode) -> String {
    let place = with_a_gate();
    let report = Report::default();
    let connect = |decisions| Agent::connect(&place, &lifecycle, &report, decisions);
    let too_slow = json!({"decision": "reject", "reason": "too slow"});
    let mut asking = connect(Some(vec![too_slow, json!({"decision": "approve"})])).await;
    say(&report, format_args!("{}", connected(&asking.service)));
    say(&report, format_args!("with a user who can be asked:"));
    asking.start("letter").await;
    asking.advance(0, "write-it", "Hey").await;
    asking.advance(1, "write-it", "Dear Ada").await;
    asking.advance(2, "send-it", "by post").await;
    asking.advance(3, "send-it", "by pigeon").await;
    asking.advance(4, "file-it", "filed").await;
    asking.close().await;

    say(&report, format_args!("without:"));
    let mut agent = connect(None).await;
    agent.start("letter").await;
    agent.advance(0, "write-it", "Dear Ada").await;
    agent.advance(1, "send-it", "by post").await;
    let skip = advance(&agent.session, 1, "file-it", "filed");
    let refused = agent.ask("workflow_advance", skip).await;
    assert_eq!(refused.is_error, Some(true));
    let text = &refused.content[0].as_text().unwrap().text;
    say(&report, format_args!("  refused: {}", text.replace(&agent.session, "[SESSION]")));
    agent.status().await;
    say(&report, format_args!("somebody else, who can be asked, makes the same call:"));
    let mut other = connect(Some(vec![json!({"decision": "approve", "reason": "good"})])).await;
    other.session.clone_from(&agent.session);
    other.advance(1, "send-it", "by post").await;
    other.close().await;
    say(&report, format_args!("the first one goes on:"));
    agent.status().await;
    agent.advance(2, "file-it", "filed").await;
    say(&report, format_args!("with a variable that a later step depends on:"));
    agent.start("parcel").await;
    agent.advance(0, "weigh", "Weighed.").await;
    agent.report(1, "weigh", "Weighed.", json!({"size": "Large"})).await;
    agent.report(2, "weigh", "Weighed: two kilos.", json!({"size": "large"})).await;
    agent.resume("weigh").await;
    agent.close().await;
    std::mem::take(&mut *report.lock().unwrap())
}
