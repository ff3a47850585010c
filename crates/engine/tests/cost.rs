//! What calls cost against hostile definitions, with inputs up to their limits: work in steps of the budget, memory in
//! bytes, never seconds. The baseline is linear: a step for each byte that a call may bring, and the memory of the
//! same input read as JSON. `cargo test -p engine --test cost -- --nocapture` prints the table;
//! `WORKFLOWLOOKUP_LONG` takes inputs of the full size.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test may be told to run for longer")]

use std::fmt::Write as _;

use counting_allocator::{CountingAllocator, peak_bytes};
use engine::{
    Budget, Checker, Command, INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, Progress, Refusal, State,
    Submission, decide, next, view,
};
use serde_json::{Map, Value, json};
use workflow::{Context, Format, Scrutiny, Workflow, read};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How much more than the baseline a call may take.
const WORK_MAX: u64 = 50;
const MEMORY_MAX: usize = 20;
/// What a call may count on whatever its input: compiled rules and prompts do not depend on it.
const BASELINE_BYTES_MIN: usize = 512 * 1024;

/// How many bytes an input has in the short form.
const SHORT_BYTES: usize = 64 * 1024;

/// Something hostile: a definition and the input for it, of about so many bytes.
struct Case {
    name: &'static str,
    steps: fn() -> Value,
    input: fn(usize) -> String,
}

#[test]
fn calls_cost_no_more_than_a_multiple_of_their_input() {
    let is_long = std::env::var_os("WORKFLOWLOOKUP_LONG").is_some();
    let mut table = Table::default();
    for case in CASES {
        let size = |limit: usize| if is_long { limit } else { SHORT_BYTES };
        validate(case, size(INPUT_BYTES_MAX - 1024), &mut table);
        advance(case, size(OUTPUT_BYTES_MAX - 1024), &mut table);
        find_next(case, size(INPUT_BYTES_MAX - 1024), &mut table);
        start(case, size(OUTPUT_BYTES_MAX - 1024), &mut table);
        lint(case, &mut table);
    }
    println!("{}", table.text);
    assert!(table.wrong.is_empty(), "{}\n{}", table.wrong, table.text);
}

