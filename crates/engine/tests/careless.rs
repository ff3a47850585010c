//! A careless agent on the workflows that come with the product: it repeats one text, forgets what a
//! step must report, or misspells it. The session returns all of that and stays where it is, and a
//! gate asks whenever the values that were reported say so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test reads its cases from files")]

use std::collections::BTreeSet;

use engine::{Budget, Checker, Event, Refusal};
use serde_json::{Value, json};
use workflow::definition::{Confirmation, Declaration, LoopKind, PlainStep, ValueType};
use workflow::{Condition, Context, Step, Workflow};

#[path = "support/agent.rs"]
mod agent;
#[path = "support/bundled.rs"]
mod bundled;

use agent::{Agent, STEPS_MAX, Session, start};
use bundled::{plain_steps, samples, workflows};

/// One text with everything that the checks look for, without any work behind it.
const KEYWORDS: &str = "\
Done. I analyzed the requirements and every assumption; all of it passed, is met, works and is \
confirmed by hand: honest, not lazy.
Affected files: src/a.rs:1, flow.json
1. regex: no findings, no observations, no checks, because nothing failed and all tests pass
2. tagged 1.2.3 2024-01-01 sha256:0123456789abcdef0123456789abcdef
3. original steps, 100 %, AC1, no limits, can be rolled back
10:00 detected
10:01 before
10:02 after
Reproduction
Not reproduced
Hypothesis
Prediction
Root cause
Evidence
Reach
Ruled out
Next
Tests
Risks
Findings
Purpose
Summary
Verification
Open points
Interfaces
Alternatives
Failure
Security
Forward
Back
Proof
Impact 1
Recent changes
Expected
Undo
Contributing factors
What went well
Breaking
Before
After
Target 1
Invariants
Left over
Interactions
Deployment
Decisions
Done when
Readers
Outcome
```
workflowlookup validate, workflowlookup next, workflowlookup check: exit status 0
```
Verdict: request changes";

/// The steps whose checks alone stop it: they want JSON, or at most 700 characters.
const STRICT: [&str; 6] = [
    "settle-criteria",
    "inform",
    "agree-actions",
    "survey-changes",
    "cut-slices",
    "grade-findings",
];

/// Whether a person is asked at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Asks,
    /// The step comes, and nobody is asked.
    Passes,
    /// The step does not come.
    Absent,
}

/// What an honest agent reports on its way through a workflow.
struct Case {
    workflow: &'static str,
    /// For each variable the values that it reports in turn, as `Agent` takes them.
    values: Context,
    /// A step with a gate, and what is expected there.
    gate: &'static str,
    outcome: Outcome,
}

