//! Workflows and contexts of every kind, and what a plain reading makes of them.

#![allow(dead_code, reason = "every test uses some of it")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};
use workflow::definition::{Body, Count, LoopKind, LoopStep, Step, index_name, item_name};
use workflow::{Budget, Context, Format, Scrutiny, Variables, Workflow, read};

/// The same cases in every run, and in a long one many others.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let is_long = std::env::var_os("WORKFLOWLOOKUP_LONG").is_some();
    ProptestConfig {
        cases: if is_long { cases * 100 } else { cases },
        rng_seed: if is_long { RngSeed::Random } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        max_global_rejects: 1_000_000,
        ..ProptestConfig::default()
    }
}

/// A change that an agent makes to its context after so many steps.
pub(crate) type Change = (usize, &'static str, Value);

pub(crate) fn named_bodies(workflow: &Workflow) -> BTreeSet<&str> {
    let mut named = BTreeSet::new();
    workflow.each_step(&mut |step| named.extend(step.named_body()));
    named
}

pub(crate) fn body<'w>(workflow: &'w Workflow, step: &'w LoopStep) -> &'w [Step] {
    match &step.body {
        Body::Steps(steps) => steps,
        Body::Named(id) => {
            std::slice::from_ref(workflow.steps.iter().find(|step| step.id() == &**id).unwrap())
        }
    }
}

/// No walk is longer.
pub(crate) fn steps_at_most(workflow: &Workflow, steps: &[Step]) -> usize {
    let each = steps.iter().map(|step| match step {
        Step::Plain(_) => 1,
        Step::Loop(step) => {
            step.r#loop.max_iterations as usize * steps_at_most(workflow, body(workflow, step))
        }
    });
    each.sum()
}

/// The steps in the order of the file, loops unrolled. Good only where the context does not change.
pub(crate) fn plain_reading(workflow: &Workflow, context: &Context) -> Vec<String> {
    let named = named_bodies(workflow);
    let mut read = Vec::new();
    let budget = Budget::for_call();
    for step in workflow.steps.iter().filter(|step| !named.contains(step.id())) {
        unroll(workflow, step, &mut Variables::new(context, &budget), &mut read);
    }
    read
}

fn unroll<'w>(
    workflow: &'w Workflow,
    step: &'w Step,
    variables: &mut Variables<'w, '_>,
    read: &mut Vec<String>,
) {
    if step.run_condition().is_some_and(|condition| !condition.holds(variables).unwrap()) {
        return;
    }
    let step = match step {
        Step::Plain(step) => {
            let prompt = workflow::template::fill(&step.prompt, variables).unwrap();
            return read.push(format!("{}: {prompt}", step.id));
        }
        Step::Loop(step) => step,
    };
    let settings = &step.r#loop;
    let items = match &settings.kind {
        LoopKind::ForEach { items, .. } => match variables.get(items).unwrap().as_deref() {
            Some(Value::Array(items)) => items.clone(),
            _ => return,
        },
        _ => Vec::new(),
    };
    for iteration in 1..=settings.max_iterations {
        let depth = variables.depth();
        variables.bind(settings.iteration_var(), iteration.into());
        let goes_on = match &settings.kind {
            LoopKind::While { condition } => condition.holds(variables).unwrap(),
            LoopKind::Until { condition } => !condition.holds(variables).unwrap(),
            LoopKind::For { count: Count::Number(count) } => iteration <= *count,
            LoopKind::For { count: Count::Variable(name) } => {
                let count = variables.get(name).unwrap().and_then(|count| count.as_f64());
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

pub(crate) fn workflow() -> impl Strategy<Value = Workflow> {
    steps().prop_filter_map("usable", |steps| load(&steps))
}

fn steps() -> impl Strategy<Value = Value> {
    let named = prop::collection::vec(draft(), 0..3);
    let steps = prop::collection::vec((draft(), any::<bool>()), 1..5);
    (named, steps, any::<bool>()).prop_map(|(named, steps, is_named_first)| {
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
        json!(if is_named_first { [bodies, steps] } else { [steps, bodies] }.concat())
    })
}

/// Reads like any file. What contradicts itself is refused there, and no case for us.
pub(crate) fn load(steps: &Value) -> Option<Workflow> {
    let definition = json!({
        "id": "generated", "name": "Generated", "description": "Generated", "version": "1.0.0",
        "steps": steps,
    });
    read(definition.to_string().as_bytes(), Format::Json, Scrutiny::Syntax).workflow
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

pub(crate) fn condition() -> BoxedStrategy<Value> {
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

pub(crate) fn value() -> impl Strategy<Value = Value> {
    let list = prop::collection::vec(prop_oneof![number(), Just(json!(["x", 1]))], 0..4);
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        number(),
        list.prop_map(Value::from),
        Just(json!("x")),
    ]
}

pub(crate) fn context() -> impl Strategy<Value = Context> {
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

pub(crate) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let name = prop::sample::select(vec!["flag", "number", "item", "list"]);
    prop::collection::vec((1..12_usize, name, value()), 0..6)
}

/// Workflows whose outputs must be `good`, and where some steps and some loops want a person.
pub(crate) fn gated_workflow() -> impl Strategy<Value = Workflow> {
    let flags = prop::collection::vec(0..6_u8, 24);
    (steps(), flags).prop_filter_map("usable", |(mut steps, flags)| {
        let mut flags = flags.into_iter().cycle();
        steps.as_array_mut()?.iter_mut().for_each(|step| gate(step, &mut flags));
        load(&steps)
    })
}

fn gate(step: &mut Value, flags: &mut impl Iterator<Item = u8>) {
    match flags.next() {
        Some(0) => step["requireConfirmation"] = json!(true),
        Some(1) => step["requireConfirmation"] = json!({"var": "flag", "equals": true}),
        _ => {}
    }
    match step.get_mut("body") {
        Some(Value::Array(steps)) => steps.iter_mut().for_each(|step| gate(step, flags)),
        Some(_) => {}
        None => {
            let rule =
                json!({"type": "contains", "value": "good", "message": "Say that it is good"});
            step["validationCriteria"] = json!([rule]);
        }
    }
}
