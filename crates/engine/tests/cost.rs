//! What calls cost against hostile definitions, with inputs up to their limits: work in steps of the budget, memory in
//! bytes, never seconds. Memory that is asked for counts as work, so that work which no budget knows of shows as well. The
//! baseline is linear: a step for each byte of the input, and the memory of the same input read as JSON. `cargo test -p engine --test cost -- --nocapture` prints the table;
//! `WORKFLOWLOOKUP_LONG` takes inputs of the full size.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "a test may be told to run for longer")]

use std::fmt::Write as _;

use budget::INLINE_STEPS_MAX;
use counting_allocator::{CountingAllocator, peak_bytes, requested};
use engine::{
    Budget, Checker, Command, INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, Opening, Progress, Refusal, State,
    Submission, decide, next, title, view,
};
use serde_json::{Map, Value, json};
use workflow::{Context, Format, Scrutiny, Workflow, read};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How much more than the baseline a call may take.
const WORK_MAX: u64 = 50;
const MEMORY_MAX: usize = 20;
/// How many steps a call may spend for each byte of its input, so that what it does besides fits into the rest.
const STEPS_PER_BYTE: u64 = budget::CALL_STEPS_MAX / INPUT_BYTES_MAX as u64 * 4 / 5;
/// Smaller inputs count as one of this size.
const INPUT_BYTES_MIN: usize = 40 * 1024;
/// How much a call may do for each step that it spends, and how much for nothing.
const WORK_PER_STEP: u64 = 6;
const UNPAID_STEPS_MAX: u64 = 50_000;
/// What one allocation takes, and how many bytes of it are written in one step.
const ALLOCATION_STEPS: u64 = 5;
const COPIED_BYTES_PER_STEP: u64 = 16;
/// What a call may count on whatever its input: compiled rules and prompts do not depend on it.
const BASELINE_BYTES_MIN: usize = 512 * 1024;