/// Every gate with both outcomes of every variable that decides it. Between them they reach every step.
fn cases() -> Vec<Case> {
    use Outcome::{Absent, Asks, Passes};
    let case = |workflow, values: Value, gate, outcome| {
        let Value::Object(values) = values else { panic!("{values}") };
        Case { workflow, values, gate, outcome }
    };

    let task = |sizes: Value, gate, outcome| {
        let values = json!({"taskSize": sizes, "openProblems": [2, 1, 0]});
        case("ai-task-implementation", values, gate, outcome)
    };
    let feature = |areas: &[&str], risk, gate, outcome| {
        case("build-feature", json!({"areas": [areas], "riskLevel": [risk]}), gate, outcome)
    };
    let incident = |severity, status: &[&str], risk, gate, outcome| {
        let values =
            json!({"severity": [severity], "serviceStatus": status, "mitigationRisk": [risk]});
        case("handle-incident", values, gate, outcome)
    };
    let bug = |reproduced, known: &[bool], fix, outcome| {
        let values =
            json!({"reproduced": [reproduced], "rootCauseKnown": known, "fixRequested": [fix]});
        case("investigate-bug", values, "explain-cause", outcome)
    };
    let release = |kind, breaking, status: &[&str], gate, outcome| {
        let release = json!({"version": "2.0.0", "previous": "1.9.3", "kind": kind});
        let values =
            json!({"release": [release], "breakingChanges": [breaking], "gateStatus": status});
        case("prepare-release", values, gate, outcome)
    };
    let refactoring = |count, checks_pass: &[bool], gate, outcome| {
        let slice =
            json!({"name": "extract", "change": "move the CSV code", "check": "cargo test"});
        let values = json!({"slices": [vec![slice; count]], "checksPass": checks_pass});
        case("refactor-safely", values, gate, outcome)
    };
    let review = |lines, risk, blockers| {
        let values = json!({"changedLines": [lines], "riskLevel": [risk], "blockers": [blockers]});
        case("review-change", values, "give-verdict", Asks)
    };

    vec![
        task(json!(["small"]), "plan", Passes),
        task(json!(["medium"]), "plan", Asks),
        task(json!(["large"]), "plan", Asks),
        task(json!(["large", "small"]), "plan", Asks),
        task(json!(["small", "large"]), "plan", Asks),
        task(json!([null, "small"]), "plan", Asks),
        task(json!(["small"]), "understand", Asks),
        feature(&["ui"], "low", "design", Absent),
        feature(&["api"], "low", "design", Passes),
        feature(&["security"], "low", "design", Passes),
        feature(&["api"], "medium", "design", Asks),
        feature(&["api"], "high", "design", Asks),
        feature(&["ui"], "high", "design", Asks),
        feature(&["ui"], "low", "plan-migration", Absent),
        feature(&["ui", "database"], "low", "plan-migration", Asks),
        feature(&["ui"], "low", "settle-criteria", Asks),
        feature(&["ui"], "low", "present", Asks),
        incident(1, &["down", "healthy"], "low", "inform", Asks),
        incident(2, &["down", "healthy"], "low", "inform", Asks),
        incident(3, &["down", "healthy"], "low", "inform", Absent),
        incident(4, &["down", "healthy"], "low", "inform", Absent),
        incident(1, &["down", "healthy"], "low", "apply-mitigation", Passes),
        incident(1, &["down", "healthy"], "medium", "apply-mitigation", Passes),
        incident(1, &["down", "healthy"], "high", "apply-mitigation", Asks),
        incident(2, &["down", "healthy"], "low", "apply-mitigation", Passes),
        incident(2, &["down", "healthy"], "medium", "apply-mitigation", Asks),
        incident(2, &["down", "healthy"], "high", "apply-mitigation", Asks),
        incident(4, &["down", "healthy"], "medium", "apply-mitigation", Asks),
        incident(2, &["healthy"], "high", "apply-mitigation", Absent),
        incident(2, &["down", "healthy"], "low", "hand-over", Absent),
        incident(2, &["down"], "low", "hand-over", Asks),
        incident(2, &["down", "healthy", "healthy", "degraded"], "low", "hand-over", Asks),
        incident(2, &["down", "healthy"], "low", "agree-actions", Asks),
        bug(true, &[true], true, Asks),
        bug(true, &[true], false, Passes),
        bug(true, &[false], true, Absent),
        bug(false, &[false, true], true, Asks),
        release("major", 1, &["green"], "write-migration-notes", Passes),
        release("minor", 1, &["green"], "write-migration-notes", Asks),
        release("patch", 1, &["green"], "write-migration-notes", Asks),
        release("minor", 0, &["green"], "write-migration-notes", Absent),
        release("minor", 0, &["red", "green"], "publish", Asks),
        release("minor", 0, &["red"], "publish", Absent),
        release("minor", 0, &["red"], "stop-release", Asks),
        release("minor", 0, &["red", "green"], "stop-release", Absent),
        refactoring(4, &[true], "cut-slices", Passes),
        refactoring(5, &[true], "cut-slices", Asks),
        refactoring(2, &[true], "take-slice-back", Absent),
        refactoring(2, &[false, true], "take-slice-back", Absent),
        refactoring(2, &[false], "take-slice-back", Asks),
        review(10, "low", 0),
        review(10, "high", 1),
        review(100, "low", 1),
        case("write-a-workflow", json!({"findingCount": [2, 0]}), "read-through", Asks),
        case("write-documentation", json!({"docType": ["guide"]}), "outline", Asks),
        case("write-documentation", json!({"docType": ["explanation"]}), "hand-in", Asks),
    ]
}

