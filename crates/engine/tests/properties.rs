//! What holds for any workflow, any context and any output. Workflows are generated as JSON and read
//! like any file; walks are made by agents of different habits, and what they are given is
//! compared with a plain reading of the workflow. `WORKFLOWLOOKUP_LONG` makes for many more cases, each
//! time others.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "the environment says how long to try")]

use engine::{Budget, Checker, Next, Progress, Refusal, next};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use workflow::definition::Step;
use workflow::{Context, Variables, Workflow};

#[path = "support/criteria.rs"]
mod criteria;
#[path = "support/workflows.rs"]
mod workflows;

use criteria::{collect_messages, criteria, evaluate_all, output, rule, wild_rule};
use workflows::{
    Change, body, changes, config, context, load, named_bodies, plain_reading, steps_at_most,
    value, workflow,
};

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
        match next(&workflow, Progress { completed, current: None, context: &context }, &Budget::for_call()) {
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
        let verdict = Checker::default().check(&workflow, "only", &output.text, Some(&context), &Budget::for_call()).unwrap();
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
        match Checker::default().check(&workflow, "only", &output, None, &Budget::for_call()) {
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
        next(&workflow, progress, &Budget::for_call())
            .map(|answer| answer.step.map(|step| step.id.to_owned()))
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
    let verdict = Checker::default()
        .check(&workflow, "level-15", "Done", Some(&context), &Budget::for_call())
        .unwrap();
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
            next(workflow, progress, &Budget::for_call())
                .map_err(|refusal| TestCaseError::fail(refusal.to_string()))
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
    let budget = Budget::for_call();
    let variables = Variables::new(context, &budget);
    let named = named_bodies(workflow);
    let given = answer.step.as_ref().map(|step| step.id);
    for step in workflow.steps.iter().filter(|step| !named.contains(step.id())) {
        let is_given = given.is_some_and(|given| contains(workflow, step, given));
        if let Step::Plain(step) = step {
            let is_open = !completed.iter().any(|id| **id == *step.id);
            let applies = step.run_condition.as_ref().is_none_or(|c| c.holds(&variables).unwrap());
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

fn checked_by(criteria: &Value) -> Workflow {
    let step =
        json!({"id": "only", "title": "Only", "prompt": "Do it", "validationCriteria": criteria});
    load(&json!([step])).unwrap()
}
