//! What holds for any workflow, any context and any output. Workflows are generated as JSON and read
//! like any file; walks are made by agents of different habits, and what they are given is
//! compared with a plain reading of the workflow. `WORKFLOWLOOKUP_LONG` makes for many more cases, each
//! time others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "the environment says how long to try")]

use std::collections::BTreeSet;

use engine::{Checker, Next, Progress, Refusal, next};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};
use workflow::definition::{Body, Count, LoopKind, LoopStep, Step, index_name, item_name};
use workflow::{Context, Format, Scrutiny, Variables, Workflow, read};

#[path = "support/criteria.rs"]
mod criteria;

use criteria::{collect_messages, criteria, evaluate_all, output, rule, wild_rule};

/// The same cases in every run, and in a long one many others.
fn config(cases: u32) -> ProptestConfig {
    let is_long = std::env::var_os("WORKFLOWLOOKUP_LONG").is_some();
    ProptestConfig {
        cases: if is_long { cases * 100 } else { cases },
        rng_seed: if is_long { RngSeed::Random } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        max_global_rejects: 1_000_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(400))]

    /// As long as nothing changes, an agent is given exactly the steps that a plain reading of the
    /// workflow gives, whatever its habits.
    #[test]
    fn a_walk_is_what_the_workflow_says(workflow in workflow(), context in context()) {
        let expected = plain_reading(&workflow, &context);
        for habits in Habits::ALL {
            let walked = walk(&workflow, &context, &[], habits)?;
            prop_assert_eq!(&walked, &expected, "{:?}", habits);
        }
    }

    /// Also where the context changes on the way does every walk end, and all agents go the same way.
    #[test]
    fn every_walk_ends(workflow in workflow(), context in context(), changes in changes()) {
        let first = walk(&workflow, &context, &changes, Habits::ALL[0])?;
        for habits in &Habits::ALL[1..] {
            let walked = walk(&workflow, &context, &changes, *habits)?;
            prop_assert_eq!(&walked, &first, "{:?}", habits);
        }
    }

    /// Whatever stands in the loop progress, the answer is a step, the end or a refusal.
    #[test]
    fn no_state_makes_next_panic(
        workflow in workflow(),
        state in prop::collection::btree_map("(step-[0-9]|else)", wild_progress(), 0..4),
    ) {
        let mut context = Context::new();
        context.insert("_loops".to_owned(), json!(state));
        let completed: &[String] = &[];
        match next(&workflow, Progress { completed, current: None, context: &context }) {
            Ok(answer) => prop_assert_eq!(answer.is_complete, answer.step.is_none()),
            Err(refusal) => {
                prop_assert!(matches!(refusal, Refusal::BadState { .. }), "{}", refusal);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    /// A verdict agrees with a plain evaluation of the criteria, and says why.
    #[test]
    fn a_verdict_is_what_the_criteria_say(
        criteria in criteria(rule().boxed()),
        output in output(),
        context in context(),
    ) {
        let workflow = checked_by(&criteria);
        let verdict = Checker::default().check(&workflow, "only", &output.text, &context).unwrap();
        let expected = evaluate_all(&criteria, &output, &context);
        prop_assert_eq!(verdict.valid, expected.unwrap_or(!output.text.trim().is_empty()));
        prop_assert_eq!(verdict.valid, verdict.issues.is_empty());
        prop_assert_eq!(verdict.valid, verdict.suggestions.is_empty());
        let mut messages = Vec::new();
        collect_messages(&criteria, &mut messages);
        for issue in &verdict.issues {
            let is_ours = messages.contains(issue);
            prop_assert!(is_ours || expected.is_none() && issue == "The output is empty", "{}", issue);
        }
    }

    /// No text and no criteria, however malformed, make a check panic; what cannot be used is refused.
    #[test]
    fn a_check_never_panics(
        criteria in criteria(prop_oneof![rule(), wild_rule()].boxed()),
        output in any::<String>(),
    ) {
        let workflow = checked_by(&criteria);
        match Checker::default().check(&workflow, "only", &output, &Context::new()) {
            Ok(verdict) => {
                prop_assert_eq!(verdict.valid, verdict.issues.is_empty());
                prop_assert_eq!(verdict.valid, verdict.suggestions.is_empty());
            }
            Err(refusal) => prop_assert!(
                matches!(
                    refusal,
                    Refusal::UnusableCriteria { .. } | Refusal::MalformedSchema { .. }
                ),
                "{}",
                refusal
            ),
        }
    }
}

/// Fifteen loops, each with the next one ten times in its body: no time to go down every way.
#[test]
fn loops_inside_loops_do_not_explode() {
    let level = |at: usize| {
        let settings = json!({"type": "for", "count": 1, "maxIterations": 1});
        let inner = |number: usize| {
            let id = format!("loop-{number}-{at}");
            let body = format!("level-{}", at + 1);
            json!({"id": id, "title": "Loop", "type": "loop", "loop": settings, "body": body})
        };
        let body: Vec<Value> = (0..10).map(inner).collect();
        json!({"id": format!("level-{at}"), "title": "Loop", "type": "loop", "loop": settings, "body": body})
    };
    let mut steps: Vec<Value> = (0..15).map(level).collect();
    let condition = json!({"var": "flag"});
    steps.push(
        json!({"id": "level-15", "title": "Plain", "prompt": "Do it", "runCondition": condition}),
    );
    steps.push(json!({"id": "after", "title": "Plain", "prompt": "Do it"}));
    let workflow = load(&json!(steps)).unwrap();
    let ask = |completed: &[&str], context: &Context| {
        let progress = Progress { completed, current: None, context };
        next(&workflow, progress).map(|answer| answer.step.map(|step| step.id.to_owned()))
    };
    let mut context = Context::new();
    assert_eq!(ask(&[], &context).unwrap().as_deref(), Some("after"));
    let refusal = ask(&["level-15"], &context).unwrap_err();
    assert!(matches!(refusal, Refusal::BadState { .. }), "{refusal}");
    let mut loops = Map::new();
    workflow.each_step(&mut |step| {
        if let Step::Loop(step) = step
            && !step.id.ends_with("-14")
        {
            loops.insert(step.id.to_string(), json!({"iteration": 1}));
        }
    });
    context.insert("_loops".to_owned(), json!(loops));
    assert_eq!(ask(&[], &context).unwrap().as_deref(), Some("after"));
    let verdict = Checker::default().check(&workflow, "level-15", "Done", &context).unwrap();
    assert!(verdict.valid);
}

// Agents.

/// What an agent does with what it is given.
#[derive(Debug, Clone, Copy)]
struct Habits {
    /// Reports the steps inside loops as completed, although it is asked not to.
    reports_all: bool,
    ended: Ended,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ended {
    /// Leaves ended loops in the state.
    Kept,
    /// Reports them as completed, as it is asked to.
    Reported,
    /// And takes them out of the state.
    Dropped,
    /// Reports every loop that it reads has ended, also inside another loop.
    AllReported,
}

impl Habits {
    const ALL: [Self; 8] = [
        Self { reports_all: false, ended: Ended::Reported },
        Self { reports_all: false, ended: Ended::Kept },
        Self { reports_all: false, ended: Ended::Dropped },
        Self { reports_all: false, ended: Ended::AllReported },
        Self { reports_all: true, ended: Ended::Reported },
        Self { reports_all: true, ended: Ended::Kept },
        Self { reports_all: true, ended: Ended::Dropped },
        Self { reports_all: true, ended: Ended::AllReported },
    ];
}

/// A change that an agent makes to its context after so many steps.
type Change = (usize, &'static str, Value);

/// Walks to the end and returns the steps with what they were told to do; on the way, whatever must
/// hold for a single answer is checked.
fn walk(
    workflow: &Workflow,
    context: &Context,
    changes: &[Change],
    habits: Habits,
) -> Result<Vec<String>, TestCaseError> {
    let mut bound = steps_at_most(workflow, &workflow.steps);
    if !changes.is_empty() {
        // A loop that is the body of several starts anew where one of them interrupts another.
        bound *= 1 + workflow.steps.len();
    }
    let mut context = context.clone();
    let mut completed: Vec<String> = Vec::new();
    let mut walked = Vec::new();
    loop {
        let ask = || {
            let progress = Progress { completed: &completed, current: None, context: &context };
            next(workflow, progress).map_err(|refusal| TestCaseError::fail(refusal.to_string()))
        };
        let answer = ask()?;
        prop_assert_eq!(&ask()?, &answer, "asking twice gives the same answer");
        check_answer(workflow, &answer, &completed, &context)?;
        let step = answer.step.map(|step| step.id.to_owned());
        let (read, state) = (answer.guidance.prompt, answer.state.unwrap_or_default());
        let is_inside = state.loops.values().any(|progress| progress.done.last() == step.as_ref());
        workflow.each_step(&mut |step| {
            let id = step.id();
            let is_reported = match habits.ended {
                Ended::Kept => false,
                Ended::Reported | Ended::Dropped => {
                    state.loops.get(id).is_some_and(|progress| progress.ended)
                }
                Ended::AllReported => {
                    let told = [format!("Loop `{id}` ended"), format!("Loop `{id}` was")];
                    told.iter().any(|told| read.contains(told))
                }
            };
            completed.extend(is_reported.then(|| id.to_owned()));
        });
        // Merged into the context: where there is no state, the last one stays.
        let mut loops = state.loops;
        if !loops.is_empty() {
            if habits.ended == Ended::Dropped {
                loops.retain(|_, progress| !progress.ended);
            }
            context.insert("_loops".to_owned(), json!(loops));
        }
        let Some(step) = step else {
            return Ok(walked);
        };
        let prompt = read.lines().rfind(|line| line.starts_with("Do ")).unwrap_or_default();
        walked.push(format!("{step}: {prompt}"));
        prop_assert!(walked.len() <= bound, "no end after {} steps: {:?}", bound, walked);
        if !is_inside || habits.reports_all {
            completed.push(step);
        }
        for (_, variable, value) in changes.iter().filter(|(at, ..)| *at == walked.len()) {
            context.insert((*variable).to_owned(), value.clone());
        }
    }
}

/// The step is open, applies, and stands before all others of which that is true.
fn check_answer(
    workflow: &Workflow,
    answer: &Next<'_>,
    completed: &[String],
    context: &Context,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(answer.is_complete, answer.step.is_none());
    let variables = Variables::new(context);
    let named = named_bodies(workflow);
    let given = answer.step.as_ref().map(|step| step.id);
    for step in workflow.steps.iter().filter(|step| !named.contains(step.id())) {
        let is_given = given.is_some_and(|given| contains(workflow, step, given));
        if let Step::Plain(step) = step {
            let is_open = !completed.iter().any(|id| **id == *step.id);
            let applies = step.run_condition.as_ref().is_none_or(|c| c.holds(&variables));
            prop_assert_eq!(is_open && applies, is_given, "{}", &step.id);
        }
        if is_given {
            break;
        }
    }
    Ok(())
}

fn contains(workflow: &Workflow, step: &Step, id: &str) -> bool {
    match step {
        Step::Plain(step) => *step.id == *id,
        Step::Loop(step) => body(workflow, step).iter().any(|step| contains(workflow, step, id)),
    }
}

fn named_bodies(workflow: &Workflow) -> BTreeSet<&str> {
    let mut named = BTreeSet::new();
    workflow.each_step(&mut |step| named.extend(step.named_body()));
    named
}

fn body<'w>(workflow: &'w Workflow, step: &'w LoopStep) -> &'w [Step] {
    match &step.body {
        Body::Steps(steps) => steps,
        Body::Named(id) => {
            std::slice::from_ref(workflow.steps.iter().find(|step| step.id() == &**id).unwrap())
        }
    }
}

/// No walk is longer.
fn steps_at_most(workflow: &Workflow, steps: &[Step]) -> usize {
    let each = steps.iter().map(|step| match step {
        Step::Plain(_) => 1,
        Step::Loop(step) => {
            step.r#loop.max_iterations as usize * steps_at_most(workflow, body(workflow, step))
        }
    });
    each.sum()
}

/// The steps in the order of the file, loops unrolled. Good only where the context does not change.
fn plain_reading(workflow: &Workflow, context: &Context) -> Vec<String> {
    let named = named_bodies(workflow);
    let mut read = Vec::new();
    for step in workflow.steps.iter().filter(|step| !named.contains(step.id())) {
        unroll(workflow, step, &mut Variables::new(context), &mut read);
    }
    read
}

fn unroll<'w>(
    workflow: &'w Workflow,
    step: &'w Step,
    variables: &mut Variables<'w>,
    read: &mut Vec<String>,
) {
    if step.run_condition().is_some_and(|condition| !condition.holds(variables)) {
        return;
    }
    let step = match step {
        Step::Plain(step) => {
            let prompt = workflow::template::fill(&step.prompt, variables);
            return read.push(format!("{}: {prompt}", step.id));
        }
        Step::Loop(step) => step,
    };
    let settings = &step.r#loop;
    let items = match &settings.kind {
        LoopKind::ForEach { items, .. } => match variables.get(items).as_deref() {
            Some(Value::Array(items)) => items.clone(),
            _ => return,
        },
        _ => Vec::new(),
    };
    for iteration in 1..=settings.max_iterations {
        let depth = variables.depth();
        variables.bind(settings.iteration_var(), iteration.into());
        let goes_on = match &settings.kind {
            LoopKind::While { condition } => condition.holds(variables),
            LoopKind::Until { condition } => !condition.holds(variables),
            LoopKind::For { count: Count::Number(count) } => iteration <= *count,
            LoopKind::For { count: Count::Variable(name) } => {
                let count = variables.get(name).and_then(|count| count.as_f64());
                count.is_some_and(|count| f64::from(iteration) <= count)
            }
            LoopKind::ForEach { item_var, index_var, .. } => {
                let item = items.get(iteration as usize - 1);
                variables.bind(item_name(item_var), item.cloned().unwrap_or_default());
                variables.bind(index_name(index_var), (iteration - 1).into());
                item.is_some()
            }
        };
        if goes_on {
            for step in body(workflow, step) {
                unroll(workflow, step, variables, read);
            }
        }
        variables.unbind(depth);
        if !goes_on {
            return;
        }
    }
}

// Workflows.

#[derive(Debug, Clone)]
enum Draft {
    Plain { condition: Option<Value> },
    Loop { settings: Value, condition: Option<Value>, body: DraftBody },
}

#[derive(Debug, Clone)]
enum DraftBody {
    Inline(Vec<Draft>),
    /// One of the named bodies, by number; loops that give the same number share it.
    Named(usize),
}

fn workflow() -> impl Strategy<Value = Workflow> {
    let named = prop::collection::vec(draft(), 0..3);
    let steps = prop::collection::vec((draft(), any::<bool>()), 1..5);
    (named, steps, any::<bool>()).prop_filter_map("usable", |(named, steps, is_named_first)| {
        let mut count = 0;
        let ids: Vec<String> = (0..named.len()).map(|at| format!("named-{at}")).collect();
        // A named body uses only those before it, so that none leads back to itself.
        let bodies = named.iter().enumerate().map(|(at, draft)| {
            let mut step = render(draft, &ids[..at], &mut count);
            step["id"] = json!(ids[at]);
            step
        });
        let bodies: Vec<Value> = bodies.collect();
        let steps = steps.iter().map(|(draft, _)| render(draft, &ids, &mut count));
        let steps: Vec<Value> = steps.collect();
        let steps = if is_named_first { [bodies, steps] } else { [steps, bodies] }.concat();
        load(&json!(steps))
    })
}

/// Reads like any file. What contradicts itself is refused there, and no case for us.
fn load(steps: &Value) -> Option<Workflow> {
    let definition = json!({
        "id": "generated", "name": "Generated", "description": "Generated", "version": "1.0.0",
        "steps": steps,
    });
    read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax).workflow
}

fn checked_by(criteria: &Value) -> Workflow {
    let step =
        json!({"id": "only", "title": "Only", "prompt": "Do it", "validationCriteria": criteria});
    load(&json!([step])).unwrap()
}

fn render(draft: &Draft, named: &[String], count: &mut usize) -> Value {
    let id = format!("step-{count}");
    *count += 1;
    let (mut step, condition) = match draft {
        Draft::Plain { condition } => {
            let prompt = "Do {{item}} in {{round}} and {{currentIteration}}";
            (json!({"id": id, "title": "Plain", "prompt": prompt}), condition)
        }
        Draft::Loop { settings, condition, body } => {
            let body = match body {
                DraftBody::Named(at) if !named.is_empty() => json!(named[at % named.len()]),
                DraftBody::Named(_) => {
                    json!([render(&Draft::Plain { condition: None }, named, count)])
                }
                DraftBody::Inline(drafts) => {
                    drafts.iter().map(|draft| render(draft, named, count)).collect()
                }
            };
            let step =
                json!({"id": id, "title": "Loop", "type": "loop", "loop": settings, "body": body});
            (step, condition)
        }
    };
    if let Some(condition) = condition {
        step["runCondition"] = condition.clone();
    }
    step
}

fn draft() -> impl Strategy<Value = Draft> {
    let plain = prop::option::of(condition()).prop_map(|condition| Draft::Plain { condition });
    plain.prop_recursive(2, 8, 3, |inner| {
        let body = prop_oneof![
            3 => prop::collection::vec(inner, 1..4).prop_map(DraftBody::Inline),
            1 => (0..3_usize).prop_map(DraftBody::Named),
        ];
        (settings(), prop::option::weighted(0.3, condition()), body)
            .prop_map(|(settings, condition, body)| Draft::Loop { settings, condition, body })
    })
}

fn settings() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        condition().prop_map(|condition| json!({"type": "while", "condition": condition})),
        condition().prop_map(|condition| json!({"type": "until", "condition": condition})),
        (0..4_u32).prop_map(|count| json!({"type": "for", "count": count})),
        Just(json!({"type": "for", "count": "number"})),
        Just(json!({"type": "forEach", "items": "list", "itemVar": "item"})),
        Just(json!({"type": "forEach", "items": "item", "itemVar": "item", "indexVar": "number"})),
    ];
    (kind, 1..4_u32, any::<bool>()).prop_map(|(mut kind, bound, is_named)| {
        kind["maxIterations"] = json!(bound);
        if is_named {
            kind["iterationVar"] = json!("round");
        }
        kind
    })
}

