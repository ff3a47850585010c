//! Every call has a budget: what would take too long is refused, names the rule, and decides nothing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use engine::{
    Budget, Checker, Command, Event, Progress, Refusal, State, Submission, Verdict, decide, next,
};
use serde_json::{Value, json};
use workflow::{Context, Format, Scrutiny, Workflow, read};

/// A workflow with these steps.
fn workflow(steps: &Value) -> Workflow {
    let definition = json!({
        "id": "hostile", "name": "Hostile", "description": "Takes long", "version": "1.0.0", "steps": steps,
    });
    let reading = read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax);
    reading.workflow.unwrap_or_else(|| panic!("{:?}", reading.findings))
}

fn step(criteria: &Value) -> Value {
    json!([{"id": "work", "title": "Work", "prompt": "Work.", "validationCriteria": criteria}])
}

fn check(workflow: &Workflow, output: &str, budget: &Budget) -> Result<Verdict, Refusal> {
    Checker::default().check(workflow, "work", output, None, budget)
}

fn context(value: Value) -> Context {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

#[test]
fn look_ahead_over_a_long_line_is_linear() {
    let rule =
        json!({"type": "regex", "pattern": "(?=.*Cause)(?=.*Fix).+", "message": "Name both"});
    let workflow = workflow(&step(&rule));
    let output = "x".repeat(80_000);
    let budget = Budget::for_call();
    assert!(!check(&workflow, &output, &budget).unwrap().valid);
    assert!(budget.steps() < 30 * output.len() as u64, "{} steps", budget.steps());
}

#[test]
fn exhausted_rule_is_named() {
    let good = json!({"type": "contains", "value": "a", "message": "An a"});
    let slow = json!({"type": "regex", "pattern": "^(a|a)*\\1b", "message": "Slow"});
    let workflow = workflow(&step(&json!([good, {"or": [good, slow]}])));
    let refusal = check(&workflow, &"a".repeat(60), &Budget::with_steps(200_000)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        r"rule 3 (`regex` /^(a|a)*\1b/) of step `work` takes more than 200000 steps of work"
    );
}

#[test]
fn recursive_alternatives_are_refused() {
    let node = json!({"$ref": "#/$defs/node"});
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [
        {"properties": {"child": node, "kind": {"const": 1}}, "required": ["kind"]},
        {"properties": {"child": node, "kind": {"const": 2}}, "required": ["kind"]},
    ]}}});
    let workflow =
        workflow(&step(&json!({"type": "schema", "schema": schema, "message": "A tree"})));
    let deep = (0..60).fold(json!({}), |inner, _| json!({"child": inner})).to_string();
    let refusal = check(&workflow, &deep, &Budget::with_steps(1_000_000)).unwrap_err();
    assert!(matches!(refusal, Refusal::Exhausted { .. }), "{refusal}");
    let shallow = json!({"kind": 1, "child": {"kind": 2}}).to_string();
    assert!(check(&workflow, &shallow, &Budget::with_steps(1_000_000)).unwrap().valid);
}

#[test]
fn refused_submission_leaves_no_event() {
    let rule = json!({"type": "regex", "pattern": "^(a|a)*\\1b", "message": "Slow"});
    let workflow = workflow(&step(&rule));
    let checker = Checker::default();
    let budget = Budget::with_steps(200_000);
    let (context, rules) = (Context::new(), engine::Rules::CURRENT);
    let start = Command::Start { goal: None, context, strict: false, rules };
    let started = decide(&workflow, &checker, None, start, &budget).unwrap().unwrap();
    let state = State::of([&started]).unwrap();
    let advance = |output: &str| {
        let submission = Submission {
            step: "work".to_owned(),
            output: output.to_owned(),
            context: Context::new(),
        };
        let command = Command::Advance { revision: state.revision, submission };
        decide(&workflow, &checker, Some(&state), command, &Budget::with_steps(200_000))
    };
    assert!(matches!(advance(&"a".repeat(60)), Err(Refusal::Exhausted { .. })));
    assert!(matches!(advance("aab"), Ok(Some(Event::Accepted { .. }))));
}

/// A loop that nothing in it applies to, over a context that it searches each time.
fn searching_loop(inner: &Value) -> Workflow {
    workflow(&json!([{
        "id": "each", "type": "loop", "title": "Each", "loop": {
            "type": "while", "condition": {"not": {"var": "log", "contains": "done"}}, "maxIterations": 1000,
        },
        "body": inner,
    }]))
}