#[test]
fn gates_ask_when_the_reported_values_say_so() {
    let (workflows, samples, checker) = (workflows(), samples(), Checker::default());
    for case in cases() {
        let workflow = named(&workflows, case.workflow);
        let mut agent = Agent::new(&samples[case.workflow], &case.values);
        let mut session = Session::start(workflow, &checker);
        let mut outcomes = BTreeSet::new();
        while let Some(step) = session.step() {
            let asks = agent.work(&mut session);
            let values = &case.values;
            let place = format!("{}/{} with {values:?}", workflow.id, step.id);
            match &step.require_confirmation {
                None => assert!(!asks, "{place} asks"),
                Some(Confirmation::Always(always)) => assert_eq!(asks, *always, "{place}"),
                Some(Confirmation::Where(_)) => {}
            }
            if *step.id == *case.gate {
                outcomes.insert(asks);
            }
        }
        let outcome = match outcomes.iter().collect::<Vec<_>>()[..] {
            [] => Outcome::Absent,
            [true] => Outcome::Asks,
            [false] => Outcome::Passes,
            _ => panic!("{}/{} asks only sometimes", workflow.id, case.gate),
        };
        let Case { gate, values, .. } = &case;
        assert_eq!(outcome, case.outcome, "{}/{gate} with {values:?}", workflow.id);
    }
}

#[test]
fn every_gate_has_a_case_for_both_outcomes_of_each_variable() {
    let cases = cases();
    for workflow in workflows() {
        let mut gates = Vec::new();
        find_gates(&workflow, &workflow.steps, &mut Vec::new(), &mut gates);
        assert!(!gates.is_empty(), "{} has no gate", workflow.id);
        for (gate, conditions) in gates {
            let of_gate = |case: &&Case| case.workflow == &*workflow.id && case.gate == gate;
            let of_gate: Vec<&Case> = cases.iter().filter(of_gate).collect();
            let asks = of_gate.iter().any(|case| case.outcome == Outcome::Asks);
            assert!(asks, "no case in which {}/{gate} asks", workflow.id);
            for name in variables(&conditions) {
                let differ_only_in_it = |one: &Case, other: &Case| {
                    let (mut one, mut other) = (one.values.clone(), other.values.clone());
                    one.remove(name);
                    other.remove(name);
                    one == other
                };
                let is_decided = of_gate.iter().any(|one| {
                    of_gate
                        .iter()
                        .any(|other| one.outcome != other.outcome && differ_only_in_it(one, other))
                });
                assert!(is_decided, "no two cases show what {name} does to {}/{gate}", workflow.id);
            }
        }
    }
}

#[test]
fn one_text_without_reports_passes_no_gate_and_reaches_no_end() {
    let checker = Checker::default();
    for workflow in workflows() {
        // The checks do not stop it: they cannot know what was done.
        for step in plain_steps(&workflow) {
            let verdict = checker.check(&workflow, &step.id, KEYWORDS, None, &Budget::for_call());
            let is_strict = STRICT.contains(&&*step.id);
            assert_eq!(verdict.unwrap().valid, !is_strict, "{}/{}", workflow.id, step.id);
        }
        let mut session = Session::start(&workflow, &checker);
        for _ in 0..STEPS_MAX {
            let step = session.step().unwrap_or_else(|| panic!("{} ends", workflow.id));
            let event = session.submit(KEYWORDS, Context::new());
            let is_past = matches!(event, Event::Accepted { .. });
            let must_report = step.reports.iter().any(|report| !report.is_optional);
            assert!(!is_past || !must_report, "{}/{} is passed", workflow.id, step.id);
            assert_eq!(session.state.pending(), None, "{}/{} waits", workflow.id, step.id);
        }
        let step = session.step().unwrap();
        assert!(!step.reports.is_empty(), "{} is stuck at {}", workflow.id, step.id);
        assert!(session.passed <= 1, "{} moved on {} times", workflow.id, session.passed);
    }
}

#[test]
fn forgotten_and_misspelt_reports_are_returned_at_every_step() {
    let (workflows, samples, checker) = (workflows(), samples(), Checker::default());
    let mut tried = BTreeSet::new();
    for case in cases() {
        let workflow = named(&workflows, case.workflow);
        let mut agent = Agent::new(&samples[case.workflow], &case.values);
        let mut session = Session::start(workflow, &checker);
        while let Some(step) = session.step() {
            // Once for each step and each value that an honest agent reports there.
            let (output, context) = agent.plan(&session);
            if tried.insert((&*workflow.id, &*step.id, format!("{context:?}"))) {
                be_careless(&mut session, step, &output, &context);
            }
            agent.work(&mut session);
        }
    }
    for workflow in &workflows {
        for step in plain_steps(workflow) {
            let is_tried = tried.iter().any(|(of, id, _)| (*of, *id) == (&*workflow.id, &*step.id));
            assert!(is_tried, "no case reaches {}/{}", workflow.id, step.id);
        }
    }
}

