//! What a session costs an agent's context beyond the authors' texts: the results of `workflow_start` and
//! `workflow_advance`, at every step of every bundled workflow, walked with honest outputs. The tokens of a result,
//! less those of each text of the author in it: titles, prompts, guidance, check messages, and declarations of variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::contestants::Contestant;
use crate::programs::Programs;
use crate::table::{Details, Limit, Row, Unit};
use crate::vocabularies::Vocabularies;

/// Outputs that pass the checks, and what is reported with them, by workflow and step.
const SAMPLES: &str = include_str!("../../crates/engine/tests/samples.json");
/// No bundled workflow takes this many steps with the samples.
const STEPS_MAX: usize = 60;
/// A piece of an author's text that is shorter could be ours as well.
const PIECE_BYTES_MIN: usize = 4;
/// The fields that hold texts of a workflow's author.
const AUTHORED: [&str; 9] = [
    "title",
    "prompt",
    "guidance",
    "agentRole",
    "message",
    "description",
    "preconditions",
    "clarificationPrompts",
    "metaGuidance",
];
/// An output that no check accepts.
const BLANK: &str = " ";

/// Of one workflow: the most that a result costs.
#[derive(Default)]
struct Cost {
    steps: usize,
    /// Of the first result, which also has the workflow's preconditions, questions and advice.
    first: usize,
    content: usize,
    structured: usize,
    rejected: usize,
    /// Where a person has to decide, the result also says how.
    waiting: usize,
    /// A line that says what to report. Its words stand for the author's declaration, so they count by themselves.
    report: usize,
}

pub fn rows(programs: &Programs, home: &Path, details: &mut Details) -> Vec<Row> {
    let folder = home.join("session-tokens");
    std::fs::create_dir_all(&folder).expect("a folder");
    let vocabularies = Vocabularies::new();
    let samples: Value = serde_json::from_str(SAMPLES).expect("samples");
    let arguments = vec![OsString::from("serve")];
    let product = programs.product.clone();
    let contestant = Contestant::without_call("serve", product, arguments, folder);
    let mut agent = Agent::start(&contestant);
    let mut costs = BTreeMap::new();
    for (id, outputs) in samples.as_object().expect("samples") {
        let walk = Walk { agent: &mut agent, contestant: &contestant, vocabularies: &vocabularies };
        costs.insert(id.clone(), walk.cost(id, outputs));
    }
    agent.server.end();
    for (id, cost) in &costs {
        let Cost { steps, first, content, structured, rejected, waiting, report } = cost;
        details.session_tokens.push(format!(
            "| {id} | {steps} | {first} | {content} | {structured} | {rejected} | {waiting} | {report} |"
        ));
    }
    let most = |of: fn(&Cost) -> usize| costs.values().map(of).max().unwrap_or_default() as f64;
    let row = |what, figure, limit| Row {
        what,
        yardstick: "",
        figure,
        unit: Unit::Tokens,
        limit: Limit::AtMost(limit),
    };
    vec![
        row(
            "A later result of a session beyond the authors' texts, `content`, the largest",
            most(|cost| cost.content),
            60.0,
        ),
        row("The same, `structuredContent`", most(|cost| cost.structured), 120.0),
        row(
            "A rejected submission beyond its issues, the larger of both, the largest",
            most(|cost| cost.rejected),
            200.0,
        ),
        row(
            "A result that waits for a person and says how they decide, the larger of both, the largest",
            most(|cost| cost.waiting),
            280.0,
        ),
        row(
            "A line that says what to report, beyond its values and description, the longest",
            most(|cost| cost.report),
            30.0,
        ),
    ]
}

struct Walk<'a> {
    agent: &'a mut Agent,
    contestant: &'a Contestant,
    vocabularies: &'a Vocabularies,
}