#[test]
fn searching_a_large_context_over_and_over_is_refused() {
    let never = json!({"id": "never", "title": "Never", "prompt": "Never.", "runCondition": {"var": "log", "contains": "now"}});
    let workflow = searching_loop(&json!([never]));
    let next = |log: usize, steps: u64| {
        let context = context(json!({"log": "x".repeat(log)}));
        let budget = Budget::with_steps(steps);
        let progress = Progress::<String> { completed: &[], current: None, context: &context };
        next(&workflow, progress, &budget).map(|answer| answer.is_complete)
    };
    let refusal = next(1_000_000, 10_000_000).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Exhausted { step, .. } if step == "each" || step == "never")
    );
    assert_eq!(next(1_000, 10_000_000), Ok(true));
}

#[test]
fn copying_large_items_over_and_over_is_refused() {
    let never = json!({"id": "never", "title": "Never", "prompt": "Never.", "runCondition": {"var": "never"}});
    let inner = json!({"id": "inner", "type": "loop", "title": "Inner", "loop": {
        "type": "forEach", "items": "items", "maxIterations": 1000,
    }, "body": [never]});
    let workflow = workflow(&json!([{
        "id": "outer", "type": "loop", "title": "Outer",
        "loop": {"type": "for", "count": 1000, "maxIterations": 1000}, "body": [inner],
    }]));
    let context = context(json!({"items": vec!["x".repeat(1_000); 500]}));
    let progress = Progress::<String> { completed: &[], current: None, context: &context };
    let refusal = next(&workflow, progress, &Budget::with_steps(1_000_000)).unwrap_err();
    assert!(matches!(refusal, Refusal::Exhausted { .. }), "{refusal}");
}

#[test]
fn prompt_that_repeats_a_large_value_is_refused() {
    let prompt = "{{report}}".repeat(100);
    let workflow = workflow(&json!([{"id": "work", "title": "Work", "prompt": prompt}]));
    let next = |bytes: usize| {
        let context = context(json!({"report": "x".repeat(bytes)}));
        let progress = Progress::<String> { completed: &[], current: None, context: &context };
        let budget = Budget::for_call();
        next(&workflow, progress, &budget).map(|answer| answer.guidance.prompt.len())
    };
    assert_eq!(next(100), Ok(10_000));
    let refusal = next(1_000_000).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the prompt of step `work` takes more than 4194304 bytes of text"
    );
}

#[test]
fn outputs_and_contexts_have_a_largest_size() {
    let workflow = workflow(&step(&json!({"type": "length", "min": 1, "message": "Something"})));
    let limit = 1024 * 1024;
    let budget = Budget::for_call();
    assert!(check(&workflow, &"x".repeat(limit), &budget).unwrap().valid);
    let refusal = check(&workflow, &"x".repeat(limit + 1), &budget).unwrap_err();
    assert_eq!(refusal, Refusal::TooLarge { what: "an output", limit });
    let context = context(json!({"text": "x".repeat(limit)}));
    let progress = Progress::<String> { completed: &[], current: None, context: &context };
    let refusal = next(&workflow, progress, &budget).unwrap_err();
    assert_eq!(refusal, Refusal::TooLarge { what: "the context", limit });
}

#[test]
fn many_steps_that_do_not_exist_are_not_all_named() {
    let workflow = workflow(&json!([{"id": "work", "title": "Work", "prompt": "Work."}]));
    let completed: Vec<String> = (0..10_000).map(|at| format!("work-{at}")).collect();
    let context = Context::new();
    let progress = Progress { completed: &completed, current: None, context: &context };
    let refusal = next(&workflow, progress, &Budget::for_call()).unwrap_err();
    assert!(matches!(refusal, Refusal::UnknownCompleted { unknown, .. } if unknown.len() == 20));
}

/// A step that an earlier version of the program would have chosen: nothing is decided from there.
#[test]
fn session_elsewhere_than_computed_is_refused() {
    let step = |id: &str| json!({"id": id, "title": id, "prompt": "Work."});
    let workflow = workflow(&json!([step("one"), step("two")]));
    let checker = Checker::default();
    let command = Command::Start {
        goal: None,
        context: Context::new(),
        strict: false,
        rules: engine::Rules::CURRENT,
    };
    let budget = Budget::for_call();
    let started = decide(&workflow, &checker, None, command, &budget).unwrap();
    let mut state = State::of(&started).unwrap();
    assert_eq!(state.step.as_deref(), Some("one"));
    state.step = Some("two".into());
    let submission =
        Submission { step: "two".to_owned(), output: "Done".to_owned(), context: Context::new() };
    let command = Command::Advance { revision: state.revision, submission };
    let details = "the session stands where this version of the program would not go".to_owned();
    let refusal = Refusal::BadState { details };
    let decided = decide(&workflow, &checker, Some(&state), command, &budget);
    assert_eq!(decided, Err(refusal.clone()));
    assert_eq!(engine::check_state(&workflow, &state, &budget), Err(refusal.clone()));
    let seen = engine::view(&workflow, &state, engine::Opening::Full, &|_: &str| None, &budget);
    assert_eq!(seen.unwrap_err(), refusal);
}