/// An agent that says at the start, and with every step, what later steps are to report first: its path is that of
/// the honest one.
#[test]
fn early_reports_change_no_path() {
    let (workflows, samples, checker) = (workflows(), samples(), Checker::default());
    for case in cases() {
        let workflow = named(&workflows, case.workflow);
        let samples = &samples[case.workflow];
        let honest = walk(workflow, &checker, Agent::new(samples, &case.values), &Context::new());
        let early = early_reports(workflow, samples, &case.values);
        let hasty = walk(workflow, &checker, Agent::new(samples, &case.values), &early);
        assert_eq!(hasty, honest, "{} with {:?} and early {early:?}", workflow.id, case.values);
    }
}

/// The steps of a walk, and whether a person was asked at each.
fn walk<'w>(
    workflow: &'w Workflow,
    checker: &'w Checker,
    mut agent: Agent<'_>,
    early: &Context,
) -> Vec<(&'w str, bool)> {
    let mut session = Session::start_with(workflow, checker, early.clone());
    let (mut steps, mut early) = (Vec::new(), early.clone());
    while let Some(step) = session.step() {
        // What was asked for is no longer early: to change it later is to say that it has changed.
        early.retain(|name, _| !step.reports.iter().any(|report| *report.name == **name));
        let asks = agent.work_beside(&mut session, &early);
        steps.push((&*step.id, asks));
    }
    steps
}

/// For each variable that steps must report, the last value that an honest agent reports.
fn early_reports(workflow: &Workflow, samples: &Value, values: &Context) -> Context {
    let mut early = Context::new();
    for step in plain_steps(workflow) {
        for report in step.reports.iter().filter(|report| !report.is_optional) {
            let name = &*report.name;
            let given = values.get(name).and_then(|list| list.as_array()?.last());
            let contexts = samples[&*step.id].as_array().into_iter().flatten();
            let sample = contexts.filter_map(|sample| sample["context"].get(name)).next_back();
            let last = given.or(sample).filter(|value| !value.is_null());
            early.extend(last.map(|value| (name.to_owned(), value.clone())));
        }
    }
    let is_optional = |name: &str| {
        let mut reports = plain_steps(workflow).into_iter().flat_map(|step| &step.reports);
        reports.any(|report| report.is_optional && &*report.name == name)
    };
    early.retain(|name, _| !is_optional(name));
    early
}

#[test]
fn sessions_do_not_start_with_misspelt_values() {
    let checker = Checker::default();
    for workflow in workflows() {
        for (name, declaration) in workflow.variables.iter() {
            for wrong in misspelt(name, declaration, &Value::Null) {
                let context = Context::from_iter([(name.to_owned(), wrong)]);
                let started = start(&workflow, &checker, context.clone());
                assert!(
                    matches!(started, Err(Refusal::BadVariables { .. })),
                    "{} starts with {context:?}",
                    workflow.id
                );
            }
        }
    }
}

/// Everything at one step that must not be accepted, beside an output that is.
fn be_careless(session: &mut Session<'_>, step: &PlainStep, output: &str, context: &Context) {
    for report in &step.reports {
        let name = &*report.name;
        let mut forgotten = context.clone();
        let Some(value) = forgotten.remove(name) else { continue };
        if !report.is_optional {
            session.refuse(KEYWORDS, Context::new(), name);
            session.refuse(output, Context::new(), name);
            session.refuse(output, forgotten.clone(), name);
        }

        for wrong in [&name[..name.len() - 1], &format!("{name}s"), &capitalized(name)] {
            let mut renamed = forgotten.clone();
            renamed.insert(wrong.to_owned(), value.clone());
            session.refuse(output, renamed, name);
        }

        let declaration = session.workflow.variables.get(name).unwrap();
        for wrong in misspelt(name, declaration, &value) {
            let mut misspelt = forgotten.clone();
            misspelt.insert(name.to_owned(), wrong);
            session.refuse(output, misspelt, name);
        }
    }
}

