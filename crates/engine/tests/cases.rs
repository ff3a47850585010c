//! Every file in `cases/` is a workflow in YAML and, below a line of `=`, a script of questions, one a
//! line; the snapshot is what the engine answers. Adding a case means adding a file.
//!
//! - `next {completed, current, context}`: the stateless answer.
//! - `walk {context, set: {step: {variable: value}}}`: an agent that does each step it is given, sets
//!   the variables listed for it, and returns the state it was handed; the steps in order.
//! - `check {step, output, context}`: the verdict.
//! - `start {goal, context}`, `advance {revision, step, output, context}`, `approve`, `decline {reason}`,
//!   `rewind {revision, version, reason}`, `fork {version}`: a session; the event and what may be seen then.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use std::fmt::Write;

use engine::{
    Budget, Channel, Checker, Command, Decision, Event, Opening, Origin, Progress, Refusal, Rules,
    State, Submission, decide, next, view,
};
use serde_json::{Map, Value};
use workflow::{Format, Scrutiny, Workflow, read};

/// No case takes this many steps: beyond, the walk does not end.
const STEPS_MAX: usize = 200;

#[test]
fn cases() {
    insta::glob!("../cases", "*.txt", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let (definition, script) = text.split_once("\n====\n").unwrap();
        let workflow = load(definition);
        let mut shown = String::new();
        let mut log = Vec::new();
        for line in script.lines().filter(|line| !line.trim().is_empty()) {
            writeln!(shown, "{line}").unwrap();
            if line.starts_with('#') {
                continue;
            }
            let (verb, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let answer = match verb {
                "next" => ask_next(&workflow, &arguments),
                "walk" => walk(&workflow, &arguments),
                "check" => check(&workflow, &arguments),
                "start" | "advance" | "approve" | "decline" | "rewind" | "fork" => {
                    session(&workflow, verb, &arguments, &mut log)
                }
                other => panic!("unknown verb {other}"),
            };
            writeln!(shown, "{answer}\n").unwrap();
        }
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(shown) });
    });
}

/// The fields that a case leaves out are filled in; errors in criteria are part of some cases.
fn load(definition: &str) -> Workflow {
    let header = "id: case\nname: Case\ndescription: A case\nversion: 1.0.0\n";
    let text = format!("{header}{definition}");
    let reading = read(text.as_bytes(), Format::Yaml, Scrutiny::Syntax);
    reading.workflow.unwrap_or_else(|| panic!("{:#?}", reading.findings))
}