impl Walk<'_> {
    fn cost(self, id: &str, outputs: &Value) -> Cost {
        let mut cost = Cost::default();
        let definition = self.agent.ask("workflow_get", &json!({"id": id}));
        let mut texts = Vec::new();
        collect_authored(&definition, &mut texts);
        let call = json!({"name": "workflow_start", "arguments": {"workflowId": id}});
        let mut result = self.agent.ask("tools/call", &call);
        let mut visits: BTreeMap<String, usize> = BTreeMap::new();
        let mut values = Vec::new();
        for _ in 0..STEPS_MAX {
            let structured = &result["structuredContent"];
            let (session, revision) =
                (structured["sessionId"].clone(), structured["revision"].clone());
            let (reports, longest) = self.report_lines(&result, &texts);
            cost.report = cost.report.max(longest);
            let (content, own) = self.beyond(&result, &texts, &values);
            let (content, own) = (content.saturating_sub(reports), own.saturating_sub(reports));
            let is_status = !structured["finished"].is_null();
            if structured["status"] == "complete" && !is_status {
                cost.content = cost.content.max(content);
                cost.structured = cost.structured.max(own);
            }
            if structured["status"] == "complete" {
                return cost;
            }
            if structured["status"] == "waiting" {
                cost.waiting = cost.waiting.max(content).max(own);
                self.approve(&structured["waiting"]["version"], &session);
                let call = json!({"name": "workflow_status", "arguments": {"sessionId": session}});
                result = self.agent.ask("tools/call", &call);
                continue;
            }
            cost.steps += 1;
            if cost.steps == 1 {
                cost.first = content.max(own);
            } else if !is_status {
                // A status also repeats what was done before.
                cost.content = cost.content.max(content);
                cost.structured = cost.structured.max(own);
            }
            let step = structured["step"]["id"].as_str().expect("a step").to_owned();
            let advance = |agent: &mut Agent, revision: &Value, output: &str, context: &Value| {
                let arguments = json!({
                    "sessionId": session, "revision": revision, "stepId": step, "output": output,
                    "context": context,
                });
                agent
                    .ask("tools/call", &json!({"name": "workflow_advance", "arguments": arguments}))
            };
            let rejected = advance(self.agent, &revision, BLANK, &json!({}));
            let said = &rejected["structuredContent"];
            let (mut revision, mut issues) = (said["revision"].clone(), Vec::new());
            if said["accepted"] == false {
                for list in [&said["issues"], &said["suggestions"]] {
                    collect(list, &mut issues);
                }
                let (content, own) = self.beyond(&rejected, &issues, &texts);
                cost.rejected = cost.rejected.max(content).max(own);
            }
            let visit = visits.entry(step.clone()).or_default();
            let samples = outputs[&step].as_array().cloned().unwrap_or_default();
            let first = *visit % samples.len().max(1);
            *visit += 1;
            // Some samples are for a check without reports: the first one that is accepted counts.
            let accepted = samples[first..].iter().chain(&samples[..first]).find_map(|sample| {
                let output = sample["output"].as_str().expect("an output");
                let context = sample["context"].as_object().cloned().unwrap_or_else(Map::new);
                // Later texts quote what was reported and handed in, whole or in parts.
                let parts: Value = serde_json::from_str(output).unwrap_or_default();
                collect(&json!([context, output, parts]), &mut values);
                let next = advance(self.agent, &revision, output, &json!(context));
                revision = next["structuredContent"]["revision"].clone();
                (next["structuredContent"]["accepted"] != false).then_some(next)
            });
            result = accepted.unwrap_or_else(|| panic!("{id}/{step}: no sample is accepted"));
        }
        panic!("{id} does not end");
    }

    /// The tokens of a text less those of the authors' texts in it.
    fn beyond_texts(&self, text: &str, texts: &[String]) -> usize {
        let (mut rest, mut authored) = (text.to_owned(), 0);
        for own in texts {
            let count = rest.matches(own.as_str()).count();
            if count > 0 {
                authored += count * self.vocabularies.count(own);
                rest = rest.replace(own, "\u{0}");
            }
        }
        self.vocabularies.count(text).saturating_sub(authored)
    }

    /// The tokens of a result less those of the authors' texts: in `content`, and in `structuredContent`.
    fn beyond(&self, result: &Value, texts: &[String], more: &[String]) -> (usize, usize) {
        let all: Vec<String> = texts.iter().chain(more).cloned().collect();
        let authored = |text: &str| self.vocabularies.count(text) - self.beyond_texts(text, &all);
        let content = result["content"][0]["text"].as_str().expect("a text");
        let mut structured = result["structuredContent"].clone();
        for list in ["issues", "suggestions"] {
            if let Some(Value::Array(list)) = structured.get_mut(list) {
                list.clear();
            }
        }
        let mut written = 0;
        for condition in ["runCondition", "requireConfirmation"] {
            written += match &structured["step"][condition] {
                Value::Object(condition) => self.vocabularies.count(&json!(condition).to_string()),
                _ => 0,
            };
        }
        for text in [&structured["instruction"], &structured["step"]["title"]] {
            written += text.as_str().map_or(0, authored);
        }
        let less =
            |text: &str, authored: usize| self.vocabularies.count(text).saturating_sub(authored);
        (less(content, authored(content)), less(&structured.to_string(), written))
    }

    /// The tokens of the lines that say what to report, beyond the authors' texts: of all, and of the longest.
    fn report_lines(&self, result: &Value, texts: &[String]) -> (usize, usize) {
        let content = result["content"][0]["text"].as_str().expect("a text");
        let (mut all, mut longest) = (0, 0);
        let Some((_, after)) = content.split_once("\n\nReport in `context`:\n") else {
            return (0, 0);
        };
        for line in after.lines().take_while(|line| line.starts_with("- ")) {
            let tokens = self.beyond_texts(line, texts);
            all += tokens;
            longest = longest.max(tokens);
        }
        (all, longest)
    }

    fn approve(&self, version: &Value, session: &Value) {
        let Contestant { program, folder, .. } = self.contestant;
        let mut command = Command::new(program);
        command.args(["session", "approve", session.as_str().expect("a session"), "--version"]);
        command.arg(version.to_string()).current_dir(folder).env_clear().env("HOME", folder);
        let done = command.output().expect("a decision");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

/// Adds the texts of an author, without what stands in slots, the longest first.
fn collect_authored(definition: &Value, texts: &mut Vec<String>) {
    fn walk(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, texts)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    match AUTHORED.contains(&name.as_str()) {
                        true => add_strings(field, texts),
                        false => walk(field, texts),
                    }
                }
            }
            _ => {}
        }
    }
    walk(definition, texts);
    for declaration in definition["variables"].as_object().into_iter().flat_map(|all| all.values())
    {
        texts.extend(declaration.get("schema").map(Value::to_string));
        add_strings(&declaration["values"], texts);
    }
    sort(texts);
}

/// Adds every string of a value, the longest first.
fn collect(value: &Value, texts: &mut Vec<String>) {
    add_strings(value, texts);
    sort(texts);
}

fn add_strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let pieces = text.split("{{").enumerate().map(|(index, piece)| match index {
                0 => piece,
                _ => piece.split_once("}}").map_or(piece, |(_, after)| after),
            });
            texts.extend(pieces.map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| add_strings(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| add_strings(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn sort(texts: &mut Vec<String>) {
    texts.retain(|text| text.len() >= PIECE_BYTES_MIN);
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    texts.dedup();
}