const CASES: &[Case] = &[
    Case {
        name: "look-ahead",
        steps: || checked(&regex("(?=.*Cause)(?=.*Fix).+", "s")),
        input: |bytes| "x".repeat(bytes),
    },
    Case {
        name: "look-ahead that succeeds",
        steps: || checked(&regex("(?=.*xyz)(?=.*Fix).+", "s")),
        input: |bytes| format!("{}xyz", "x".repeat(bytes)),
    },
    Case {
        name: "look-behind",
        steps: || checked(&regex("(?<=a.*)b", "s")),
        input: |bytes| "x".repeat(bytes),
    },
    Case {
        name: "back-reference",
        steps: || checked(&regex(r"(.*)(.*)(.*)\1\2\3#", "")),
        input: |bytes| "x".repeat(bytes),
    },
    Case {
        name: "many states",
        steps: || checked(&regex("a[ab]{3000}c", "")),
        input: |bytes| {
            let mut state = 1_u32;
            let letter = |_| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                if state.is_multiple_of(2) { 'a' } else { 'b' }
            };
            (0..bytes).map(letter).collect()
        },
    },
    Case {
        name: "many errors",
        steps: || checked(&schema(&json!({"items": {"required": ["a", "b", "c", "d"]}}))),
        input: |bytes| format!("[{}{{}}]", "{},".repeat(bytes / 3)),
    },
    Case {
        name: "many errors of alternatives",
        steps: || {
            let item =
                json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}, {"type": "null"}]});
            checked(&schema(&json!({"anyOf": [{"items": item}, {"type": "null"}]})))
        },
        input: |bytes| format!("[{}{{}}]", "{},".repeat(bytes / 3)),
    },
    Case {
        name: "recursive alternatives",
        steps: || {
            let node = json!({"$ref": "#/$defs/node"});
            checked(&schema(&json!({"$ref": "#/$defs/node", "$defs": {"node": {"oneOf": [
                {"properties": {"child": node, "kind": {"const": 1}}},
                {"properties": {"child": node, "kind": {"const": 2}}},
            ]}}})))
        },
        input: |_| (0..60).fold(json!({}), |inner, _| json!({"child": inner})).to_string(),
    },
    Case {
        name: "doubling definitions",
        steps: || {
            let mut definitions = Map::new();
            for at in 0..60 {
                let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
                definitions.insert(format!("d{at}"), json!({"anyOf": [next, next]}));
            }
            definitions.insert("d60".to_owned(), json!({"type": "string"}));
            checked(&schema(&json!({"$defs": definitions, "$ref": "#/$defs/d0"})))
        },
        input: |bytes| format!("[{}0]", "0,".repeat(bytes / 2)),
    },
    Case {
        name: "searching loop",
        steps: || {
            let never = json!({
                "id": "never", "title": "Never", "prompt": "Never.",
                "runCondition": {"var": "text", "contains": "now"},
            });
            let inner = json!({
                "id": "inner", "type": "loop", "title": "Inner", "body": [never],
                "loop": {"type": "while", "condition": {"not": {"var": "text", "contains": "!"}}, "maxIterations": 1000},
            });
            json!([{
                "id": "work", "type": "loop", "title": "Outer", "body": [inner],
                "loop": {"type": "for", "count": 1000, "maxIterations": 1000},
            }])
        },
        input: |bytes| "x".repeat(bytes),
    },
    Case {
        name: "copying loop",
        steps: || {
            let never = json!({"id": "never", "title": "Never", "prompt": "Never.", "runCondition": {"var": "never"}});
            let inner = json!({
                "id": "inner", "type": "loop", "title": "Inner", "body": [never],
                "loop": {"type": "forEach", "items": "list", "maxIterations": 1000},
            });
            json!([{
                "id": "work", "type": "loop", "title": "Outer", "body": [inner],
                "loop": {"type": "for", "count": 1000, "maxIterations": 1000},
            }])
        },
        input: |bytes| "x".repeat(bytes),
    },
    Case {
        name: "prompt that repeats",
        steps: || json!([{"id": "work", "title": "Work", "prompt": "{{text}}".repeat(1000)}]),
        input: |bytes| "x".repeat(bytes),
    },
];

fn regex(pattern: &str, flags: &str) -> Value {
    json!({"type": "regex", "pattern": pattern, "flags": flags, "message": "Match"})
}

fn schema(schema: &Value) -> Value {
    json!({"type": "schema", "schema": schema, "message": "Fit"})
}

fn checked(rule: &Value) -> Value {
    json!([{"id": "work", "title": "Work", "prompt": "Work.", "validationCriteria": rule}])
}

fn definition(case: &Case) -> String {
    let steps = (case.steps)();
    json!({"id": "hostile", "name": "Hostile", "description": "Hostile", "version": "1.0.0", "steps": steps})
        .to_string()
}

fn workflow(case: &Case) -> Workflow {
    let reading = read(definition(case).as_bytes(), Format::Json, Scrutiny::Syntax);
    reading.workflow.unwrap_or_else(|| panic!("{}: {:?}", case.name, reading.findings))
}

/// A context whose variables are the text, or the lines of it.
fn context(text: &str) -> Context {
    let lines: Vec<&str> =
        text.as_bytes().chunks(100).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    let half = text.len() / 2;
    let fields = json!({"text": text[..half], "list": &lines[..lines.len() / 2 * 9 / 10]});
    fields.as_object().cloned().unwrap_or_default()
}

fn validate(case: &Case, bytes: usize, table: &mut Table) {
    let (workflow, output) = (workflow(case), (case.input)(bytes));
    let checker = Checker::default();
    table.measure("workflow_validate", case, INPUT_BYTES_MAX, &output, |budget| {
        checker.check(&workflow, "work", &output, &Context::new(), budget).map(drop)
    });
}