const NAMES: [&str; 6] = ["flag", "number", "item", "round", "currentIteration", "list.length"];

fn condition() -> BoxedStrategy<Value> {
    let operand = prop_oneof![any::<bool>().prop_map(Value::from), number(), Just(json!("x"))];
    let operator = prop::sample::select(vec![
        "equals",
        "not_equals",
        "gt",
        "gte",
        "lt",
        "lte",
        "in",
        "contains",
        "truth",
    ]);
    let simple = (prop::sample::select(&NAMES), operator, operand, number()).prop_map(
        |(name, operator, operand, number)| match operator {
            "truth" => json!({"var": name}),
            "in" => json!({"var": name, "in": [operand, number]}),
            "gt" | "gte" | "lt" | "lte" => json!({"var": name, operator: number}),
            _ => json!({"var": name, operator: operand}),
        },
    );
    let composed = simple.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!({"and": all})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|any| json!({"or": any})),
            inner.prop_map(|member| json!({"not": member})),
        ]
    });
    composed.boxed()
}

fn number() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!(0), json!(1), json!(2), json!(2.5)])
}

fn value() -> impl Strategy<Value = Value> {
    let list = prop::collection::vec(prop_oneof![number(), Just(json!(["x", 1]))], 0..4);
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        number(),
        list.prop_map(Value::from),
        Just(json!("x")),
    ]
}