/// What somebody may write instead of a value.
fn misspelt(name: &str, declaration: &Declaration, value: &Value) -> Vec<Value> {
    let mut wrong = vec![json!(null), json!({}), json!({"value": value})];
    match (declaration.r#type, &declaration.values) {
        (Some(ValueType::Boolean), _) => {
            wrong.extend([json!("true"), json!("false"), json!("True"), json!(1), json!(0)]);
            wrong.extend([json!("yes"), json!("")]);
        }
        (Some(ValueType::String), Some(values)) => {
            for value in values.iter().filter_map(Value::as_str) {
                wrong.extend([json!(capitalized(value)), json!(value.to_uppercase())]);
                wrong.extend([json!(format!("{value} ")), json!(format!("\"{value}\""))]);
                wrong.extend([json!(value[..value.len() - 1]), json!([value])]);
            }
            wrong.extend([json!(""), json!(true), json!(1)]);
        }
        (Some(ValueType::String), None) => wrong.extend([json!(1), json!(true), json!([value])]),
        (Some(ValueType::Integer), values) => {
            wrong.extend([json!("0"), json!("2"), json!("none"), json!(0.5), json!([0])]);
            wrong.extend(values.as_ref().map(|_| json!(0)));
            wrong.extend(values.as_ref().map(|_| json!(7)));
        }
        // JSON in a text.
        _ if !value.is_string() && !value.is_null() => wrong.push(json!(value.to_string())),
        _ => {}
    }
    wrong.extend(match name {
        "taskId" => vec![json!(""), json!(12)],
        "feature" => vec![json!({"name": "CSV export"}), json!("CSV export")],
        "acceptanceCriteria" => vec![json!([]), json!(["AC1"]), json!([{"id": "AC1"}])],
        "areas" => vec![json!("database"), json!(["Database"]), json!(["db"]), json!(null)],
        "incident" => vec![json!("INC-7"), json!({"id": "INC-7"})],
        "release" => vec![
            json!("2.0.0"),
            json!({"version": "2.0.0", "previous": "1.9.3"}),
            json!({"version": "2.0.0", "previous": "1.9.3", "kind": "Major"}),
            json!({"version": "2.0.0", "previous": "1.9.3", "kind": null}),
        ],
        "platforms" | "changedFiles" | "sections" => vec![json!([]), json!("one"), json!([1])],
        "checkedSteps" => vec![json!("one"), json!([1])],
        "coveragePercent" => vec![json!("62.5"), json!("62.5 %"), json!(101), json!(-1)],
        "slices" => vec![json!([]), json!(5), json!([{"name": "extract"}])],
        "workflowId" => vec![json!(""), json!("Upgrade Database"), json!("ab")],
        _ => Vec::new(),
    });
    wrong
}

fn capitalized(text: &str) -> String {
    format!("{}{}", text[..1].to_uppercase(), &text[1..])
}

fn named<'w>(workflows: &'w [Workflow], id: &str) -> &'w Workflow {
    workflows.iter().find(|workflow| &*workflow.id == id).unwrap()
}

/// The steps with a gate, each with the conditions that decide whether it asks.
fn find_gates<'w>(
    workflow: &'w Workflow,
    steps: &'w [Step],
    around: &mut Vec<&'w Condition>,
    gates: &mut Vec<(&'w str, Vec<&'w Condition>)>,
) {
    for step in steps {
        let outside = around.len();
        around.extend(step.run_condition());
        match step {
            Step::Plain(plain) => {
                let own = match &plain.require_confirmation {
                    None | Some(Confirmation::Always(false)) => None,
                    Some(Confirmation::Always(true)) => Some(None),
                    Some(Confirmation::Where(condition)) => Some(Some(condition)),
                };
                if let Some(own) = own {
                    gates.push((&plain.id, around.iter().copied().chain(own).collect()));
                }
            }
            Step::Loop(outer) => {
                assert!(outer.require_confirmation.is_none(), "{} has a gate", outer.id);
                if let LoopKind::While { condition } | LoopKind::Until { condition } =
                    &outer.r#loop.kind
                {
                    around.push(condition);
                }
                find_gates(workflow, step.inline_body(), around, gates);
                if let Some(body) = step.named_body().and_then(|name| workflow.step(name)) {
                    find_gates(workflow, std::slice::from_ref(body), around, gates);
                }
            }
        }
        around.truncate(outside);
    }
}

/// The variables that conditions use.
fn variables<'w>(conditions: &[&'w Condition]) -> BTreeSet<&'w str> {
    let mut names = BTreeSet::new();
    for condition in conditions {
        condition.each_variable(&mut |name| {
            names.insert(name.split('.').next().unwrap_or(name));
        });
    }
    names
}
