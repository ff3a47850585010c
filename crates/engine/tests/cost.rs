//! What calls cost against hostile definitions and malformed ones, with inputs up to their limits: work in steps of the
//! budget, memory in bytes, never seconds. Memory that is asked for counts as work, so that work which no budget knows of
//! shows as well. The baseline is linear: a step for each byte of the input, and the memory of the same input read as JSON.
//!
//! `cargo test -p engine --test cost -- --nocapture` prints the whole table, and `docs/cost.md` has what is worth reading of
//! it; `WORKFLOWLOOKUP_LONG` takes inputs of the full size.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test reads files, and may be told to run for longer"
)]

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use budget::{CALL_STEPS_MAX, INLINE_STEPS_MAX};
use counting_allocator::{CountingAllocator, Requested, peak_bytes, requested};
use engine::{
    Budget, Checker, Command, INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, Opening, Progress, Refusal, State,
    Submission, decide, next, title, view,
};
use serde_json::{Map, Value, json};
use workflow::{Context, Format, Reading, Scrutiny, Workflow, read};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How much more than the baseline a call may take.
const WORK_MAX: u64 = 50;
const MEMORY_MAX: usize = 20;
/// The cases that may spend the whole budget of a call whatever their input: matching a back-reference takes exponential
/// time, an automaton may have a state for each letter of the text, and a loop of loops may search the text a million times.
const SPENDS_BUDGET: [&str; 3] = ["back-reference", "many states", "searching loop"];
/// The budget of checking a definition of any size: up to 3,000 findings, with excerpts.
const FINDINGS_STEPS_MAX: u64 = 10_000_000;
/// Smaller inputs count as one of this size.
const INPUT_BYTES_MIN: usize = 40 * 1024;
/// How much a call may do for each step that it spends, and how much for nothing: a step for each byte of its input at least.
const WORK_PER_STEP: u64 = 6;
const UNPAID_STEPS_MAX: u64 = 50_000;
/// What one allocation takes, and how many bytes of it are written in one step.
const ALLOCATION_STEPS: u64 = 5;
const COPIED_BYTES_PER_STEP: u64 = 16;
/// What a call may count on whatever its input: compiled rules and prompts do not depend on it.
const BASELINE_BYTES_MIN: usize = 512 * 1024;

/// How many bytes an input has in the short form, and a malformed definition.
const SHORT_BYTES: usize = 32 * 1024;
const SHORT_DEFINITION_BYTES: usize = 128 * 1024;
const INLINE_BYTES: usize = 15 * 1024;
/// The service reads larger inputs on workers only.
const INLINE_INPUT_BYTES_MAX: usize = 64 * 1024;