/// How many bytes an input has in the short form.
const SHORT_BYTES: usize = 32 * 1024;
const INLINE_BYTES: usize = 15 * 1024;

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
        look_and_rewind(case, size(OUTPUT_BYTES_MAX - 1024), &mut table);
        lint(case, &mut table);
        if !is_long {
            // As large as one may be that is looked at while others wait.
            validate(case, INLINE_BYTES, &mut table);
            find_next(case, INLINE_BYTES, &mut table);
        }
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
        name: "many required names",
        steps: || {
            let names: Vec<String> = (0..500).map(|at| format!("name{at}")).collect();
            checked(&schema(&json!({"items": {"required": names}})))
        },
        input: |bytes| format!("[{}{{}}]", "{},".repeat(bytes / 3)),
    },
    Case {
        name: "errors below a long name",
        steps: || {
            checked(&schema(&json!({"additionalProperties": {"items": {"required": ["a"]}}})))
        },
        input: |bytes| {
            let items = "{},".repeat(bytes / 6);
            format!(r#"{{"{}": [{items}{{}}]}}"#, "a".repeat(bytes / 2))
        },
    },
    Case {
        name: "alternatives for one large value",
        steps: || {
            let branches: Vec<Value> =
                (0..500).map(|at| json!({"required": [at.to_string()]})).collect();
            checked(&schema(&json!({"anyOf": branches})))
        },
        input: |bytes| format!(r#"{{"list": [{}0]}}"#, "0,".repeat(bytes / 2)),
    },
    Case {
        name: "names that nobody knows",
        steps: || {
            let all = vec![json!({"additionalProperties": false}); 20];
            checked(&schema(&json!({"allOf": all})))
        },
        input: |bytes| {
            let names: Vec<String> = (0..bytes / 12).map(|at| format!(r#""{at:06}": 0"#)).collect();
            format!("{{{}}}", names.join(", "))
        },
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
    table.measure("workflow_validate", case, &output, |budget| {
        checker.check(&workflow, "work", &output, None, budget).map(drop)
    });
}

fn find_next(case: &Case, bytes: usize, table: &mut Table) {
    let (workflow, input) = (workflow(case), (case.input)(bytes));
    let context = context(&input);
    table.measure("workflow_next", case, &input, |budget| {
        let progress = Progress::<String> { completed: &[], current: None, context: &context };
        next(&workflow, progress, budget).map(drop)
    });
}

fn start(case: &Case, bytes: usize, table: &mut Table) {
    let (workflow, input) = (workflow(case), (case.input)(bytes));
    let context = context(&input);
    table.measure("workflow_start", case, &input, |budget| {
        let (context, rules) = (context.clone(), engine::Rules::CURRENT);
        let command = Command::Start { goal: None, context, strict: false, rules };
        decide(&workflow, &Checker::default(), None, command, budget).map(drop)
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
    table.measure("workflow_advance", case, &input, |budget| {
        let context = context(&input);
        let submission = Submission { step: step.clone(), output: input.clone(), context };
        let command = Command::Advance { revision: state.revision, submission };
        decide(&workflow, &checker, Some(&state), command, budget).map(drop)
    });
}

/// A session that holds as much as it may, and whose last output was not accepted.
fn look_and_rewind(case: &Case, bytes: usize, table: &mut Table) {
    let (workflow, input) = (workflow(case), (case.input)(bytes));
    let (checker, rules) = (Checker::default(), engine::Rules::CURRENT);
    let command = Command::Start { goal: None, context: context(&input), strict: false, rules };
    let Ok(started) = decide(&workflow, &checker, None, command, &Budget::for_call()) else {
        return;
    };
    let state = State::of(&started).unwrap();
    table.measure("workflow_status", case, &input, |budget| {
        view(&workflow, &state, Opening::Full, &|_: &str| None, budget)?;
        title(&workflow, &state, "work", &|_: &str| None, budget);
        Ok(())
    });
    table.measure("workflow_rewind", case, &input, |budget| {
        let reason = "Again".to_owned();
        let command =
            Command::Rewind { revision: state.revision, version: 1, then: &state, reason };
        let rewound = decide(&workflow, &checker, Some(&state), command, budget)?;
        let mut state = state.clone();
        state.apply(&rewound.unwrap());
        view(&workflow, &state, Opening::Reminder, &|_: &str| None, budget).map(drop)
    });
}

fn lint(case: &Case, table: &mut Table) {
    let definition = definition(case);
    table.measure("workflow_lint", case, &definition, |_| {
        read(definition.as_bytes(), Format::Json, Scrutiny::Compile);
        Ok(())
    });
}

#[derive(Default)]
struct Table {
    text: String,
    wrong: String,
}

/// What a call came to: the steps that it spent, and what it did whether it spent anything for it or not.
struct Measured {
    outcome: &'static str,
    steps: u64,
    /// The steps, and as many as the memory takes that was asked for.
    work: u64,
    peak: usize,
}

fn measure(
    tool: &str,
    case: &Case,
    budget: &Budget,
    call: impl FnOnce(&Budget) -> Result<(), Refusal>,
) -> Measured {
    let ((outcome, requested), peak) = peak_bytes(|| requested(|| call(budget)));
    let (outcome, steps) = match outcome {
        Ok(()) => ("answered", budget.steps()),
        // What would have been too much was not done.
        Err(Refusal::Exhausted { .. }) => ("refused", budget.steps() - budget.overspent()),
        Err(refusal) => panic!("{tool}, {}: {refusal}", case.name),
    };
    let memory = requested.count * ALLOCATION_STEPS + requested.bytes / COPIED_BYTES_PER_STEP;
    Measured { outcome, steps, work: steps + memory, peak }
}

impl Table {
    /// Measures a call as it is made where nobody waits, and before that where others do.
    fn measure(
        &mut self,
        tool: &str,
        case: &Case,
        input: &str,
        mut call: impl FnMut(&Budget) -> Result<(), Refusal>,
    ) {
        let ((_, baseline), read) = requested(|| {
            peak_bytes(|| {
                let value: Value = serde_json::from_str(input).unwrap_or_else(|_| json!(input));
                drop(value);
            })
        });
        let inline = Budget::for_inline_call();
        let inline = measure(tool, case, &inline, &mut call);
        // As many steps for this input as the largest one may take, in proportion.
        let linear = input.len().max(INPUT_BYTES_MIN) as u64;
        let budget = Budget::with_steps(STEPS_PER_BYTE * linear);
        let whole = measure(tool, case, &budget, &mut call);
        let times = whole.work.div_ceil(linear);
        let peak_times = whole.peak.div_ceil(baseline.max(BASELINE_BYTES_MIN));
        let row = format!(
            "| {tool} | {} | {} | {} | {} | {} | {} | {times} | {} | {peak_times} |",
            case.name,
            input.len(),
            inline.work,
            whole.outcome,
            whole.steps,
            whole.work,
            whole.peak,
        );
        if self.text.is_empty() {
            self.text.push_str(
                "| tool | case | input bytes | work inline | outcome | steps | work | × input | \
                 peak bytes | × baseline |\n|---|---|---|---|---|---|---|---|---|---|\n",
            );
        }
        let _ = writeln!(self.text, "{row}");
        // Reading the input is linear by itself. Compiling a definition is bounded by what it compiles to.
        let reading = read.count * ALLOCATION_STEPS + read.bytes / COPIED_BYTES_PER_STEP;
        let is_unpaid = |measured: &Measured| {
            let paid = WORK_PER_STEP * measured.steps + 4 * reading + UNPAID_STEPS_MAX;
            tool != "workflow_lint" && measured.work > paid
        };
        let is_dear_inline = inline.work > 2 * INLINE_STEPS_MAX + 4 * reading;
        if times > WORK_MAX
            || peak_times > MEMORY_MAX
            || is_dear_inline
            || is_unpaid(&inline)
            || is_unpaid(&whole)
        {
            let _ = writeln!(self.wrong, "{row}");
        }
    }
}