fn context_of(arguments: &Value) -> Map<String, Value> {
    arguments.get("context").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn strings(arguments: &Value, name: &str) -> Vec<String> {
    let list = arguments.get(name).and_then(Value::as_array).into_iter().flatten();
    list.map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn ask_next(workflow: &Workflow, arguments: &Value) -> String {
    let completed = strings(arguments, "completed");
    let current = arguments.get("current").and_then(Value::as_str);
    let context = context_of(arguments);
    match next(
        workflow,
        Progress { completed: &completed, current, context: &context },
        &Budget::for_call(),
    ) {
        Ok(answer) => serde_json::to_string_pretty(&answer).unwrap(),
        Err(refusal) => refused(&refusal),
    }
}

fn check(workflow: &Workflow, arguments: &Value) -> String {
    let step = arguments["step"].as_str().unwrap();
    let output = arguments["output"].as_str().unwrap();
    match Checker::default().check(
        workflow,
        step,
        output,
        arguments.get("context").map(|_| context_of(arguments)).as_ref(),
        &Budget::for_call(),
    ) {
        Ok(verdict) => serde_json::to_string_pretty(&verdict).unwrap(),
        Err(refusal) => refused(&refusal),
    }
}

/// A session is its log. The event is shown as it is stored.
fn session(workflow: &Workflow, verb: &str, arguments: &Value, log: &mut Vec<Event>) -> String {
    let text = |name: &str| arguments[name].as_str().map(str::to_owned);
    let text_or_empty = |name: &str| text(name).unwrap_or_default();
    let version = arguments["version"].as_u64().unwrap_or_default();
    let then = State::of(&log[..(version as usize).min(log.len())]);
    let revision = arguments["revision"].as_u64().unwrap_or_default();
    let who = "ada".to_owned();
    let channel = match arguments["channel"].as_str() {
        Some("token") => Channel::Token,
        Some("client") => Channel::Client,
        _ => Channel::Cli,
    };
    let decision = Decision { who, channel, reason: text("reason") };
    let mut state = State::of(&*log);
    let command = match verb {
        "start" => {
            let strict = arguments["strict"] == true;
            let rules = arguments["rules"].as_u64().map_or(Rules::CURRENT, |_| Rules::FIRST);
            Command::Start { goal: text("goal"), context: context_of(arguments), strict, rules }
        }
        "advance" => {
            let (step, output) = (text_or_empty("step"), text_or_empty("output"));
            let submission = Submission { step, output, context: context_of(arguments) };
            Command::Advance { revision, submission }
        }
        "approve" => Command::Approve(decision),
        "decline" => Command::Decline(decision),
        "rewind" => {
            let (then, reason) = (then.as_ref().unwrap(), text_or_empty("reason"));
            Command::Rewind { revision, version, then, reason }
        }
        _ => {
            // The copy is a session of its own.
            log.clear();
            state = None;
            let from = Origin { session: "original".to_owned(), version, reason: None };
            Command::Fork { from, state: then.as_ref().unwrap() }
        }
    };
    let event =
        match decide(workflow, &Checker::default(), state.as_ref(), command, &Budget::for_call()) {
            Ok(event) => event,
            Err(refusal) => return refused(&refusal),
        };
    let mut shown = String::from("nothing new");
    if let Some(event) = event {
        shown = serde_json::to_string(&event).unwrap();
        log.push(event);
    }
    let state = State::of(&*log).unwrap();
    let opening = if verb == "start" { Opening::Full } else { Opening::Reminder };
    let output = |step: &str| match &log[state.outputs.get(step)?.version as usize - 1] {
        Event::Accepted { submission, .. } | Event::Submitted { submission } => {
            Some(submission.output.clone())
        }
        _ => None,
    };
    let view = view(workflow, &state, opening, &output, &Budget::for_call()).unwrap();
    shown + "\n" + &serde_json::to_string_pretty(&view).unwrap()
}

fn refused(refusal: &Refusal) -> String {
    let kind = match refusal {
        Refusal::StepNotFound { .. } => "step not found",
        Refusal::UnknownCompleted { .. } => "unknown completed",
        Refusal::BadState { .. } => "bad state",
        Refusal::NotCurrent { .. } => "not current",
        Refusal::WrongRevision { .. } => "wrong revision",
        Refusal::StrictGate => "strict gate",
        Refusal::LoopGate { .. } => "loop gate",
        Refusal::NotWaiting => "not waiting",
        Refusal::TooLarge { .. } => "too large",
        Refusal::Reserved { .. } => "reserved",
        Refusal::BadVariables { .. } => "bad variables",
        Refusal::UnusableCriteria { .. } => "unusable criteria",
        Refusal::Exhausted { .. } => "exhausted",
        Refusal::MalformedSchema { .. } => "malformed schema",
    };
    let hint = refusal.hint().map(|hint| format!("\n   hint: {hint}"));
    format!("refused ({kind}): {refusal}{}", hint.unwrap_or_default())
}

fn walk(workflow: &Workflow, arguments: &Value) -> String {
    let mut context = context_of(arguments);
    let mut completed: Vec<String> = Vec::new();
    let mut shown = Vec::new();
    for _ in 0..STEPS_MAX {
        let progress = Progress { completed: &completed, current: None, context: &context };
        let answer = match next(workflow, progress, &Budget::for_call()) {
            Ok(answer) => answer,
            Err(refusal) => return shown.join("\n") + "\n" + &refused(&refusal),
        };
        let state = answer.state.as_ref().map(|state| serde_json::to_value(state).unwrap());
        let loops = answer.guidance.prompt.lines().filter(|line| line.starts_with("Loop "));
        shown.extend(loops.map(|line| format!("    {line}")));
        let Some(step) = &answer.step else {
            shown.push("complete".to_owned());
            return shown.join("\n");
        };
        let first = step.prompt.lines().next().unwrap_or_default();
        let filled = answer.guidance.prompt.lines().find(|line| {
            !line.starts_with("Loop ")
                && !line.is_empty()
                && (first.contains("{{") || *line == first)
        });
        shown.push(format!("{}: {}", step.id, filled.unwrap_or_default()));
        let id = step.id.to_owned();
        // A step inside a running loop is remembered by the state, any other by the agent.
        let inside = state.as_ref().is_some_and(|state| {
            let loops = state["_loops"].as_object().into_iter().flatten();
            loops.map(|(_, progress)| &progress["done"]).any(|done| {
                done.as_array().is_some_and(|done| done.iter().any(|step| *step == *id))
            })
        });
        if let Some(state) = state {
            context.extend(state.as_object().cloned().unwrap());
        }
        if !inside {
            completed.push(id.clone());
        }
        if let Some(set) = arguments.get("set").and_then(|set| set.get(&id)) {
            // A list of sets is used up one by one, the last one again and again.
            let set = match set {
                Value::Array(sets) => {
                    let times =
                        shown.iter().filter(|line| line.starts_with(&format!("{id}:"))).count();
                    &sets[(times - 1).min(sets.len() - 1)]
                }
                set => set,
            };
            context.extend(set.as_object().cloned().unwrap());
        }
    }
    shown.push("… does not end".to_owned());
    shown.join("\n")
}