/// Calls have the budget that they have in the product: 52,428,800 steps, whatever their input. All the same they take at
/// most 50 times the linear baseline in work, and 20 times in memory. There are two floors below which a call may take
/// more than that for a small input: the cases of [`SPENDS_BUDGET`] may take the whole budget before they are refused, and
/// a report of findings has a price of its own ([`FINDINGS_STEPS_MAX`]).
#[test]
fn calls_cost_no_more_than_a_multiple_of_their_input() {
    let long;
    let table = match std::env::var_os("WORKFLOWLOOKUP_LONG") {
        Some(_) => {
            long = Table::measure_all(true);
            &long
        }
        None => &*SHORT,
    };
    let all: String = table.rows.iter().map(|row| row.text(row.steps)).collect();
    println!("{HEADING}{all}");
    let wrong: Vec<String> = table
        .rows
        .iter()
        .filter(|row| row.is_wrong)
        .map(|row| format!("{}does {} steps of work", row.text(row.steps), row.work))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The table for inputs of the short form.
static SHORT: LazyLock<Table> = LazyLock::new(|| Table::measure_all(false));

/// `cargo xtask generate` writes the page.
#[test]
fn generated_table_of_costs() {
    let table = &*SHORT;
    let mut rows: Vec<&Row> = table.rows.iter().filter(|row| row.steps >= row.linear).collect();
    // Of several inputs for one definition the first is the largest.
    let mut seen = HashSet::new();
    rows.retain(|row| seen.insert((row.tool, row.definition)));
    let rows: String = rows.iter().map(|row| row.text(rounded(row.steps))).collect();
    let page = format!("{PAGE}{HEADING}{rows}\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cost.md");
    let whole = std::fs::read_to_string(&path).unwrap_or_default();
    let (found, rest) = whole.split_at(whole.find(NEXT_PART).unwrap_or(whole.len()));
    if std::env::var_os("WORKFLOWLOOKUP_UPDATE").is_some() {
        std::fs::write(&path, format!("{page}{rest}")).unwrap();
        return;
    }
    assert!(found == page, "docs/cost.md is not current: run `cargo xtask generate`");
}

const PAGE: &str = "\
# What a call may cost

Workflows and outputs come from strangers, so every call has a budget of 52,428,800 steps. A step is about ten nanoseconds.
A call that would need more is refused with -32004, and nothing is recorded. The table shows calls with hostile definitions
and malformed ones, as far as they spend a step or more for each byte of their input. Smaller inputs count as 40 KiB. The
test behind it is `crates/engine/tests/cost.rs`. With `WORKFLOWLOOKUP_LONG` it takes inputs of the full size.

- **steps** are rounded up to two digits.
- **× input**: the steps for each byte. Work is at most 50 times the input, with two exceptions: back-references, automata of
  many states and loops that search a text may spend the whole budget on a small input, and a report of findings takes up
  to ten million steps whatever the size of the definition.
- **× memory**: the most memory at any time, compared with reading the input as JSON (512 KiB or twice the input at least).
  It is at most 20 times as much; less is rounded up to a power of two.

";

/// The part that the service's test writes (`service/src/server/host/cost.rs`).
const NEXT_PART: &str = "## Tools and methods\n";

const HEADING: &str = "\
| tool | definition | input bytes | answer | steps | × input | × memory |
|---|---|---:|---|---:|---:|---:|
";

/// Something hostile: a definition and the input for it, of about so many bytes.
struct Case {
    name: &'static str,
    steps: fn() -> Value,
    input: fn(usize) -> String,
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
            let names: Vec<String> = (0..bytes / 13).map(|at| format!(r#""{at:06}": 0"#)).collect();
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

/// A definition that is wrong, of about so many bytes.
struct MalformedDefinition {
    name: &'static str,
    format: Format,
    text: fn(usize) -> String,
}

const MALFORMED: &[MalformedDefinition] = &[
    MalformedDefinition::json("steps that are empty", |bytes| with_steps(&repeated("{}", bytes))),
    MalformedDefinition::json("steps that are numbers", |bytes| with_steps(&repeated("1", bytes))),
    MalformedDefinition::json("a list instead of a definition", |bytes| {
        format!("[{}]", repeated("1", bytes))
    }),
    MalformedDefinition::json("rules that are empty", |bytes| {
        with_step(&format!(r#""validationCriteria": [{}]"#, repeated("{}", bytes)))
    }),
    MalformedDefinition::json("rules inside each other", |bytes| {
        let tower = format!("{}{{}}{}", r#"{"and":["#.repeat(25), "]}".repeat(25));
        with_step(&format!(r#""validationCriteria": [{}]"#, repeated(&tower, bytes)))
    }),
    MalformedDefinition::json("bodies inside each other", |bytes| {
        let tower = format!("{}{{}}{}", r#"{"body":["#.repeat(25), "]}".repeat(25));
        with_steps(&repeated(&tower, bytes))
    }),
    MalformedDefinition::json("brackets inside each other", |bytes| "[".repeat(bytes)),
    MalformedDefinition::json("unknown fields", |bytes| with_step(&fields(bytes))),
    MalformedDefinition::json("misspelt fields", |bytes| {
        with_steps(&repeated(r#"{"Id":"a","titel":"b","promt":"c"}"#, bytes))
    }),
    MalformedDefinition::json("unknown operators", |bytes| {
        with_step(&format!(r#""runCondition": {{"and": [{}]}}"#, repeated(r#"{"is": 1}"#, bytes)))
    }),
    MalformedDefinition::json("merge keys", |bytes| {
        with_steps(&repeated(r#"{"<<":{"id":1}}"#, bytes))
    }),
    MalformedDefinition::json("one wrong field beside many good texts", |bytes| {
        with_step(&format!(r#""x": 1, "guidance": [{}]"#, repeated(r#""a""#, bytes)))
    }),
    MalformedDefinition::json("a key that stands many times", |bytes| {
        with_step(&repeated(r#""title": "a""#, bytes))
    }),
    MalformedDefinition::json("items below a long name", |bytes| {
        let name = "n".repeat(bytes / 2);
        with_step(&format!(r#""{name}": [{}]"#, repeated("1", bytes / 2)))
    }),
    MalformedDefinition::json("unknown fields below a long name", |bytes| {
        let name = "n".repeat(bytes / 2);
        format!(r#"{{"id": "hostile", "variables": {{"{name}": {{{}}}}}}}"#, fields(bytes / 2))
    }),
    MalformedDefinition::json("values below a long name", |bytes| {
        let steps = r#"[{"id": "work", "title": "Work", "prompt": "Work."}]"#;
        let head = r#""id": "hostile", "name": "H", "description": "H", "version": "1.0.0""#;
        let name = "n".repeat(bytes / 2);
        let values = repeated("1", bytes / 2);
        let variable = format!(r#"{{"{name}": {{"type": "string", "values": [{values}]}}}}"#);
        format!(r#"{{{head}, "steps": {steps}, "variables": {variable}}}"#)
    }),
    MalformedDefinition {
        name: "aliases of a long text",
        format: Format::Yaml,
        text: |bytes| {
            let text = "x".repeat(bytes / 2);
            format!("id: hostile\nname: &a {text}\nmetaGuidance: [{}]\n", repeated("*a", bytes / 2))
        },
    },
];

impl MalformedDefinition {
    const fn json(name: &'static str, text: fn(usize) -> String) -> Self {
        Self { name, format: Format::Json, text }
    }
}

/// A list of the same items, without brackets.
fn repeated(item: &str, bytes: usize) -> String {
    vec![item; bytes / (item.len() + 1)].join(",")
}

/// Fields that are all different, without braces.
fn fields(bytes: usize) -> String {
    let fields: Vec<String> = (0..bytes / 12).map(|at| format!(r#""f{at:06}":0"#)).collect();
    fields.join(",")
}

fn with_steps(steps: &str) -> String {
    format!(
        r#"{{"id": "hostile", "name": "Hostile", "description": "Hostile", "version": "1.0.0", "steps": [{steps}]}}"#
    )
}

fn with_step(fields: &str) -> String {
    with_steps(&format!(r#"{{"id": "work", "title": "Work", "prompt": "Work.", {fields}}}"#))
}

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
    // A quote would take two bytes.
    let text = text.replace('"', "'");
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

/// Reads a definition and renders its findings, as `workflow_lint` does.
fn lint(text: &str, format: Format, budget: &Budget) -> Result<(), Refusal> {
    let checked = Reading::from_bytes(text.as_bytes(), format, Scrutiny::Compile, budget);
    let rendered = checked.and_then(|reading| {
        drop(serde_json::to_string(&reading.findings).unwrap());
        reading.render(text, budget)
    });
    let (step, what) = (String::new(), String::new());
    rendered.map(drop).map_err(|why| Refusal::Exhausted { step, what, why })
}

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
}

struct Row {
    tool: &'static str,
    definition: &'static str,
    input_bytes: usize,
    answer: &'static str,
    steps: u64,
    work: u64,
    /// The baseline of the work: a step for each byte.
    linear: u64,
    memory_times: usize,
    is_wrong: bool,
}

/// What a call came to: the steps that it spent, and what it did whether it spent anything for it or not.
struct Measurement {
    answer: &'static str,
    steps: u64,
    /// The steps, and as many as the memory takes that was asked for.
    work: u64,
    peak: usize,
}

impl Measurement {
    fn take(
        what: &str,
        budget: &Budget,
        call: impl FnOnce(&Budget) -> Result<(), Refusal>,
    ) -> Self {
        let ((outcome, requested), peak) = peak_bytes(|| requested(|| call(budget)));
        let (answer, steps) = match outcome {
            Ok(()) => ("result", budget.steps()),
            // What would have been too much was not done.
            Err(Refusal::Exhausted { .. }) => ("refusal", budget.steps() - budget.overspent()),
            Err(refusal) => panic!("{what}: {refusal}"),
        };
        Self { answer, steps, work: steps + memory_steps(requested), peak }
    }

    /// Whether more was done than the budget knows of. Reading the input is linear by itself.
    fn is_unpaid(&self, input: &str, reading: u64) -> bool {
        let free = UNPAID_STEPS_MAX.max(input.len() as u64);
        self.work > WORK_PER_STEP * self.steps + 4 * reading + free
    }
}

fn memory_steps(requested: Requested) -> u64 {
    requested.count * ALLOCATION_STEPS + requested.bytes / COPIED_BYTES_PER_STEP
}

/// The input read as JSON: the most memory that this takes, and the work. Of a key that stands many times JSON keeps one,
/// but the text and a copy of it are always there.
fn baseline(input: &str) -> (usize, u64) {
    let ((_, peak), read) = requested(|| {
        peak_bytes(|| {
            let value: Value = serde_json::from_str(input).unwrap_or_else(|_| json!(input));
            drop(value);
        })
    });
    (peak.max(2 * input.len()).max(BASELINE_BYTES_MIN), memory_steps(read))
}

impl Table {
    fn measure_all(is_long: bool) -> Self {
        let mut table = Self::default();
        for case in CASES {
            let size = |limit: usize| if is_long { limit } else { SHORT_BYTES };
            validate(case, size(INPUT_BYTES_MAX - 1024), &mut table);
            advance(case, size(OUTPUT_BYTES_MAX - 1024), &mut table);
            find_next(case, size(INPUT_BYTES_MAX - 1024), &mut table);
            start(case, size(OUTPUT_BYTES_MAX - 1024), &mut table);
            look_and_rewind(case, size(OUTPUT_BYTES_MAX - 1024), &mut table);
            table.measure_lint(case.name, &definition(case), Format::Json);
            if !is_long {
                // As large as one may be that is looked at while others wait.
                validate(case, INLINE_BYTES, &mut table);
                find_next(case, INLINE_BYTES, &mut table);
            }
        }
        for case in MALFORMED {
            let bytes = if is_long { INPUT_BYTES_MAX - 1024 } else { SHORT_DEFINITION_BYTES };
            table.measure_lint(case.name, &(case.text)(bytes), case.format);
        }
        table
    }

    /// Measures a call as it is made where nobody waits, and before that where others do.
    fn measure(
        &mut self,
        tool: &'static str,
        case: &Case,
        input: &str,
        mut call: impl FnMut(&Budget) -> Result<(), Refusal>,
    ) {
        let what = format!("{tool}, {}", case.name);
        let (_, reading) = baseline(input);
        let inline = Measurement::take(&what, &Budget::for_inline_call(), &mut call);
        let whole = Measurement::take(&what, &Budget::for_call(), &mut call);
        let is_dear_inline = input.len() <= INLINE_INPUT_BYTES_MAX
            && inline.work > 2 * INLINE_STEPS_MAX + 4 * reading;
        let is_unpaid = inline.is_unpaid(input, reading) || whole.is_unpaid(input, reading);
        let floor = if SPENDS_BUDGET.contains(&case.name) { CALL_STEPS_MAX } else { 0 };
        self.add(tool, case.name, input, &whole, floor, is_dear_inline || is_unpaid);
    }

    /// Measures a check of a definition, which is never made where others wait.
    fn measure_lint(&mut self, name: &'static str, text: &str, format: Format) {
        let tool = "workflow_lint";
        let call = |budget: &Budget| lint(text, format, budget);
        let whole = Measurement::take(tool, &Budget::for_call(), call);
        let (_, reading) = baseline(text);
        self.add(tool, name, text, &whole, FINDINGS_STEPS_MAX, whole.is_unpaid(text, reading));
    }

    fn add(
        &mut self,
        tool: &'static str,
        definition: &'static str,
        input: &str,
        measured: &Measurement,
        floor: u64,
        is_wrong: bool,
    ) {
        let (memory, _) = baseline(input);
        let linear = input.len().max(INPUT_BYTES_MIN) as u64;
        // The largest inputs may take as many steps as the budget has, and are refused after them.
        let is_largest = WORK_MAX * linear > CALL_STEPS_MAX / 10 * 9;
        let floor = if is_largest { CALL_STEPS_MAX } else { floor };
        let memory_times = measured.peak.div_ceil(memory);
        let is_dear = measured.work > floor + WORK_MAX * linear || memory_times > MEMORY_MAX;
        self.rows.push(Row {
            tool,
            definition,
            input_bytes: input.len(),
            answer: measured.answer,
            steps: measured.steps,
            work: measured.work,
            linear,
            memory_times,
            is_wrong: is_wrong || is_dear,
        });
    }
}

impl Row {
    /// A line of Markdown. Memory is a matter of the machine, so only its magnitude is shown.
    fn text(&self, steps: u64) -> String {
        let Self { tool, definition, input_bytes, answer, .. } = self;
        let times = steps.div_ceil(self.linear);
        let memory = self.memory_times.next_power_of_two().min(MEMORY_MAX);
        format!(
            "| `{tool}` | {definition} | {input_bytes} | {answer} | {steps} | {times} | {memory} |\n"
        )
    }
}

/// Two digits of a number, rounded up: what changes little is not written anew.
fn rounded(steps: u64) -> u64 {
    let unit = 10_u64.pow(steps.checked_ilog10().unwrap_or_default().saturating_sub(1));
    (steps.div_ceil(unit) * unit).min(CALL_STEPS_MAX)
}