fn context() -> impl Strategy<Value = Context> {
    let list = prop::collection::vec(prop_oneof![number(), Just(json!(["x", 1]))], 0..4);
    let list = prop_oneof![4 => list.prop_map(Value::from), 1 => value()];
    let usual = (prop::option::of(list), prop::option::of(number()), any::<bool>());
    (usual, prop::option::of(value())).prop_map(|((list, number, flag), item)| {
        let mut context = Map::new();
        context.insert("flag".to_owned(), json!(flag));
        context.extend(list.map(|list| ("list".to_owned(), list)));
        context.extend(number.map(|number| ("number".to_owned(), number)));
        context.extend(item.map(|item| ("item".to_owned(), item)));
        context
    })
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let name = prop::sample::select(vec!["flag", "number", "item", "list"]);
    prop::collection::vec((1..12_usize, name, value()), 0..6)
}

fn wild_progress() -> impl Strategy<Value = Value> {
    let items = prop::option::of(prop::collection::vec(value(), 0..4));
    let done = prop::collection::vec("(step-[0-9]|else)", 0..3);
    (0..5_u32, done, items, prop::option::of(0..4_u32), any::<bool>()).prop_map(
        |(iteration, done, items, count, ended)| {
            let mut progress = json!({"iteration": iteration, "done": done, "ended": ended});
            if let Some(items) = items {
                progress["items"] = json!(items);
            }
            if let Some(count) = count {
                progress["count"] = json!(count);
            }
            progress
        },
    )
}