fn find_next(case: &Case, bytes: usize, table: &mut Table) {
    let (workflow, input) = (workflow(case), (case.input)(bytes));
    let context = context(&input);
    table.measure("workflow_next", case, INPUT_BYTES_MAX, &input, |budget| {
        let progress = Progress::<String> { completed: &[], current: None, context: &context };
        next(&workflow, progress, budget).map(drop)
    });
}

fn start(case: &Case, bytes: usize, table: &mut Table) {
    let (workflow, input) = (workflow(case), (case.input)(bytes));
    let context = context(&input);
    table.measure("workflow_start", case, INPUT_BYTES_MAX, &input, |budget| {
        let (context, rules) = (context.clone(), engine::Rules::CURRENT);
        let command = Command::Start { goal: None, context, strict: false, rules };
        let event = decide(&workflow, &Checker::default(), None, command, budget)?;
        // What is answered, and what `workflow_status` and `session://` show.
        view(&workflow, &State::of(&event).unwrap()).map(drop)
    });
}

fn advance(case: &Case, bytes: usize, table: &mut Table) {
    let (workflow, input) = (workflow(case), (case.input)(bytes));
    let checker = Checker::default();
    let rules = engine::Rules::CURRENT;
    let command = Command::Start { goal: None, context: Context::new(), strict: false, rules };
    let Ok(started) = decide(&workflow, &checker, None, command, &Budget::for_call()) else {
        return;
    };
    let state = State::of(&started).unwrap();
    let Some(step) = state.step.clone() else { return };
    table.measure("workflow_advance", case, INPUT_BYTES_MAX, &input, |budget| {
        let context = context(&input);
        let submission = Submission { step, output: input.clone(), context };
        let command = Command::Advance { revision: state.revision, submission };
        decide(&workflow, &checker, Some(&state), command, budget).map(drop)
    });
}

fn lint(case: &Case, table: &mut Table) {
    let definition = definition(case);
    table.measure("workflow_lint", case, INPUT_BYTES_MAX, &definition, |_| {
        read(definition.as_bytes(), Format::Json, Scrutiny::Compile);
        Ok(())
    });
}

#[derive(Default)]
struct Table {
    text: String,
    wrong: String,
}

impl Table {
    fn measure(
        &mut self,
        tool: &str,
        case: &Case,
        limit: usize,
        input: &str,
        call: impl FnOnce(&Budget) -> Result<(), Refusal>,
    ) {
        let (_, baseline) = peak_bytes(|| {
            let value: Value = serde_json::from_str(input).unwrap_or_else(|_| json!(input));
            drop(value);
        });
        let budget = Budget::for_call();
        let (outcome, memory) = peak_bytes(|| call(&budget));
        let outcome = match outcome {
            Ok(()) => "answered",
            Err(Refusal::Exhausted { .. }) => "refused",
            Err(refusal) => panic!("{tool}, {}: {refusal}", case.name),
        };
        // What would have been too much was not done.
        let steps = budget.steps().min(budget::CALL_STEPS_MAX);
        let work = steps.div_ceil(limit as u64);
        let times = memory.div_ceil(baseline.max(BASELINE_BYTES_MIN));
        let row = format!(
            "| {tool} | {} | {} | {outcome} | {steps} | {work} | {memory} | {times} |",
            case.name,
            input.len()
        );
        if self.text.is_empty() {
            self.text.push_str("| tool | case | input bytes | outcome | steps | × input limit | peak bytes | × baseline |\n");
            self.text.push_str("|---|---|---|---|---|---|---|---|\n");
        }
        let _ = writeln!(self.text, "{row}");
        if work > WORK_MAX || times > MEMORY_MAX {
            let _ = writeln!(self.wrong, "{row}");
        }
    }
}
